"""GET_LAST_MESSAGE_ID: where a topic ends at the moment, and how far the subscription has come.

Source: Pulsar binary protocol specification 3.0, "GetLastMessageId".
"""

from typing import Final, NamedTuple

from millstream.broker.compaction import CompactedView
from millstream.model.frame import HEADER_BYTES, Attributes, FrameHeader, Magic, read_frame_header
from millstream.sessions.pulsar.consumers import LinkedConsumer, connected_consumer
from millstream.sessions.pulsar.inspector import EntryInspector
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.message_ids import BEFORE_THE_FIRST
from millstream.wire.pulsar.ack_set import open_messages
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


class _Last(NamedTuple):
    """A last entry.

    Args:
        entry_id: its id.
        batch_index: of its last message; -1 if it is no batch.
        end: the offset behind it.
    """

    entry_id: int
    batch_index: int
    end: int


_NOTHING: Final = _Last(-1, -1, 0)


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


def _last_entry(linked: LinkedConsumer) -> _Last:
    """The last entry with a message for a consumer."""
    partition, source = linked.partition, linked.consumer.request.source
    log = partition.log
    inspector = EntryInspector((linked.place.topic.id, linked.place.partition), linked.link.shared.translations)
    horizon = source.horizon if source is not None else 0
    offset = partition.stable_offset - 1
    for _ in range(_STEPS_MAX):
        if offset < max(log.start_offset, horizon):
            break
        data, _ = log.read(offset, 1)
        if not data:
            break
        header = read_frame_header(data)
        frame = data[: header.size]
        offset = header.base_offset - 1
        if header.attributes & Attributes.CONTROL or (
            header.attributes & Attributes.TRANSACTIONAL
            and (partition.is_aborted(header.base_offset) or inspector.is_hidden(header, frame))
        ):
            continue
        last = _described(linked, header, frame)
        if last is not None:
            return last
    if isinstance(source, CompactedView):
        kept = source.last_frame()
        if kept is not None:
            return _described(linked, read_frame_header(kept), kept) or _NOTHING
    return _NOTHING


def _described(linked: LinkedConsumer, header: FrameHeader, frame: memoryview) -> _Last | None:
    """The last entry that stands for a frame; None if there is no message in it."""
    end = header.last_offset + 1
    if header.magic != Magic.PULSAR_ENTRY:
        where = linked.place.topic.id, linked.place.partition
        pieces = linked.link.shared.translations.of(where, header, frame).entries
        if not pieces:
            return None
        last = pieces[-1]
        index = last.message_count - 1 if last.open is None else last.open.bit_length() - 1
        return _Last(last.first_offset, index if last.message_count > 1 else -1, end)
    try:
        entry = read_entry(frame[HEADER_BYTES:])
    except InvalidEntry:
        return None
    if not entry.is_batch:
        return _Last(header.base_offset, -1, end)
    index = header.last_offset_delta
    if entry.metadata.compacted_batch_indexes:
        index = open_messages(entry).bit_length() - 1
    return _Last(header.base_offset, index, end)
