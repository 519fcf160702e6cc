"""Pulsar entries as tables of records, and tables as entries: what `millstream.wire.pulsar.records` does with an
object for each record, with compiled loops, for nearly all batches."""

from collections.abc import Iterator
from typing import Final

from millstream.model.frame import HEADER_BYTES
from millstream.model.frame_span import FrameSpan
from millstream.model.numbers import numbers
from millstream.model.record_table import HEADER_FIELDS, ROW_FIELDS, RecordTable
from millstream.wire.pulsar.entry import (
    MESSAGE_BYTES_MIN,
    TAKEN_OUT,
    Entry,
    encode_entry,
    read_entry,
    uncompressed_payload,
)
from millstream.wire.pulsar.entry_rows import ENTRY_BYTES_MAX, FIELD_BYTES_MAX, STATE, write_entries, write_rows
from millstream.wire.pulsar.entry_run import EntryRun
from millstream.wire.pulsar.limits import BATCH_MESSAGES_MAX, MESSAGE_BYTES_MAX
from millstream.wire.pulsar.message_rows import (
    COMPILED,
    ENTRY_FIELDS,
    FIELDS,
    ROOM_FOR_HEADERS,
    TEXT_BYTES,
    TEXT_PLACES,
    read_entries,
)
from millstream.wire.pulsar.pulsar_pb2 import NONE, MessageMetadata
from millstream.wire.pulsar.records import (
    ORDERING_KEY_HEADER,
    PUBLISH_TIME_HEADER,
    SCHEMA_VERSION_HEADER,
    TRANSLATED_PRODUCER_NAME,
    BuiltEntry,
    build_entry,
    describe_single,
    set_key,
)

__all__ = ["build_run", "build_table_entries", "read_table"]

_NAMES: Final = tuple(name.encode() for name in (ORDERING_KEY_HEADER, PUBLISH_TIME_HEADER, SCHEMA_VERSION_HEADER))
_TEXTS: Final = b"".join(_NAMES)
_MORE_HEADERS: Final = 8
_TAKEN_OUT: Final = memoryview(TAKEN_OUT)


def read_table(span: FrameSpan, *, compiled: bool = COMPILED) -> RecordTable | None:
    """Take stored entries apart.

    Args:
        span: of frames of magic PULSAR_ENTRY.
        compiled: whether the loops are to be used; they are slow where they are not compiled.

    Returns:
        Their records; None if they are out of the ordinary or damaged: `read_records` knows.

    Raises:
        MalformedEntry, UnsupportedCompression: as `read_records`.
    """
    if not compiled:
        return None
    parts: tuple[bytes | memoryview, ...] = (span.data,)
    if span.count == 1:
        entry = read_entry(span.data[HEADER_BYTES:])
        if entry.is_encrypted or entry.is_chunk:
            return None
        if entry.metadata.compression != NONE:
            parts = _unpacked(entry)
            span = span.with_body(sum(map(len, parts)))
    count, stop = span.records, sum(map(len, parts))
    if not 0 <= count <= stop // MESSAGE_BYTES_MIN:
        return None
    fields, entry_fields = numbers(FIELDS), numbers(ENTRY_FIELDS)
    rows = numbers(ROW_FIELDS * count)
    header_room = count + 16
    while True:
        data = memoryview(bytearray().join((*parts, _TEXTS, bytes(TEXT_BYTES * span.count))))
        places = numbers(TEXT_PLACES)
        at = stop
        for place, name in zip((0, 2, 6), _NAMES, strict=True):
            places[place], places[place + 1] = at, len(name)
            at += len(name)
        places[8] = at
        headers = numbers(HEADER_FIELDS * header_room)
        totals = numbers(4)
        found = read_entries(data, span.heads, span.count, entry_fields, places, fields, rows, headers, totals)
        if found != ROOM_FOR_HEADERS:
            break
        header_room *= _MORE_HEADERS
    if found < 0:
        return None
    return RecordTable(span, data, found, rows, headers, *totals[:3].tolist())


def _unpacked(entry: Entry) -> tuple[bytes, memoryview]:
    """What a compressed entry would be if it were not: its metadata, and its payload."""
    payload = uncompressed_payload(entry)
    metadata = MessageMetadata()
    metadata.CopyFrom(entry.metadata)
    metadata.ClearField("compression")
    metadata.ClearField("uncompressed_size")
    head = metadata.SerializeToString()
    return len(head).to_bytes(4, "big") + head, payload


def build_run(table: RecordTable) -> EntryRun | None:
    """Build an entry for each frame of a span.

    Args:
        table: the records of small frames.

    Returns:
        The entries; None if a frame takes offsets that have no record.
    """
    span = table.span
    room = 2 * table.content_bytes + FIELD_BYTES_MAX * (table.count + table.header_count + 2)
    out = memoryview(bytearray(room + ENTRY_BYTES_MAX * (span.count + 1)))
    starts, offsets = numbers(span.count + 1), numbers(span.count)

    def describe(index: int, headers_before: int) -> bytes:
        return describe_single(table.record(index, headers_before))

    def describe_entry(index: int, headers_before: int) -> bytes:
        record = table.record(index, headers_before)
        return bytes(build_entry([record], record.offset, 1))

    places = table.data, table.rows, table.headers, span.heads, span.count, table.base_offset
    size = write_entries(*places, describe, describe_entry, out, out, starts, offsets)
    if size < 0:
        return None
    return EntryRun(memoryview(bytes(out[:size])), starts, offsets, span.end_offset)


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
