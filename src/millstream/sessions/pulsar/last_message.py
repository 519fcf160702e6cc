"""GET_LAST_MESSAGE_ID: where a topic ends at the moment, and how far the subscription has come.

Source: Pulsar binary protocol specification 3.0, "GetLastMessageId".
"""

from typing import Final

from millstream.model.frame import HEADER_BYTES, Attributes, Magic, read_frame_header
from millstream.sessions.pulsar.consumers import LinkedConsumer, connected_consumer
from millstream.sessions.pulsar.inspector import EntryInspector
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.message_ids import BEFORE_THE_FIRST
from millstream.wire.pulsar.entry import read_entry
from millstream.wire.pulsar.errors import InvalidEntry
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandGetLastMessageId,
    CommandGetLastMessageIdResponse,
    MessageIdData,
)

__all__ = ["handle_get_last_message_id"]

_STEPS_MAX: Final = 1000
"""Frames that are looked at from the end backwards: that many marks of transactions in a row count as no message."""
_NOTHING: Final = (-1, -1, 0)


def handle_get_last_message_id(link: Link, command: CommandGetLastMessageId) -> None:
    """Tell the id of the last message, and the place up to which the subscription has acknowledged everything."""
    linked = connected_consumer(link, command.consumer_id)
    entry_id, batch_index, end = _last_entry(linked)
    position = linked.subscription.position
    # Clients compare entry ids: as long as the last entry is not done with as a whole, it must look that way.
    acknowledged = entry_id - 1 if entry_id < position < end else position - 1
    link.send(
        CommandGetLastMessageIdResponse(
            request_id=command.request_id,
            last_message_id=_message_id(linked, entry_id, batch_index),
            consumer_mark_delete_position=_message_id(linked, acknowledged, -1),
        )
    )


def _message_id(linked: LinkedConsumer, entry_id: int, batch_index: int) -> MessageIdData:
    return MessageIdData(
        ledgerId=linked.ledger_id,
        entryId=entry_id & BEFORE_THE_FIRST,
        partition=linked.place.shown,
        batch_index=batch_index,
    )


def _last_entry(linked: LinkedConsumer) -> tuple[int, int, int]:
    """The last entry with a message for consumers: its id, the index of its last message (-1 if it is no batch), and
    the offset behind it; (-1, -1, 0) if there is none."""
    log = linked.partition.log
    translations = linked.link.shared.translations
    where = linked.place.topic.id, linked.place.partition
    inspector = EntryInspector(where, translations)
    partition = linked.partition
    offset = partition.stable_offset - 1
    for _ in range(_STEPS_MAX):
        if offset < log.start_offset:
            return _NOTHING
        data, _ = log.read(offset, 1)
        if not data:
            return _NOTHING
        header = read_frame_header(data)
        frame = data[: header.size]
        offset = header.base_offset - 1
        if header.attributes & Attributes.CONTROL or (
            header.attributes & Attributes.TRANSACTIONAL
            and (partition.is_aborted(header.base_offset) or inspector.is_hidden(header, frame))
        ):
            continue
        end = header.last_offset + 1
        if header.magic != Magic.PULSAR_ENTRY:
            pieces = translations.of(where, header, frame).entries
            if not pieces:
                continue
            last = pieces[-1]
            return last.first_offset, last.message_count - 1 if last.message_count > 1 else -1, end
        try:
            is_batch = read_entry(frame[HEADER_BYTES:]).is_batch
        except InvalidEntry:
            continue
        return header.base_offset, header.last_offset_delta if is_batch else -1, end
    return _NOTHING
