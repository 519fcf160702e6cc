"""Kafka batches as tables of records, and tables as Kafka batches: what `millstream.wire.kafka.records` does with an
object for each record, with compiled loops, for nearly all batches."""

from typing import Final

from millstream.model.frame import CODEC_MASK, HEADER_BYTES, Attributes, FrameHeader, read_frame_header
from millstream.model.record_table import HEADER_FIELDS, ROW_FIELDS, RecordTable, numbers
from millstream.wire.compression import Codec, decompress
from millstream.wire.kafka.record_rows import (
    COMPILED,
    RECORD_BYTES_MAX,
    ROOM_FOR_HEADERS,
    read_rows,
    write_rows,
)
from millstream.wire.kafka.records import place_body

__all__ = ["place_table", "read_table"]

_TIME_MAX_MS: Final = 2**60
"""Times up to which the loops need not look where sums of them lead."""
_HEADER_BYTES_MAX: Final = 10
_MORE_HEADERS: Final = 8


def read_table(frame: memoryview, *, compiled: bool = COMPILED) -> RecordTable | None:
    """Take a stored batch apart.

    Args:
        frame: one whole frame of magic 2.
        compiled: whether the loops are to be used; they are slow where they are not compiled.

    Returns:
        Its records; None if it is a control batch, or they are out of the ordinary or damaged: `read_frame` knows.

    Raises:
        CompressionError: it cannot be decompressed.
    """
    header = read_frame_header(frame)
    attributes = header.attributes
    if not compiled or attributes & (Attributes.CONTROL | CODEC_MASK) > Codec.ZSTD:
        return None
    if abs(header.first_timestamp) > _TIME_MAX_MS or abs(header.max_timestamp) > _TIME_MAX_MS:
        return None
    body = decompress(Codec(attributes & CODEC_MASK), frame[HEADER_BYTES : header.size])
    count = header.record_count
    # A record has 7 bytes at least, a header 2.
    if not 0 <= count <= len(body) // 7:
        return None
    append_time = 1 if attributes & Attributes.LOG_APPEND_TIME else 0
    rows = numbers(ROW_FIELDS * count)
    header_room = count + 16
    while True:
        headers = numbers(HEADER_FIELDS * header_room)
        totals = numbers(4)
        found = read_rows(
            body, count, header.first_timestamp, header.max_timestamp, append_time, rows, headers, totals
        )
        if found != ROOM_FOR_HEADERS:
            break
        header_room *= _MORE_HEADERS
    if found < 0:
        return None
    return RecordTable(header.base_offset, body, count, rows, headers, *totals[:3].tolist())


def place_table(table: RecordTable, frame: FrameHeader) -> bytearray:
    """Build a batch that takes the place of a frame of another encoding; see `place_batch`.

    Args:
        table: its records, with times less than 2**62 from each other.
        frame: the frame's header.
    """
    count = table.count
    first_ms = table.rows[1] if count else frame.first_timestamp
    times = numbers(2)
    times[0] = first_ms
    room = table.content_bytes + RECORD_BYTES_MAX * count + _HEADER_BYTES_MAX * table.header_count
    batch = bytearray(HEADER_BYTES + room)
    written = write_rows(table.data, table.rows, table.headers, count, times, memoryview(batch)[HEADER_BYTES:])
    del batch[HEADER_BYTES + written :]
    latest_ms = times[0] if count else frame.max_timestamp
    attributes = Attributes.LOG_APPEND_TIME if count and times[1] == count else 0
    place_body(batch, frame, attributes, first_ms, latest_ms, count)
    return batch
