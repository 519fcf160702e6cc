"""SEEK: moving a subscription to a message, or to a time.

All consumers of the subscription are closed first, and come back by themselves: clients that get the answer before
CLOSE_CONSUMER hang.

Source: Pulsar binary protocol specification 3.0, "Seek".
"""

from millstream.sessions.pulsar.consumers import connected_consumer
from millstream.sessions.pulsar.errors import NotAllowed
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.message_ids import place_of
from millstream.wire.pulsar.pulsar_pb2 import CommandSeek, CommandSuccess

__all__ = ["handle_seek"]

_TIMESTAMP_MS_MAX = 2**63 - 1


def handle_seek(link: Link, command: CommandSeek) -> None:
    """Move the subscription of a consumer."""
    linked = connected_consumer(link, command.consumer_id)
    subscription, remembered = linked.subscription, linked.remembered
    if command.HasField("message_id"):
        offset = place_of(command.message_id, linked.ledger_id, linked.partition)
        remembered.sought = offset
        moving = subscription.seek(offset)
    elif command.HasField("message_publish_time"):
        remembered.sought = None
        moving = subscription.seek_time(min(command.message_publish_time, _TIMESTAMP_MS_MAX))
    else:
        raise NotAllowed("SEEK names a message or a time")
    link.answer(command.request_id, moving, lambda _: CommandSuccess(request_id=command.request_id))
