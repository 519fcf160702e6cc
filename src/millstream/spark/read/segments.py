"""Frames straight from the segment files of one partition.

The log lies in <data dir>/topics/<topic id>/<partition>/<20-digit base offset>.log, frame behind frame. Only what
the broker has said to be there is read, so the file may be growing meanwhile; and segments may be removed. What
does not look as it should is never interpreted here: the caller asks the broker for it, which knows the extent of
damage and what has been deleted.
"""

import os
import struct
from typing import Final, NamedTuple

from millstream.model.frame import HEADER_BYTES, LENGTH_OVERHEAD, MAGICS
from millstream.spark.read.frames import Frame, Stop, walk
from millstream.spark.read.indexes import SegmentIndex, read_index

__all__ = ["Piece", "SegmentFiles", "partition_directory"]

_FORMAT: Final = b"millstream 1\n"
"""The version of the layout that is understood, as the data directory's file `format` says it."""
_PIECE_BYTES: Final = 4 * 1024 * 1024
"""Read at a time: some ten thousand records, which make one Arrow batch of a good size."""
_HOP_BYTES: Final = 64 * 1024
_START: Final = struct.Struct(">qiibIhi")  # the header up to last_offset_delta
_BODY_BYTES_MIN: Final = HEADER_BYTES - LENGTH_OVERHEAD
_REMEMBERED_PLACES_MAX: Final = 10_000

_places: dict[str, tuple[int, int]] = {}
"""Offset and position in each file where the last read of it ended. Spark uses its Python workers again and again,
and the next micro-batch begins where the last one ended; without this it would go through the file from its start."""


class Piece(NamedTuple):
    """Some verified frames.

    Args:
        data: what they stand in.
        frames: in order, without a gap between them.
        next_offset: behind the last.
    """

    data: bytes
    frames: list[Frame]
    next_offset: int


def partition_directory(data_dir: str, topic_id: object, partition: int) -> str | None:
    """Where the files of a partition lie, if they can be read from here; None if not.

    Args:
        data_dir: what the broker says its data directory is. Whether the same path leads to the same files here
            is told by the topic's id.
    """
    path = f"{data_dir}/topics/{topic_id}/{partition}"
    if not os.path.isabs(data_dir) or not os.access(path, os.R_OK | os.X_OK):
        return None
    try:
        with open(f"{data_dir}/format", "rb") as file:
            return path if file.read(len(_FORMAT) + 1) == _FORMAT else None
    except OSError:
        return None


class SegmentFiles:
    """Reads a partition's log from its files, forwards.

    Args:
        directory: as `partition_directory` gives it.
        since_ms: frames without records as late as this time may be passed over; None to read all.
    """

    def __init__(self, directory: str, since_ms: int | None = None) -> None:
        self._directory = directory
        self._since_ms = since_ms
        self._index: SegmentIndex | None = None
        self._descriptor = -1
        self._path = ""
        self._position = 0
        self._expected = -1
        self._base = 0

    def close(self) -> None:
        """Close the open file."""
        if self._descriptor >= 0:
            if len(_places) >= _REMEMBERED_PLACES_MAX:
                _places.clear()
            if self._expected > self._base:
                _places[self._path] = self._expected, self._position
            os.close(self._descriptor)
            self._descriptor = -1

    def read(self, offset: int, stop_offset: int) -> Piece | None:
        """Read some frames.

        Args:
            offset: the first frame is the one that holds it.
            stop_offset: no frame that begins there or later; the log must reach up to here.

        Returns:
            At least one frame; none, and where to go on, if some are passed over; None if the files do not hold what
            they should.
        """
        try:
            # The next segment begins where this one ends.
            if self._descriptor < 0 or self._expected != offset or self._is_at_end():
                if not self._open(offset):
                    return None
                passed_to = self._pass_over(offset)
                if passed_to > offset:
                    return Piece(b"", [], min(passed_to, stop_offset))
                if not self._seek(offset):
                    self._expected = self._base  # where this ended is no place to remember
                    self.close()
                    return None
            return self._read(offset, stop_offset)
        except OSError:
            return None

    def _read(self, offset: int, stop_offset: int) -> Piece | None:
        size_bytes = _PIECE_BYTES
        while True:
            data = os.pread(self._descriptor, size_bytes, self._position)
            walked = walk(memoryview(data), self._expected, offset, stop_offset)
            if walked.found:
                self._position += walked.position
                self._expected = walked.next_offset
                return Piece(data, walked.found, walked.next_offset)
            left_bytes = os.fstat(self._descriptor).st_size - self._position
            if walked.stop is not Stop.SHORT or not size_bytes < walked.needed_bytes <= left_bytes:
                return None
            size_bytes = walked.needed_bytes

    def _pass_over(self, offset: int) -> int:
        """The offset before which no frame of the open segment is as late as it must be, for all that is known."""
        index, since_ms = self._index, self._since_ms
        if index is None or since_ms is None or not index.tells_times:
            return offset
        is_whole = index.log_bytes == os.fstat(self._descriptor).st_size
        if is_whole and index.max_timestamp_ms < since_ms:
            return index.next_offset
        return index.place_before(since_ms)[0]

    def _is_at_end(self) -> bool:
        return self._position == os.fstat(self._descriptor).st_size

    def _open(self, offset: int) -> bool:
        """Open the segment that holds an offset. Raises OSError."""
        self.close()
        names = (name.removesuffix(".log") for name in os.listdir(self._directory) if name.endswith(".log"))
        base = max((base for base in map(int, filter(str.isdecimal, names)) if base <= offset), default=None)
        if base is None:
            return False
        self._path = f"{self._directory}/{base:020d}.log"
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self._base = self._expected = base
        self._position = 0
        needs_index = offset > base or self._since_ms is not None
        self._index = read_index(self._path, base) if needs_index else None
        return True

    def _seek(self, offset: int) -> bool:
        """Go to the frame of the open segment that holds an offset. Raises OSError."""
        places = {(self._expected, self._position)}
        if self._path in _places:
            places.add(_places[self._path])
        if self._index is not None:
            places.add(self._index.place_of(offset))
        # Nearest first; a place that is not what it seems costs a try.
        for expected, position in sorted(places, reverse=True):
            if expected <= offset:
                self._expected, self._position = expected, position
                if self._hop(offset):
                    return True
        return False

    def _hop(self, offset: int) -> bool:
        """Go from header to header to the frame that holds an offset, or to the end of the file right before it.

        Checksums of what is passed over are not looked at: if a length or a count in it were wrong, the next
        header would not be where, and what, it must be.
        """
        block, block_at = b"", self._position
        while True:
            at = self._position - block_at
            if len(block) - at < HEADER_BYTES:
                block, block_at, at = os.pread(self._descriptor, _HOP_BYTES, self._position), self._position, 0
            if not block:
                return self._expected == offset
            if len(block) < HEADER_BYTES:
                return False
            base, length, epoch, magic, _, _, delta = _START.unpack_from(block, at)
            if base != self._expected or epoch or magic not in MAGICS or length < _BODY_BYTES_MIN or delta < 0:
                return False
            if base + delta >= offset:
                return True
            self._expected = base + delta + 1
            self._position += length + LENGTH_OVERHEAD
