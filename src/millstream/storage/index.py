"""The sparse index of one segment, by offset and by time, and what it vouches for.

    <20-digit base offset>.index, little-endian:
    byte  size  field
       0     8  magic and version, b"MSINDEX2"
       8     8  log_bytes        the log file was verified and flushed up to here
      16     8  next_offset      offset behind the last record of that part
      24     8  max_timestamp    ms; of all records of that part, -1 if there are none
      32     8  max_timestamp_at base offset of the first frame that has it
      40     4  entry count      each: uint32 offset - base offset, uint32 position, int64 time
      44     4  hole count       each: int64 position, stop position, first offset, next offset
      48     4  producer bytes   see millstream.storage.producers
      52     4  encodings        the magic values of all frames of that part that have records, or-ed: each is a bit
                                 of its own
      56        entries, holes, producers
     end     4  crc32c of all before it

An entry names the position of a frame, its base offset and the largest timestamp of all frames *before* it in
the segment, so that both offsets and times only grow from entry to entry.

The file is written when its log file is on the disk: when the segment is sealed, and at a clean stop. It can
always be rebuilt from the log; a missing or damaged one only costs the scan.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from crc32c import crc32c

from millstream.model.frame import FrameHeader

__all__ = ["Hole", "SegmentIndex", "decode_index", "encode_index"]

_MAGIC: Final = b"MSINDEX2"
_HEADER: Final = struct.Struct("<8sqqqqiiiI")
_HOLE: Final = struct.Struct("<qqqq")
_CRC: Final = struct.Struct("<I")
INTERVAL_BYTES: Final = 4096
"""Bytes of log between two entries at least, as Kafka's index.interval.bytes: an entry costs 16 bytes of memory."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A damaged stretch of a log file, never served.

    Args:
        position, stop_position: its bytes.
        first_offset, next_offset: the offsets that are lost.
    """

    position: int
    stop_position: int
    first_offset: int
    next_offset: int


@dataclass(slots=True)
class SegmentIndex:
    """What is known of a segment's log file up to `log_bytes`; the module's text says what each field means."""

    base_offset: int
    log_bytes: int = 0
    next_offset: int = -1
    max_timestamp: int = -1
    max_timestamp_at: int = -1
    encodings: int = 0
    offsets: "array[int]" = field(default_factory=lambda: array("I"))
    positions: "array[int]" = field(default_factory=lambda: array("I"))
    times: "array[int]" = field(default_factory=lambda: array("q"))
    holes: list[Hole] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.next_offset < 0:
            self.next_offset = self.base_offset

    def add(
        self, base_offset: int, next_offset: int, position: int, size_bytes: int, max_timestamp: int, magic: int
    ) -> None:
        """Take note of a frame that stands at a position."""
        self.encodings |= magic
        if not self.positions or position - self.positions[-1] >= INTERVAL_BYTES:
            self.offsets.append(base_offset - self.base_offset)
            self.positions.append(position)
            self.times.append(self.max_timestamp)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_at = base_offset
        self.next_offset = next_offset
        self.log_bytes = position + size_bytes

    def add_frame(self, header: FrameHeader, position: int) -> None:
        """Take note of a frame that stands at a position. One without records has neither a time nor an encoding."""
        latest, magic = (header.max_timestamp, header.magic) if header.record_count else (-1, 0)
        self.add(header.base_offset, header.last_offset + 1, position, header.size, latest, magic)

    def add_run(
        self, base_offset: int, position: int, sizes: Sequence[int], counts: Sequence[int], times: Sequence[int]
    ) -> None:
        """Take note of frames that stand one behind the other from a position on, but for their encoding.

        Args:
            base_offset, position: of the first.
            sizes, counts, times: bytes, offsets and the latest timestamp of each.
        """
        next_entry = self.positions[-1] + INTERVAL_BYTES if self.positions else 0
        latest = self.max_timestamp
        for size_bytes, count, time_ms in zip(sizes, counts, times, strict=True):
            if position >= next_entry:
                self.offsets.append(base_offset - self.base_offset)
                self.positions.append(position)
                self.times.append(latest)
                next_entry = position + INTERVAL_BYTES
            if time_ms > latest:
                latest = time_ms
                self.max_timestamp_at = base_offset
            base_offset += count
            position += size_bytes
        self.max_timestamp = latest
        self.next_offset = base_offset
        self.log_bytes = position

    def add_hole(self, hole: Hole) -> None:
        """Take note of a damaged stretch that ends what is known so far."""
        self.holes.append(hole)
        self.next_offset = hole.next_offset
        self.log_bytes = hole.stop_position

    def floor(self, offset: int) -> tuple[int, int]:
        """The base offset and the position of the last known frame that does not begin behind an offset."""
        entry = bisect_right(self.offsets, offset - self.base_offset) - 1
        if entry < 0:
            return self.base_offset, 0
        return self.base_offset + self.offsets[entry], self.positions[entry]

    def before_time(self, timestamp_ms: int) -> tuple[int, int]:
        """The base offset and the position of a frame before which no frame is as late as a time."""
        entry = bisect_left(self.times, timestamp_ms) - 1
        if entry < 0:
            return self.base_offset, 0
        return self.base_offset + self.offsets[entry], self.positions[entry]

    def hole_at(self, position: int) -> Hole | None:
        """The damaged stretch that begins at a position."""
        return next((hole for hole in self.holes if hole.position == position), None)


def encode_index(index: SegmentIndex, producers: bytes) -> bytes:
    """The content of an index file."""
    head = _HEADER.pack(
        _MAGIC,
        index.log_bytes,
        index.next_offset,
        index.max_timestamp,
        index.max_timestamp_at,
        len(index.offsets),
        len(index.holes),
        len(producers),
        index.encodings,
    )
    holes = b"".join(_HOLE.pack(h.position, h.stop_position, h.first_offset, h.next_offset) for h in index.holes)
    whole = b"".join(
        (head, index.offsets.tobytes(), index.positions.tobytes(), index.times.tobytes(), holes, producers)
    )
    return whole + _CRC.pack(crc32c(whole))


def decode_index(base_offset: int, content: bytes) -> tuple[SegmentIndex, bytes] | None:
    """Read an index file.

    Returns:
        The index and the producers' part; None if the file is damaged or of another version.
    """
    if len(content) < _HEADER.size + _CRC.size or content[:8] != _MAGIC:
        return None
    (crc,) = _CRC.unpack_from(content, len(content) - _CRC.size)
    if crc32c(memoryview(content)[: -_CRC.size]) != crc:
        return None
    _, log_bytes, next_offset, latest, latest_at, entries, holes, producer_bytes, encodings = _HEADER.unpack_from(
        content
    )
    index = SegmentIndex(base_offset, log_bytes, next_offset, latest, latest_at, encodings)
    position = _HEADER.size
    for column in (index.offsets, index.positions, index.times):
        stop = position + entries * column.itemsize
        column.frombytes(content[position:stop])
        position = stop
    for _ in range(holes):
        index.holes.append(Hole(*_HOLE.unpack_from(content, position)))
        position += _HOLE.size
    return index, content[position : position + producer_bytes]
