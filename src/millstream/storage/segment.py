"""One segment of a partition's log: a file of frames, and the index that belongs to it."""

import logging
from typing import Final

from millstream.model.frame import read_frame_header
from millstream.model.frame_run import FrameRun
from millstream.storage.errors import DiskFull
from millstream.storage.files import Buffer, File, Files
from millstream.storage.index import INTERVAL_BYTES, Hole, SegmentIndex, decode_index, encode_index
from millstream.storage.producers import ProducerStates
from millstream.storage.scan import Stop, find_frame, take_frames, walk_frames

__all__ = ["Segment", "segment_name"]

_log = logging.getLogger(__name__)
_LOOKAHEAD_BYTES: Final = 2 * INTERVAL_BYTES
"""A reader's first frame stands at most an index interval and a frame of less than that behind the index entry."""
_TIME_READ_BYTES: Final = 64 * 1024


def segment_name(base_offset: int) -> str:
    """The name of a segment's files without their endings."""
    return f"{base_offset:020d}"


class Segment:
    """A file of frames with dense offsets from `base_offset` on.

    The last segment of a log is open for appending; all others are sealed and only read. A sealed segment drops
    the entries of its index and reads them again when they are asked for.

    Args:
        files: the door to the disk.
        directory: where the segment's files lie.
        index: what is known of the log file.
        created_ms: when its first frame was appended, as far as is known.

    `pinned` keeps a sealed segment, and what its index says, from going away while its files change.
    """

    def __init__(self, files: Files, directory: str, index: SegmentIndex, created_ms: int) -> None:
        self._files = files
        self._stem = f"{directory}/{segment_name(index.base_offset)}"
        self.log_path = self._stem + ".log"
        self.index_path = self._stem + ".index"
        self.base_offset = index.base_offset
        self.created_ms = created_ms
        self.pinned = False
        self._file: File | None = None
        self._index: SegmentIndex | None
        self.take_over(index)

    def take_over(self, index: SegmentIndex) -> None:
        """Take what an index says as what is known of the segment."""
        self._index = index
        self.log_bytes = index.log_bytes
        self.next_offset = index.next_offset
        self.max_timestamp = index.max_timestamp
        self.max_timestamp_at = index.max_timestamp_at
        self.encodings = index.encodings

    @property
    def index(self) -> SegmentIndex:
        """The index, read again from its file if it was dropped."""
        if self._index is None:
            content = self._files.read_whole(self.index_path)
            decoded = decode_index(self.base_offset, content) if content is not None else None
            if decoded is not None and decoded[0].log_bytes == self.log_bytes:
                self._index = decoded[0]
            else:
                self._index = self._rebuilt()
        return self._index

    @property
    def file(self) -> File:
        """The open log file of the segment that is appended to."""
        assert self._file is not None, "only the last segment of a log is open"
        return self._file

    @property
    def is_open(self) -> bool:
        """Whether the log file is open for appending."""
        return self._file is not None

    @property
    def latest_ms(self) -> int:
        """The time that retention goes by: the latest of its records', or its creation's if none of them has one; -1
        if compaction has left no records."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return self.created_ms if self.encodings or not self.log_bytes else -1

    def open(self) -> None:
        """Open the log file for appending, created if need be."""
        self._file = self._files.open(self.log_path)

    def close(self) -> None:
        """Close the log file and drop what is held in memory."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._files.forget(self.log_path)

    def drop_index(self) -> None:
        """Let go of the index entries of a sealed segment; they are read again on demand."""
        if self._file is None and not self.pinned:
            self._index = None

    def append(self, frames: list[Buffer], size_bytes: int) -> int:
        """Write frames at the end of the file; returns their position. The index is the caller's to update."""
        position = self.log_bytes
        self.file.write(position, frames)
        self.log_bytes = position + size_bytes
        return position

    def note(
        self, base_offset: int, next_offset: int, position: int, size_bytes: int, max_timestamp: int, magic: int
    ) -> None:
        """Take note of one frame that was appended."""
        index = self.index
        index.add(base_offset, next_offset, position, size_bytes, max_timestamp, magic)
        self.encodings = index.encodings
        self.next_offset = next_offset
        self.max_timestamp = index.max_timestamp
        self.max_timestamp_at = index.max_timestamp_at

    def note_run(self, base_offset: int, position: int, run: FrameRun) -> None:
        """Take note of frames that were appended in one piece."""
        index = self.index
        index.encodings |= run.magic
        index.add_run(base_offset, position, run.sizes, run.counts, run.times)
        self.encodings = index.encodings
        self.next_offset = index.next_offset
        self.max_timestamp = index.max_timestamp
        self.max_timestamp_at = index.max_timestamp_at

    def read_at(self, position: int, size: int) -> bytes:
        """Read a piece of the log file."""
        if self._file is not None:
            return self._file.read(position, size)
        return self._files.read_at(self.log_path, position, size)

    def read(self, offset: int, max_bytes: int) -> tuple[memoryview, int]:
        """Read verified frames from the one that holds an offset on, or from the next behind damage.

        Args:
            offset: where to begin.
            max_bytes: about how much; one whole frame at least.

        Returns:
            The frames, as a view of what was read from the file, and the offset behind them. The view is empty
            if the segment holds nothing (more) that is whole.
        """
        expected, position = self.index.floor(offset)
        size = max_bytes + _LOOKAHEAD_BYTES
        while position < self.log_bytes:
            wanted_bytes = min(size, self.log_bytes - position)
            data = memoryview(self.read_at(position, wanted_bytes))
            taken = take_frames(data, expected, offset, max_bytes)
            if taken.stop > taken.start:
                return data[taken.start : taken.stop], taken.next_offset
            position += taken.position
            expected = taken.next_offset
            is_cut = len(data) < wanted_bytes  # behind our back: what is missing is damage, not still to come
            if taken.reason is Stop.SHORT and position + taken.needed_bytes <= self.log_bytes and not is_cut:
                size = max(taken.needed_bytes, size)
                continue
            hole = self._hole(position, expected)
            position, expected = hole.stop_position, hole.next_offset
        return memoryview(b""), max(self.next_offset, offset)

    def frame_for_time(self, timestamp_ms: int, start_offset: int) -> memoryview | None:
        """The first frame at or behind an offset with a record as late as a time; None if there is none."""
        offset = max(self.index.before_time(timestamp_ms)[0], start_offset)
        while offset < self.next_offset:
            data, offset = self.read(offset, _TIME_READ_BYTES)
            position = 0
            while position < len(data):
                header = read_frame_header(data, position)
                if header.record_count and header.max_timestamp >= timestamp_ms:
                    return data[position : position + header.size]
                position += header.size
        return None

    def _hole(self, position: int, expected_offset: int) -> Hole:
        """The damage at a position: known, or measured now and reported."""
        known = self.index.hole_at(position)
        if known is not None:
            return known
        hole = measure_hole(self, position, expected_offset, self.next_offset)
        self.index.holes.append(hole)
        return hole

    def _rebuilt(self) -> SegmentIndex:
        index = SegmentIndex(self.base_offset)
        self._index = index
        scan(self, index, None, self.log_bytes, self.next_offset)
        return index

    def write_index(self, producers: bytes) -> None:
        """Write the index file. What it vouches for must be on the disk; may run off the loop's thread.

        An index that cannot be written is no loss: the next start scans the segment.
        """
        try:
            self._files.replace_whole(self.index_path, encode_index(self.index, producers))
        except (DiskFull, OSError) as error:
            _log.warning("index not written file=%s reason=%s", self.index_path, error)

    def remove_files(self) -> None:
        """Remove the files of a closed segment; may run off the loop's thread. Raises OSError."""
        self._files.remove(self.index_path)
        self._files.remove(self.log_path)


def measure_hole(segment: Segment, position: int, expected_offset: int, next_offset: int | None) -> Hole:
    """Find where the damage at a position ends, and report it.

    Args:
        segment: the segment that is damaged.
        position: where the walk over its frames could not go on.
        expected_offset: the base offset that the frame there should have.
        next_offset: the offset behind the segment, where the hole ends if no valid frame follows; None if unknown.
    """
    found = find_frame(segment.read_at, position, expected_offset, next_offset, segment.log_bytes)
    if found is None:
        found = segment.log_bytes, expected_offset if next_offset is None else next_offset
    stop_position, stop_offset = found
    hole = Hole(position, stop_position, expected_offset, max(stop_offset, expected_offset))
    _log.error(
        "damage file=%s position=%d bytes=%d offsets=%d..%d: these records are lost and will not be served",
        segment.log_path,
        position,
        stop_position - position,
        expected_offset,
        hole.next_offset - 1,
    )
    return hole


def scan(
    segment: Segment,
    index: SegmentIndex,
    producers: ProducerStates | None,
    log_bytes: int,
    next_offset: int | None,
) -> int:
    """Verify a log file from where its index ends, and bring the index and the producers up to date.

    Args:
        segment: whose log file it is.
        index: is brought up to date; what it covers already is taken as verified.
        producers: is brought up to date as well; None leaves them alone.
        log_bytes: size of the log file.
        next_offset: the offset behind the segment, if another follows: damage up to the end is then a hole.
            None for the last segment of a log: an end that is not a whole, valid frame is a torn tail.

    Returns:
        Bytes at the end of the file that are a torn tail, 0 for none. They are not in the index.
    """
    segment.log_bytes = log_bytes
    while index.log_bytes < log_bytes:
        for position, header in walk_frames(segment.read_at, index.log_bytes, index.next_offset, log_bytes):
            index.add_frame(header, position)
            if producers is not None and header.producer_id >= 0:
                producers.record(header, header.base_offset, header.max_timestamp)
        if index.log_bytes == log_bytes:
            break
        at, expected = index.log_bytes, index.next_offset
        if next_offset is None and find_frame(segment.read_at, at, expected, None, log_bytes) is None:
            return log_bytes - at
        index.add_hole(measure_hole(segment, at, expected, next_offset))
    return 0
