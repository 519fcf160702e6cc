"""Kafka batches as tables of records, and tables as Kafka batches: what `millstream.wire.kafka.records` does with an
object for each record, with compiled loops, for nearly all batches."""

from typing import Final

from millstream.model.frame import CODEC_MASK, HEADER_BYTES, Attributes
from millstream.model.frame_span import HEAD_FIELDS, FrameSpan
from millstream.model.numbers import numbers
from millstream.model.record_table import HEADER_FIELDS, ROW_FIELDS, RecordTable
from millstream.wire.compression import Codec, decompress
from millstream.wire.kafka.record_rows import (
    COMPILED,
    RECORD_BYTES_MAX,
    ROOM_FOR_HEADERS,
    batch_end,
    read_rows,
    write_rows,
)
from millstream.wire.kafka.records import seal_batch

__all__ = ["place_table", "read_table"]

_RECORD_BYTES_MIN: Final = 7
_HEADER_BYTES_MAX: Final = 10
_MORE_HEADERS: Final = 8


def read_table(span: FrameSpan, *, compiled: bool = COMPILED) -> RecordTable | None:
    """Take stored batches apart.

    Args:
        span: of frames of magic 2.
        compiled: whether the loops are to be used; they are slow where they are not compiled.

    Returns:
        Their records; None if one is a control batch, or they are out of the ordinary or damaged: `read_frame` knows.

    Raises:
        CompressionError: it cannot be decompressed.
    """
    if not compiled:
        return None
    data, count = span.data, span.records
    attributes = span.heads[7]  # the first frame's; where there are more, none of them has these bits
    if attributes & (Attributes.CONTROL | CODEC_MASK) > Codec.ZSTD:
        return None
    if attributes & CODEC_MASK:
        data = decompress(Codec(attributes & CODEC_MASK), data[HEADER_BYTES:])
        span = span.with_body(len(data))
    if not 0 <= count <= len(data) // _RECORD_BYTES_MIN:
        return None
    rows = numbers(ROW_FIELDS * count)
    header_room = count + 16
    while True:
        headers = numbers(HEADER_FIELDS * header_room)
        totals = numbers(4)
        found = read_rows(data, span.heads, span.count, rows, headers, totals)
        if found != ROOM_FOR_HEADERS:
            break
        header_room *= _MORE_HEADERS
    if found < 0:
        return None
    return RecordTable(span, data, found, rows, headers, *totals[:3].tolist())


def place_table(table: RecordTable) -> bytearray:
    """Build batches that take the place of frames of another encoding, as few as may be; see `place_batch`.

    Args:
        table: the records, with times less than 2**62 from each other.
    """
    heads, frames, rows = table.span.heads, table.span.count, table.rows
    room = table.content_bytes + RECORD_BYTES_MAX * table.count + _HEADER_BYTES_MAX * table.header_count
    out = bytearray(room + HEADER_BYTES * frames)
    state = numbers(4)
    position = frame = first = 0
    with memoryview(out) as target:
        while frame < frames:
            behind = batch_end(rows, heads, frames, frame)
            head, last = heads[frame * HEAD_FIELDS : frame * HEAD_FIELDS + HEAD_FIELDS], (behind - 1) * HEAD_FIELDS
            stop = heads[last + 8]
            state[0], state[1] = head[0], rows[first * ROW_FIELDS + 1] if stop > first else head[5]
            first_ms = state[1]
            end = write_rows(table.data, rows, table.headers, first, stop, state, target, position + HEADER_BYTES)
            latest_ms = state[1] if stop > first else head[6]
            attributes = Attributes.LOG_APPEND_TIME if stop > first and state[3] == stop - first else 0
            last_delta = heads[last] + heads[last + 4] - 1 - head[0]
            fields = attributes, last_delta, first_ms, latest_ms, -1, -1, -1, stop - first
            seal_batch(target[position:end], table.base_offset + head[0], fields)
            position, frame, first = end, behind, stop
    del out[position:]
    return out
