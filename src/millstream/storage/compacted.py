"""What compaction has left of a log, up to an offset: a file that is written once, and never changed.

    <the log's directory>/<20-digit horizon>-<run>.compacted

    byte 0       "MSCOMP1\\n"
    from 8 on    frames, see millstream.model.frame, by rising offsets; between them offsets may be missing
    then         the index: for about every 64 KiB of frames the base offset of a frame and its position, int64 each
    last 36      horizon: int64, the first offset that the file says nothing of
                 frames end: int64, the position behind the last frame
                 records: int64, in all frames
                 crc32c: uint32, of the index and the three fields before
                 "MSCOMP1\\n"

All numbers are big-endian. Frames are verified by their own checksums when they are read: one that fails is left out,
with those behind it up to the next that the index knows, and a line in the log.
"""

import logging
import struct
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from crc32c import crc32c

from millstream.model.frame import HEADER_BYTES, FrameHeader, frame_crc, read_frame_header
from millstream.storage.errors import StorageError
from millstream.storage.files import File, Files

__all__ = ["SUFFIX", "CompactedDamaged", "CompactedFile", "CompactedWriter"]

_log = logging.getLogger(__name__)
SUFFIX: Final = ".compacted"
_MAGIC: Final = b"MSCOMP1\n"
_FOOTER: Final = struct.Struct(">qqqI8s")
_ENTRY: Final = struct.Struct(">qq")
_STRIDE_BYTES: Final = 64 * 1024
"""Bytes of frames for one entry of the index: what a reader has to pass over at most."""
Buffer = bytes | bytearray | memoryview


class CompactedDamaged(StorageError):
    """A compacted file that is not whole, or is none."""


class CompactedWriter:
    """Writes one file. Each method may run off the loop's thread, one at a time.

    Args:
        files: the door to the disk.
        path: of the file, which is new.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self._file: File | None = None
        self._position = len(_MAGIC)
        self._indexed = -_STRIDE_BYTES
        self._index = bytearray()
        self._records = 0

    def write(self, frames: Sequence[tuple[FrameHeader, Buffer]]) -> None:
        """Add frames. Raises OSError, DiskFull."""
        if self._file is None:
            self._file = self._files.open(self.path)
            self._file.truncate(0)
            self._file.write(0, [_MAGIC])
        start = self._position
        for header, frame in frames:
            if self._position - self._indexed >= _STRIDE_BYTES:
                self._index += _ENTRY.pack(header.base_offset, self._position)
                self._indexed = self._position
            self._records += header.record_count
            self._position += len(frame)
        if frames:
            self._file.write(start, [frame for _, frame in frames])

    def finish(self, horizon: int) -> None:
        """Make the file whole and lasting. Raises OSError, DiskFull.

        Args:
            horizon: the first offset that the file says nothing of.
        """
        self.write([])
        assert self._file is not None
        fields = _FOOTER.pack(horizon, self._position, self._records, 0, _MAGIC)[:24]
        checksum = crc32c(bytes(self._index) + fields)
        self._file.write(
            self._position, [self._index, _FOOTER.pack(horizon, self._position, self._records, checksum, _MAGIC)]
        )
        self._file.sync()
        self.close()
        self._files.sync_directory(self.path.rpartition("/")[0])

    def close(self) -> None:
        """Give the descriptor back."""
        if self._file is not None:
            self._file.close()
            self._file = None


class CompactedFile:
    """A whole file, to be read on the loop's thread.

    Args:
        files: the door to the disk.
        path: of the file.

    Raises:
        CompactedDamaged, OSError: it cannot be read.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self.size_bytes = files.size(path)
        if self.size_bytes < len(_MAGIC) + _FOOTER.size:
            raise CompactedDamaged(f"{path} is not there, or not whole")
        footer_at = self.size_bytes - _FOOTER.size
        footer = files.read_at(path, footer_at, _FOOTER.size)
        self.horizon: int
        self.records: int
        self.horizon, self._end, self.records, checksum, magic = _FOOTER.unpack(footer)
        if magic != _MAGIC or not len(_MAGIC) <= self._end <= footer_at:
            raise CompactedDamaged(f"{path} has no footer")
        index = files.read_at(path, self._end, footer_at - self._end)
        if len(index) % _ENTRY.size or crc32c(index + footer[:24]) != checksum:
            raise CompactedDamaged(f"the index of {path} is damaged")
        self._offsets: array[int] = array("q")
        self._positions: array[int] = array("q")
        for offset, position in _ENTRY.iter_unpack(index):
            self._offsets.append(offset)
            self._positions.append(position)

    def read(self, offset: int, max_bytes: int) -> tuple[memoryview, int]:
        """Whole frames from the first at or behind an offset on; see `FrameSource.read`. Raises OSError."""
        place = max(bisect_right(self._offsets, offset) - 1, 0)
        parts: list[memoryview] = []
        size_bytes, behind = 0, offset
        while place < len(self._positions):
            start = self._positions[place]
            stop = self._positions[place + 1] if place + 1 < len(self._positions) else self._end
            data = memoryview(self._files.read_at(self.path, start, stop - start))
            for header, frame in self._frames(data, start):
                if header.last_offset < offset:
                    continue
                if parts and size_bytes + len(frame) > max_bytes:
                    return _joined(parts), behind
                parts.append(frame)
                size_bytes += len(frame)
                behind = header.last_offset + 1
            place += 1
            if size_bytes >= max_bytes:
                break
        return _joined(parts), self.horizon if place >= len(self._positions) else behind

    def last_frame(self) -> memoryview | None:
        """The last frame; None if there is none. Raises OSError."""
        if not self._positions:
            return None
        start = self._positions[-1]
        frames = self._frames(memoryview(self._files.read_at(self.path, start, self._end - start)), start)
        return frames[-1][1] if frames else None

    def _frames(self, data: memoryview, at: int) -> list[tuple[FrameHeader, memoryview]]:
        """The frames of one stride of the index."""
        found: list[tuple[FrameHeader, memoryview]] = []
        position = 0
        while position < len(data):
            whole = len(data) - position >= HEADER_BYTES
            header = read_frame_header(data, position) if whole else None
            if header is None or header.size < HEADER_BYTES or position + header.size > len(data):
                break
            frame = data[position : position + header.size]
            if frame_crc(frame) != header.crc:
                break
            found.append((header, frame))
            position += header.size
        if position < len(data):
            _log.error("damage file=%s position=%d bytes=%d", self.path, at + position, len(data) - position)
        return found


def _joined(parts: list[memoryview]) -> memoryview:
    return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
