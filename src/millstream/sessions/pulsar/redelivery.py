"""REDELIVER_UNACKNOWLEDGED_MESSAGES: negative acknowledgements, and what was not acknowledged in time.

Source: Pulsar binary protocol specification 3.0, "RedeliverUnacknowledgedMessages"; epochs, PIP-84.
"""

from millstream.sessions.pulsar.consumers import find_consumer
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.message_ids import as_signed
from millstream.wire.pulsar.pulsar_pb2 import CommandRedeliverUnacknowledgedMessages

__all__ = ["handle_redeliver"]


def handle_redeliver(link: Link, command: CommandRedeliverUnacknowledgedMessages) -> None:
    """Have entries delivered again; all that the consumer holds if none is named. There is no answer."""
    linked = find_consumer(link, command.consumer_id)
    if linked is None:
        return
    epoch = command.consumer_epoch if command.HasField("consumer_epoch") else None
    if not command.message_ids:
        linked.consumer.redeliver(None, epoch)
        return
    remembered, ledger_id = linked.remembered, linked.ledger_id
    frames: dict[int, None] = {}
    for message_id in command.message_ids:
        if message_id.ledgerId == ledger_id:
            entry_id = as_signed(message_id.entryId)
            part = remembered.part(entry_id)
            frames[entry_id if part is None else part.base_offset] = None
    linked.consumer.redeliver(frames, epoch)
