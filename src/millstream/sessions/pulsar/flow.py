"""FLOW: how many messages more a consumer has room for.

Source: Pulsar binary protocol specification 3.0, "Flow control".
"""

from millstream.sessions.pulsar.consumers import find_consumer
from millstream.sessions.pulsar.link import Link
from millstream.wire.pulsar.pulsar_pb2 import CommandFlow

__all__ = ["handle_flow"]


def handle_flow(link: Link, command: CommandFlow) -> None:
    """Give a consumer permits; of one that is not there any more, nothing."""
    linked = find_consumer(link, command.consumer_id)
    if linked is not None:
        linked.consumer.flow(command.messagePermits)
