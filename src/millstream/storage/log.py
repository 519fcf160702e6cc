"""The log of one partition: segments in a directory, appended to at the end, cut at the beginning.

    <directory>/<20-digit base offset>.log     frames, see millstream.model.frame
    <directory>/<20-digit base offset>.index   see millstream.storage.index
    <directory>/start-offset                   the first offset left after a deletion up to it, as text: the decimal
                                               number, a blank, and the crc32c of its digits as 8 hexadecimal ones

Everything here runs on the loop's thread, except the work handed out by the methods named `..._work`.
"""

import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from crc32c import crc32c

from millstream.model.frame import FrameHeader, set_base_offset
from millstream.model.frame_run import FrameRun
from millstream.storage.errors import DiskFull, LogFailed, OffsetOutOfRange
from millstream.storage.files import Buffer, Files
from millstream.storage.index import SegmentIndex
from millstream.storage.producers import ProducerStates
from millstream.storage.segment import Segment

__all__ = ["Appended", "LogSettings", "PartitionLog"]

_log = logging.getLogger(__name__)
START_OFFSET_FILE: Final = "start-offset"
_RELATIVE_OFFSETS: Final = 2**32 - 1
_LOADED_INDEXES_MAX: Final = 4
"""Sealed segments of one log whose index entries stay in memory: a few readers at different places."""


@dataclass(slots=True)
class LogSettings:
    """How one log is kept.

    Args:
        segment_bytes: a segment that would grow beyond it is sealed.
        segment_ms: a segment older than this is sealed at the next append.
        retention_ms: sealed segments whose latest record is older are deleted; -1 for never.
        retention_bytes: the oldest sealed segments are deleted while the log is larger; -1 for never.
    """

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 3600 * 1000
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1


class Appended(NamedTuple):
    """Where a batch went.

    Args:
        base_offset: of its first record.
        duplicate: it was in the log already, and was not written again.
    """

    base_offset: int
    duplicate: bool


class PartitionLog:
    """The log of one partition. `millstream.storage.recovery.open_log` makes one from a directory.

    Args:
        files: the door to the disk.
        directory: the log's own directory.
        settings: how it is kept; may be changed while it is open.
        segments: oldest first, at least one, the last one open.
        start_offset: the first offset that may be read.
        producers: what idempotent producers wrote last.

    `touched` says whether the log holds anything that its index files do not vouch for, `encodings` which magic
    values its frames have or had, or-ed: each is a bit of its own.
    """

    def __init__(
        self,
        files: Files,
        directory: str,
        settings: LogSettings,
        segments: list[Segment],
        start_offset: int,
        producers: ProducerStates,
    ) -> None:
        self._files = files
        self.directory = directory
        self.settings = settings
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.start_offset = start_offset
        self.producers = producers
        self.failure: str | None = None
        self.touched = True
        self.encodings = 0
        for segment in segments:
            self.encodings |= segment.encodings
        self._names_unsynced = True
        self._loaded: list[Segment] = []
        self._sealing: list[tuple[Segment, bytes]] = []
        self._flushing: deque[list[Segment]] = deque()

    @property
    def _active(self) -> Segment:
        return self._segments[-1]

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._segments[-1].next_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of all log files."""
        return sum(segment.log_bytes for segment in self._segments)

    @property
    def segment_count(self) -> int:
        """How many segments there are."""
        return len(self._segments)

    @property
    def sealed_segments(self) -> list[Segment]:
        """The oldest segments, up to the first that is not closed: it has not been flushed since it was sealed."""
        count = 0
        while count < len(self._segments) - 1 and not self._segments[count].is_open:
            count += 1
        return self._segments[:count]

    @property
    def segment_starts(self) -> list[tuple[int, int]]:
        """The offset at which each segment begins, oldest first, and the time of its latest record in ms."""
        return [(segment.base_offset, segment.latest_ms) for segment in self._segments]

    @property
    def has_sealed(self) -> bool:
        """Whether segments were sealed that only the next flush closes, so that retention can take them."""
        return bool(self._sealing)

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """The latest timestamp, in ms, and the base offset of the first frame that has it; (-1, -1) if empty."""
        latest = max(self._segments, key=lambda segment: segment.max_timestamp)
        return latest.max_timestamp, latest.max_timestamp_at

    def append(self, frame: memoryview, header: FrameHeader, now_ms: int) -> Appended:
        """Append one batch. When it returns, the operating system has it.

        Args:
            frame: the whole frame, writable: its base offset is set in place.
            header: what stands in it; verified by the caller.
            now_ms: the time of the append.

        Raises:
            LogFailed: a write or a flush failed before; only a restart helps.
            DiskFull: there is no room. Nothing was kept.
            ProducerError: an idempotent batch that does not follow from the one before.
        """
        if self.failure is not None:
            raise LogFailed(self.failure)
        if header.producer_id >= 0:
            written = self.producers.check(header)
            if written is not None:
                return Appended(written.base_offset, duplicate=True)
        size = len(frame)
        segment = self._room(size, header.last_offset_delta, now_ms)
        base_offset = segment.next_offset
        set_base_offset(frame, base_offset)
        position = self._write(segment, frame)
        next_offset = base_offset + header.last_offset_delta + 1
        segment.note(base_offset, next_offset, position, size, header.max_timestamp, header.magic)
        self.encodings |= header.magic
        if header.producer_id >= 0:
            self.producers.record(header, base_offset, now_ms)
        return Appended(base_offset, duplicate=False)

    def append_run(self, run: FrameRun, now_ms: int) -> int:
        """Append several batches, all of them or none, in one write. When it returns, the operating system has them.

        Args:
            run: at least one batch; their base offsets are set in place. A run stays in one segment, also where that
                grows beyond its limit by this.
            now_ms: the time of the append.

        Returns:
            The base offset of the first.

        Raises:
            LogFailed, DiskFull: as `append`.
        """
        if self.failure is not None:
            raise LogFailed(self.failure)
        segment = self._room(len(run.data), sum(run.counts) - 1, now_ms)
        base_offset = segment.next_offset
        run.place(base_offset)
        segment.note_run(base_offset, self._write(segment, run.data), run)
        self.encodings |= run.magic
        return base_offset

    def _room(self, size_bytes: int, last_offset_delta: int, now_ms: int) -> Segment:
        """The segment that so many bytes and offsets are to be appended to."""
        segment = self._active
        if segment.log_bytes and self._must_roll(segment, size_bytes, last_offset_delta, now_ms):
            segment = self._roll(now_ms)
        elif not segment.log_bytes:
            segment.created_ms = now_ms
        self.touched = True
        return segment

    def _write(self, segment: Segment, data: Buffer) -> int:
        """Write to the end of a segment, all or nothing; returns the position."""
        position = segment.log_bytes
        try:
            return segment.append([data], len(data))
        except DiskFull:
            self._undo(segment, position)
            raise
        except OSError as error:
            self.fail(f"a write failed: {error.strerror}")
            raise LogFailed(f"a write failed: {error.strerror}") from None

    def _undo(self, segment: Segment, log_bytes: int) -> None:
        try:
            segment.file.truncate(log_bytes)
        except OSError as error:
            self.fail(f"a cut after a full disk failed: {error.strerror}")

    def _must_roll(self, segment: Segment, size: int, last_offset_delta: int, now_ms: int) -> bool:
        return (
            segment.log_bytes + size > self.settings.segment_bytes
            or now_ms - segment.created_ms > self.settings.segment_ms
            or segment.next_offset + last_offset_delta - segment.base_offset > _RELATIVE_OFFSETS
        )

    def _roll(self, now_ms: int) -> Segment:
        """Open the next segment. The old one stays open until a flush has put it on the disk."""
        old = self._active
        new = Segment(self._files, self.directory, SegmentIndex(old.next_offset), now_ms)
        try:
            new.open()
        except OSError as error:
            raise DiskFull(f"a new segment cannot be made: {error.strerror}") from None
        self._segments.append(new)
        self._bases.append(new.base_offset)
        self._names_unsynced = True
        self._sealing.append((old, self.producers.encode()))
        return new

    def fail(self, reason: str) -> None:
        """Take no more writes: what the disk holds is not known."""
        if self.failure is None:
            self.failure = reason
            _log.error("log failed directory=%s reason=%s: it takes no more writes", self.directory, reason)

    def flush_work(self) -> Callable[[], None]:
        """What must run, off the loop's thread, to put all that was appended so far on the disk.

        Flushes of a log run in the order in which they were asked for; `flushed` is called for each that has
        succeeded, in the same order.
        """
        if self.failure is not None:
            return lambda: None  # a flush that failed is never tried again: the second would succeed, and lie
        sealed, names = self._sealing, self._names_unsynced
        self._sealing, self._names_unsynced = [], False
        self._flushing.append([segment for segment, _ in sealed])
        active = self._active.file

        def work() -> None:
            for segment, _ in sealed:
                segment.file.sync()
            active.sync()
            if names:
                self.sync_names_work()
            # Last, because an index may fail to be written: that must not take the error of the names with it.
            for segment, producers in sealed:
                segment.write_index(producers)

        return work

    def sync_names_work(self) -> None:
        """Put the names in the directory on the disk; in any lane.

        Raises:
            OSError: they are not, or once were not, whoever wanted it: a second attempt, in whatever lane, would
                succeed, and lie.
        """
        self._files.sync_directory(self.directory)
        lost = self._files.names_lost(self.directory)
        if lost is not None:
            raise lost

    def flushed(self) -> None:
        """Close the files of the segments that the flush has sealed. On the loop's thread."""
        for segment in self._flushing.popleft():
            segment.close()
            segment.drop_index()

    def read(self, offset: int, max_bytes: int) -> tuple[memoryview, int]:
        """Read whole frames from the one that holds an offset on.

        Args:
            offset: between `start_offset` and `end_offset`.
            max_bytes: about how much; one whole frame at least, all from one segment.

        Returns:
            The frames, and the offset behind them. No frames if there is nothing at or behind the offset.

        Raises:
            OffsetOutOfRange: the offset is not between start and end.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(f"offset {offset} is not between {self.start_offset} and {self.end_offset}")
        place = max(bisect_right(self._bases, offset) - 1, 0)
        while place < len(self._segments):
            segment = self._segments[place]
            if segment.next_offset > offset:
                self._touch(segment)
                data, next_offset = segment.read(offset, max_bytes)
                if data:
                    return data, next_offset
                offset = max(offset, segment.next_offset)
            place += 1
        return memoryview(b""), offset

    def _touch(self, segment: Segment) -> None:
        if segment is self._active or (self._loaded and self._loaded[-1] is segment):
            return
        if segment in self._loaded:
            self._loaded.remove(segment)
        self._loaded.append(segment)
        if len(self._loaded) > _LOADED_INDEXES_MAX:
            self._loaded.pop(0).drop_index()

    def frame_for_time(self, timestamp_ms: int) -> memoryview | None:
        """The first frame with a record as late as a time; None if there is none."""
        for segment in self._segments:
            if segment.max_timestamp < timestamp_ms or segment.next_offset <= self.start_offset:
                continue
            self._touch(segment)
            frame = segment.frame_for_time(timestamp_ms, self.start_offset)
            if frame is not None:
                return frame
        return None

    def delete_before(self, offset: int) -> list[Segment]:
        """Let nothing before an offset be read any more.

        Returns:
            Segments that are out of use, to be removed. The new start is the caller's to make last, see
            `start_offset_work`.

        Raises:
            OffsetOutOfRange: the offset is negative or lies behind the end.
        """
        if not 0 <= offset <= self.end_offset:
            raise OffsetOutOfRange(f"offset {offset} does not lie between 0 and the end {self.end_offset}")
        self.start_offset = max(self.start_offset, offset)
        return self._detach(lambda segment: segment.next_offset <= self.start_offset)

    def start_offset_work(self) -> Callable[[], None]:
        """What must run, off the loop's thread, to make the present start offset last."""
        path, content = f"{self.directory}/{START_OFFSET_FILE}", encode_start_offset(self.start_offset)
        return lambda: self._files.replace_whole(path, content)

    def expired(
        self, now_ms: int, *, hold_offset: int | None = None, retention: tuple[int, int] | None = None
    ) -> list[Segment]:
        """Take the segments out of use that retention by time and by size no longer keeps.

        A last segment that has expired as well is sealed, to be taken by the next call after a flush, so that an
        idle log becomes empty.

        Args:
            now_ms: the time.
            hold_offset: records from there on are kept, however old and large: somebody has not read them yet.
            retention: ms and bytes to keep instead of the log's own settings, -1 for no bound.
        """
        keep_ms, keep_bytes = retention or (self.settings.retention_ms, self.settings.retention_bytes)
        end = self.end_offset if hold_offset is None else hold_offset
        # First what a deletion of records had to leave, because no flush had closed it yet.
        out = self._detach(lambda segment: segment.next_offset <= self.start_offset)
        if keep_ms >= 0:
            before = now_ms - keep_ms
            out += self._detach(lambda segment: segment.latest_ms < before and segment.next_offset <= end)
            active = self._active
            if active.log_bytes and active.latest_ms < before and end >= active.next_offset:
                self._try_roll(now_ms)
        if keep_bytes >= 0:
            surplus = self.size_bytes - keep_bytes

            def over(segment: Segment) -> bool:
                nonlocal surplus
                surplus -= segment.log_bytes
                return surplus >= 0 and segment.next_offset <= end

            out += self._detach(over)
        return out

    def _detach(self, goes: Callable[[Segment], bool]) -> list[Segment]:
        """Take the oldest sealed segments off as long as a condition holds for each."""
        count = 0
        for segment in self.sealed_segments:
            if segment.pinned or not goes(segment):
                break
            count += 1
        out = self._segments[:count]
        del self._segments[:count], self._bases[:count]
        for segment in out:
            if segment in self._loaded:
                self._loaded.remove(segment)
        self.start_offset = max(self.start_offset, self._segments[0].base_offset)
        return out

    def check_follow(self, segments: list[Segment]) -> None:
        """Raises ValueError unless some segments are the log's, and follow each other."""
        place = self._segments.index(segments[0])
        if self._segments[place : place + len(segments)] != segments:
            raise ValueError(f"not segments of {self.directory} that follow each other")

    def replace_segments(self, old: list[Segment], new: Segment) -> None:
        """Let one sealed segment take the place of some that follow each other (`check_follow`), whose offsets it
        has."""
        place = self._segments.index(old[0])
        self._segments[place : place + len(old)] = [new]
        self._bases[place : place + len(old)] = [new.base_offset]
        self._loaded = [segment for segment in self._loaded if segment not in old]

    def seal_old(self, now_ms: int) -> None:
        """Begin a new segment if the last one is older than `segment_ms`; the next flush closes the old one."""
        active = self._active
        if active.log_bytes and now_ms - active.created_ms > self.settings.segment_ms:
            self._try_roll(now_ms)

    def _try_roll(self, now_ms: int) -> None:
        if self.failure is not None:
            return
        try:
            self._roll(now_ms)
        except DiskFull as error:
            # What is removed some day makes room for it: it succeeds the next time.
            _log.warning("segment not sealed directory=%s reason=%s", self.directory, error)

    def close_work(self) -> Callable[[], None]:
        """What must run, off the loop's thread, to put everything on the disk for a start without a scan."""
        if self.failure is not None:
            return lambda: None
        flush, active, producers = self.flush_work(), self._active, self.producers.encode()

        def work() -> None:
            flush()
            active.write_index(producers)

        return work

    def close(self) -> None:
        """Close all files."""
        for segment in self._segments:
            segment.close()


def encode_start_offset(offset: int) -> bytes:
    """The content of a start-offset file."""
    digits = str(offset).encode()
    return b"%b %08x" % (digits, crc32c(digits))


def decode_start_offset(content: bytes) -> int | None:
    """Read a start-offset file; None if it is damaged."""
    digits = content.partition(b" ")[0]
    if not digits.isdigit() or content != encode_start_offset(int(digits)):
        return None
    return int(digits)
