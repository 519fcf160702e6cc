"""Pulsar entries as tables of records, and tables as entries: what `millstream.wire.pulsar.records` does with an
object for each record, with compiled loops, for nearly all batches."""

from collections.abc import Iterator
from typing import Final

from millstream.model.frame import HEADER_BYTES, Attributes, read_frame_header
from millstream.model.record_table import HEADER_FIELDS, ROW_FIELDS, RecordTable, numbers
from millstream.wire.pulsar.entry import TAKEN_OUT, Entry, encode_entry, read_entry, uncompressed_payload
from millstream.wire.pulsar.limits import BATCH_MESSAGES_MAX, MESSAGE_BYTES_MAX
from millstream.wire.pulsar.message_rows import (
    COMPILED,
    FIELD_BYTES_MAX,
    FIELDS,
    ROOM_FOR_HEADERS,
    STATE,
    read_rows,
    write_rows,
)
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata
from millstream.wire.pulsar.records import (
    ORDERING_KEY_HEADER,
    PUBLISH_TIME_HEADER,
    TRANSLATED_PRODUCER_NAME,
    BuiltEntry,
    build_entry,
    describe_single,
    set_key,
)
from millstream.wire.pulsar.sticky_key import partition_key

__all__ = ["build_table_entries", "read_table"]

_TIME_MAX_MS: Final = 2**60
_ORDERING_NAME: Final = ORDERING_KEY_HEADER.encode()
_PUBLISH_NAME: Final = PUBLISH_TIME_HEADER.encode()
_MORE_HEADERS: Final = 8
_TAKEN_OUT: Final = memoryview(TAKEN_OUT)


def read_table(frame: memoryview, *, compiled: bool = COMPILED) -> RecordTable | None:
    """Take a stored entry apart.

    Args:
        frame: one whole frame of magic PULSAR_ENTRY.
        compiled: whether the loops are to be used; they are slow where they are not compiled.

    Returns:
        Its records; None if they are out of the ordinary or damaged: `read_records` knows.

    Raises:
        MalformedEntry, UnsupportedCompression: as `read_records`.
    """
    if not compiled:
        return None
    header = read_frame_header(frame)
    entry = read_entry(frame[HEADER_BYTES : header.size])
    metadata = entry.metadata
    if entry.is_encrypted or entry.is_chunk:
        return None
    if metadata.schema_version:
        return None  # each record tells it in a header
    if metadata.publish_time > _TIME_MAX_MS or abs(header.max_timestamp) > _TIME_MAX_MS:
        return None
    append_time = 1 if header.attributes & Attributes.LOG_APPEND_TIME else 0
    if not entry.is_batch:
        return _single_table(entry, header.base_offset, header.max_timestamp if append_time else None)
    payload = uncompressed_payload(entry)
    count = metadata.num_messages_in_batch
    if not 0 <= count <= len(payload) // 6:
        return None
    told_time = b"" if metadata.producer_name == TRANSLATED_PRODUCER_NAME else b"%d" % metadata.publish_time
    stop = len(payload)
    told = numbers(6)
    told[0], told[1] = stop, len(_ORDERING_NAME)
    told[2], told[3] = stop + len(_ORDERING_NAME), len(_PUBLISH_NAME)
    told[4], told[5] = stop + len(_ORDERING_NAME) + len(_PUBLISH_NAME), len(told_time)
    times = numbers(3)
    times[0], times[1], times[2] = metadata.publish_time, header.max_timestamp, append_time
    fields = numbers(FIELDS)
    rows = numbers(ROW_FIELDS * count)
    header_room = count + 16
    while True:
        data = memoryview(bytearray().join((payload, _ORDERING_NAME, _PUBLISH_NAME, told_time)))
        headers = numbers(HEADER_FIELDS * header_room)
        totals = numbers(3)
        found = read_rows(data, stop, count, times, told, fields, rows, headers, totals)
        if found != ROOM_FOR_HEADERS:
            break
        header_room *= _MORE_HEADERS
    if found < 0:
        return None
    return RecordTable(header.base_offset, data, found, rows, headers, *totals.tolist())


def _single_table(entry: Entry, offset: int, append_time_ms: int | None) -> RecordTable | None:
    """The table of an entry of one message, which is no batch; None if it has headers."""
    metadata = entry.metadata
    if metadata.properties or metadata.HasField("ordering_key") or metadata.event_time:
        return None
    payload = uncompressed_payload(entry)
    key = partition_key(metadata)
    value_bytes = -1 if metadata.null_value else len(payload)
    rows = numbers(ROW_FIELDS)
    rows[1] = metadata.publish_time if append_time_ms is None else append_time_ms
    rows[2] = 0 if append_time_ms is None else 1
    rows[4], rows[6] = -1, value_bytes
    data = payload
    if key is not None:
        data = memoryview(b"".join((payload, key)))
        rows[3], rows[4] = len(payload), len(key)
    value_bytes = max(value_bytes, 0)
    return RecordTable(offset, data, 1, rows, numbers(0), value_bytes + len(key or b""), value_bytes, 0)


def build_table_entries(
    table: RecordTable, *, first_offset: int, message_count: int, content_bytes_max: int = MESSAGE_BYTES_MAX // 2
) -> Iterator[BuiltEntry]:
    """Build entries of the records of one frame; see `build_entries`, which takes part of a frame, too.

    Args:
        table: its records.
        first_offset, message_count: the offsets that the entries stand for: those of the frame.
        content_bytes_max: as there.
    """
    room = 2 * table.content_bytes + FIELD_BYTES_MAX * (table.count + table.header_count + 2)
    out = memoryview(bytearray(room + len(TAKEN_OUT) * (message_count - table.count)))
    start = first_offset - table.base_offset
    state = numbers(STATE)
    state[2] = start

    def describe(index: int, headers_before: int) -> bytes:
        return describe_single(table.record(index, headers_before))

    end = start + message_count
    while state[2] < end:
        first, headers_before, place = state[0], state[1], state[2]
        # Places are counted from the start of the frame, where entries of the largest number of them begin.
        stop = min(start + (place - start) // BATCH_MESSAGES_MAX * BATCH_MESSAGES_MAX + BATCH_MESSAGES_MAX, end)
        written = write_rows(
            table.data,
            table.rows,
            table.headers,
            table.count,
            state,
            stop,
            content_bytes_max,
            _TAKEN_OUT,
            describe,
            out,
        )
        if written < 0:
            raise AssertionError("a batch has no room")
        yield _built(table, first, headers_before, place, state, out[:written])


def _built(
    table: RecordTable, first: int, headers_before: int, place: int, state: memoryview, payload: memoryview
) -> BuiltEntry:
    """The entry of some rows, from `first` on, whose messages are written."""
    count, records = state[2] - place, state[0] - first
    first_offset = table.base_offset + place
    if count == 1 and records == 1:
        record = table.record(first, headers_before)
        return BuiltEntry(first_offset, 1, build_entry([record], first_offset, 1))
    metadata = MessageMetadata(
        producer_name=TRANSLATED_PRODUCER_NAME,
        sequence_id=first_offset,
        publish_time=state[3],
        num_messages_in_batch=count,
    )
    if records and state[4]:
        set_key(metadata, table.key(first))  # what Key_Shared looks at
    if records < count:
        there = set(table.rows[first * ROW_FIELDS : state[0] * ROW_FIELDS : ROW_FIELDS])
        metadata.compacted_batch_indexes.extend(at - place for at in range(place, state[2]) if at not in there)
    return BuiltEntry(first_offset, count, encode_entry(metadata, payload))
