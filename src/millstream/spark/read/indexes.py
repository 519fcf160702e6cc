"""The index file of a segment, as far as a reader of the log's files can use it: where offsets and times stand.

    <20-digit base offset>.index, little-endian:
    byte  size  field
       0     8  magic and version, b"MSINDEX2"
       8     8  log_bytes        the log file was verified up to here
      16     8  next_offset      offset behind the last record of that part
      24     8  max_timestamp    ms, of all of that part; -1 if it is empty
      32     8                   (not used here)
      40     4  entry count      each: uint32 offset - base offset, uint32 position, int64 time
      44     4  hole count
      48     4                   (not used here)
      52     4  encodings        the magic values of all frames of that part, or-ed
      56        the offsets of all entries, their positions, their times, and more
     end     4  crc32c of all before it

An entry names the position of a frame, its base offset, and the largest time of all frames before it in the segment.
There is a file for every segment that takes no more records; that of the last one is written when the broker stops,
and may lag behind. What is found by it is only where to begin: the frames there are verified as ever.
"""

import os
import struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from millstream.model.frame import Magic

__all__ = ["SegmentIndex", "read_index"]

_MAGIC: Final = b"MSINDEX2"
_HEADER: Final = struct.Struct("<8sqqqqiiiI")
_CRC: Final = struct.Struct("<I")
_ENTRY_BYTES: Final = 16


class SegmentIndex(NamedTuple):
    """What an index file says."""

    base_offset: int
    log_bytes: int
    next_offset: int
    max_timestamp_ms: int
    holes: int
    encodings: int
    offsets: npt.NDArray[np.uint32]
    positions: npt.NDArray[np.uint32]
    times_ms: npt.NDArray[np.int64]

    @property
    def tells_times(self) -> bool:
        """Whether no record is later than the index says: so it is if all of them came from Kafka producers."""
        return self.encodings == Magic.KAFKA_V2 and not self.holes

    def place_of(self, offset: int) -> tuple[int, int]:
        """Base offset and position of the last frame with an entry that does not begin behind an offset."""
        return self._entry(int(np.searchsorted(self.offsets, max(offset - self.base_offset, 0), side="right")) - 1)

    def place_before(self, time_ms: int) -> tuple[int, int]:
        """Base offset and position of a frame before which none is as late as a time."""
        return self._entry(int(np.searchsorted(self.times_ms, time_ms)) - 1)

    def _entry(self, number: int) -> tuple[int, int]:
        if number < 0:
            return self.base_offset, 0
        return self.base_offset + int(self.offsets[number]), int(self.positions[number])


def read_index(log_path: str, base_offset: int) -> SegmentIndex | None:
    """Read the index of a segment; None if there is none, or it is damaged, or not of a version that is known here.

    Args:
        log_path: the segment's log file.
        base_offset: of the segment.
    """
    try:
        with open(log_path.removesuffix(".log") + ".index", "rb") as file:
            content = file.read(os.fstat(file.fileno()).st_size)
    except OSError:
        return None
    body_bytes = len(content) - _CRC.size
    if body_bytes < _HEADER.size or content[:8] != _MAGIC:
        return None
    if crc32c(memoryview(content)[:body_bytes]) != _CRC.unpack_from(content, body_bytes)[0]:
        return None
    _, log_bytes, next_offset, latest_ms, _, entries, holes, _, encodings = _HEADER.unpack_from(content)
    if not 0 <= entries <= (body_bytes - _HEADER.size) // _ENTRY_BYTES:
        return None
    offsets = np.frombuffer(content, "<u4", entries, _HEADER.size)
    positions = np.frombuffer(content, "<u4", entries, _HEADER.size + 4 * entries)
    times_ms = np.frombuffer(content, "<i8", entries, _HEADER.size + 8 * entries)
    return SegmentIndex(
        base_offset, log_bytes, next_offset, latest_ms, holes, encodings, offsets, positions, times_ms
    )
