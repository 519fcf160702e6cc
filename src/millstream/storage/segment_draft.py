"""A segment that is to take the place of one or several: written beside them, and put there in one step.

    <20-digit base offset>.log.new    the draft; the name of the first segment that it replaces

What a crash finds is the old segments or the new one, whole:

1. The draft is written and flushed.
2. The index file of the first segment is removed, lasting: an index vouches for the bytes of one file only.
3. The draft is renamed to the name of the first segment's log file. Here the new one counts.
4. The name is made to last. Only then the other segments' files are removed, and the new index is written.

A crash before 3 leaves a draft, which a start removes; one after it leaves segments that the new one covers, which a
start removes as well. Only 3 runs on the loop's thread, so that no reader ever sees a file with another's index.

If the names cannot be made to last, it is not known under which of them what is found after a loss of power, and no
second attempt would tell: the log fails, as after a flush that failed. What was replaced is then not removed, and the
new segment not let go of, until the next start finds one or the other.
"""

import logging
from typing import Final

from millstream.model.frame import read_frame_header
from millstream.storage.errors import LogFailed
from millstream.storage.files import Buffer, File, Files
from millstream.storage.index import SegmentIndex, decode_index
from millstream.storage.log import PartitionLog
from millstream.storage.segment import Segment, segment_name

__all__ = ["SegmentDraft"]

_log = logging.getLogger(__name__)
_ENDING: Final = ".log.new"
_POSITION_MAX: Final = 2**32 - 1
"""Where a frame may begin in a file: the index has 32 bits for it."""


class SegmentDraft:
    """A draft. Methods named `..._work` run off the loop's thread, one at a time; all others on it.

    Args:
        files: the door to the disk.
        log: whose segments they are.
    """

    def __init__(self, files: Files, log: PartitionLog) -> None:
        self._files = files
        self._log = log
        self._old: list[Segment] = []
        self._new: Segment | None = None
        self._path = ""
        self._index = SegmentIndex(0)
        self._file: File | None = None
        self._replaced: File | None = None
        self._first_index: bytes | None = None
        self._producers: bytes | None = None
        self._due: list[Buffer] = []
        self.due_bytes = 0

    def take(self, segment: Segment) -> None:
        """Replace a segment too, whose frames are to be added next.

        Args:
            segment: closed, without holes; it follows the one taken before.
        """
        if not self._old:
            self._path = f"{self._log.directory}/{segment_name(segment.base_offset)}{_ENDING}"
            self._index = SegmentIndex(segment.base_offset)
        self._old.append(segment)
        segment.pinned = True
        _ = segment.index  # held from now on: its file is about to go

    @property
    def log_bytes(self) -> int:
        """Bytes of the frames so far."""
        return self._index.log_bytes

    def add(self, frame: Buffer) -> None:
        """Add a frame, whose base offset follows from the frame before; `write_work` is due for it."""
        header = read_frame_header(memoryview(frame))
        if header.base_offset != self._index.next_offset or self._index.log_bytes > _POSITION_MAX:
            raise ValueError(f"offset {header.base_offset} where {self._index.next_offset} follows in {self._path}")
        self._index.add_frame(header, self._index.log_bytes)
        self._due.append(frame)
        self.due_bytes += len(frame)

    def write_work(self) -> None:
        """Write what was added, and flush it, so that no flush is long. The loop adds nothing meanwhile. Raises
        OSError, DiskFull."""
        if self._file is None:
            self._file = self._files.open(self._path)
            self._file.truncate(0)
        if self._due:
            self._file.write(self._index.log_bytes - self.due_bytes, self._due)
            self._file.sync()
        self._due, self.due_bytes = [], 0

    def prepare_work(self) -> None:
        """Put the draft on the disk, and take the old index away. Raises OSError, DiskFull, LogFailed."""
        self.write_work()
        assert self._file is not None
        if self._index.next_offset != self._old[-1].next_offset:
            raise ValueError(f"{self._path} ends before offset {self._old[-1].next_offset}")
        self.close()
        content = self._files.read_whole(self._old[-1].index_path)
        decoded = decode_index(self._old[-1].base_offset, content) if content is not None else None
        self._producers = decoded[1] if decoded is not None else None
        self._first_index = self._files.read_whole(self._old[0].index_path)
        # Held open so that the space is given back later, off the loop: for a large file that takes its time.
        self._replaced = self._files.open(self._old[0].log_path)
        self._files.remove(self._old[0].index_path)
        self._sync_names()

    def _sync_names(self) -> None:
        try:
            self._log.sync_names_work()
        except OSError as error:
            raise LogFailed(f"names could not be put on the disk: {error.strerror}") from None

    def replace(self) -> None:
        """Let the draft be the segment. Raises OSError, and then nothing has changed."""
        first = self._old[0]
        new = Segment(self._files, self._log.directory, self._index, first.created_ms)
        new.pinned = True
        self._log.check_follow(self._old)
        self._files.rename(self._path, first.log_path)
        # From here on the file is another, and what is known of it must be so too: nothing below may fail.
        self._new = new
        self._log.replace_segments(self._old, new)
        for segment in self._old:
            segment.close()

    @property
    def is_placed(self) -> bool:
        """Whether it is the segment, and cannot be taken back."""
        return self._new is not None

    def finish_work(self) -> None:
        """Make the replacement last, and remove what was replaced. Raises LogFailed, and then nothing was removed."""
        assert self._replaced is not None
        assert self._new is not None
        self._replaced.close()
        self._replaced = None
        self._sync_names()
        for segment in self._old[1:]:
            try:
                segment.remove_files()
            except OSError as error:
                # They are in nobody's way, and the next start removes what the new one covers.
                _log.warning("files of a segment stay file=%s reason=%s", segment.log_path, error)
        if self._producers is not None:
            self._new.write_index(self._producers)

    def finish(self) -> None:
        """The end, after `finish_work`."""
        assert self._new is not None
        self._new.pinned = False
        self._new.drop_index()

    def discard_work(self) -> None:
        """Take everything back, in place of `replace` and what follows it. Raises OSError, DiskFull."""
        assert self._new is None, "what was put in its place cannot be taken back"
        self.close()
        if self._replaced is not None:
            self._replaced.close()
            self._replaced = None
        self._files.remove(self._path)
        if self._first_index is not None:
            self._files.replace_whole(self._old[0].index_path, self._first_index)

    def release(self) -> None:
        """The end, after `discard_work`."""
        for segment in self._old:
            segment.pinned = False
            segment.drop_index()

    def close(self) -> None:
        """Give the descriptor of the draft back."""
        if self._file is not None:
            self._file.close()
            self._file = None
