"""One run of the cleaner over one partition.

First it learns the last offset of each key in what is *dirty*: what was appended since the run before, as far as its
memory for keys reaches. Then it goes over all sealed segments up to there, oldest first, and writes anew those in
which something changes; neighbours that are small become one. The order matters: a tombstone goes only in a later run
than the one that took all before it with its key.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from millstream.broker.cleaning.key_offsets import KeyOffsets
from millstream.broker.cleaning.sieve import Sieve
from millstream.broker.errors import UnknownTopic
from millstream.broker.keyed_frames import SLICE_RECORDS, Buffer, FrameRecords, steps_of
from millstream.broker.partition import Partition
from millstream.broker.steps import Steps
from millstream.model.errors import MillstreamError
from millstream.model.frame import Attributes, FrameHeader, read_frame_header
from millstream.model.pending import Pending
from millstream.storage.errors import LogFailed
from millstream.storage.files import Files
from millstream.storage.segment import Segment
from millstream.storage.segment_draft import SegmentDraft

__all__ = ["Cleaned", "CleaningRun", "NotCompacted", "Replacing"]

_log = logging.getLogger(__name__)
_STEP_BYTES: Final = 64 * 1024
"""What is read at a time, or one frame, if that is larger."""
_WRITE_BYTES: Final = 1024 * 1024
_SEGMENT_OFFSETS_MAX: Final = 2**32 - 1
"""Offsets of one segment: its index has 32 bits for each."""
_INT64_MAX: Final = 2**63 - 1
"""The last time that a frame has room for."""

Replacing = Callable[[Partition, int, int], Pending[None]]
"""Told that the frames from one offset to before another are about to change; the run waits until it resolves."""


class NotCompacted(MillstreamError):
    """The topic's policy is not to compact it any more."""


class Cleaned(NamedTuple):
    """What a run has done.

    Args:
        offset: the first that it has not cleaned.
        emptied_offset: of what was aborted before it, nothing is left; it is smaller where segments are damaged.
        tombstones_go_ms: when the first of the tombstones that it has left goes; None if there are none.
        before_bytes, after_bytes: of the segments that it has written anew.
    """

    offset: int
    emptied_offset: int
    tombstones_go_ms: int | None
    before_bytes: int
    after_bytes: int


class CleaningRun:
    """One run; `steps` does it.

    Args:
        now_ms: the time, in ms since 1970.
        files: the door to the disk.
        partition: what is cleaned.
        readers: what reads frames, by their magic value; of all that the log holds.
        dirty_offset: where the dirty part begins.
        end_offset: where the last segment ends that may be cleaned.
        keys_bytes_max: memory for keys.
        replacing: see `Replacing`.
    """

    def __init__(
        self,
        now_ms: int,
        files: Files,
        partition: Partition,
        readers: Mapping[int, FrameRecords],
        *,
        dirty_offset: int,
        end_offset: int,
        keys_bytes_max: int,
        replacing: Replacing,
    ) -> None:
        self._files = files
        self._partition = partition
        self._log = partition.log
        self._readers = readers
        self._dirty_offset = dirty_offset
        self._end_offset = end_offset
        self._latest = KeyOffsets(keys_bytes_max)
        self._replacing = replacing
        self._now_ms = now_ms
        self._horizon_ms = min(self._now_ms + partition.settings.delete_retention_ms, _INT64_MAX)
        self._damaged_offset: int | None = None  # with which the first damaged segment begins
        self._tombstones_go_ms: int | None = None
        self._before_bytes = self._after_bytes = 0

    def steps(self) -> Steps[Cleaned]:
        """Clean; what is slow goes to the lane for files. Raises UnknownTopic if the topic goes, NotCompacted if its
        policy changes, DiskFull, OSError, LogFailed: what was done until then stays."""
        try:
            cleaned = yield from self._clean_all()
        except Exception:
            yield from self._latest.forget()
            raise
        yield from self._latest.forget()
        return cleaned

    def _clean_all(self) -> Steps[Cleaned]:
        offset = yield from self._learn()
        segments = self._segments(0, offset)
        while segments:
            count = yield from self._clean(segments, offset)
            # Looked up again: retention and deletions may have taken the first of those that follow.
            segments = self._segments(segments[count - 1].next_offset, offset)
        # While a damaged segment keeps tombstones back, there is no use in coming back for them.
        damaged = self._damaged_offset
        horizon_ms = self._tombstones_go_ms if damaged is None else None
        emptied_offset = offset if damaged is None else min(offset, damaged)
        return Cleaned(offset, emptied_offset, horizon_ms, self._before_bytes, self._after_bytes)

    def _learn(self) -> Steps[int]:
        """Note the last offset of each key; gives the offset up to which that was done."""
        offset = max(self._dirty_offset, self._log.start_offset)
        while offset < self._end_offset and not self._latest.is_full:
            self._check_there()
            data, behind = self._log.read(max(offset, self._log.start_offset), _STEP_BYTES)
            for piece in steps_of(data, SLICE_RECORDS):
                for header, frame in _frames(piece):
                    if header.base_offset >= self._end_offset or self._latest.is_full:
                        return min(header.base_offset, self._end_offset)
                    yield from self._note(header, frame)
                yield None
            offset = behind
        return max(min(offset, self._end_offset), self._dirty_offset)

    def _note(self, header: FrameHeader, frame: memoryview) -> Steps[None]:
        reader = self._readers.get(header.magic)
        hidden = header.attributes & Attributes.CONTROL or self._partition.is_aborted(header.base_offset)
        if reader is None or hidden or not header.record_count:
            return
        opened = yield from reader.open(header, frame)
        if opened is None:
            return
        for place, records in enumerate(opened.records()):
            if place:
                yield None
            self._latest.note(header.base_offset, records)

    def _segments(self, start: int, stop: int) -> list[Segment]:
        """The segments that begin from one offset on and before another, of those that may be cleaned."""
        end = self._end_offset
        return [
            one for one in self._log.sealed_segments if start <= one.base_offset < stop and one.next_offset <= end
        ]

    def _clean(self, segments: list[Segment], offset: int) -> Steps[int]:
        """Clean the first of some segments, with as many behind it as fit into one file; gives how many they were."""
        first = segments[0]
        if first.index.holes:
            return self._leave(segments[:1])
        has_room = self._fits(first.log_bytes, segments[:1], segments[1:2])
        if not has_room and not (yield from self._changes(first, offset)):
            return 1
        draft = SegmentDraft(self._files, self._log)
        try:
            group = yield from self._rewrite(draft, segments, offset)
        except GeneratorExit:
            draft.close()  # the server stops; the next start removes the file
            raise
        except Exception as error:
            # Whatever it was: a fault of ours, too, must leave nothing half done.
            if isinstance(error, LogFailed) and not self._partition.deleted:
                self._log.fail(str(error))
            if not draft.is_placed:
                yield from self._take_back(draft)
            raise
        if not draft.is_placed:
            yield from self._take_back(draft)
            return self._leave(group)
        self._before_bytes += sum(segment.log_bytes for segment in group)
        self._after_bytes += draft.log_bytes
        return len(group)

    def _rewrite(self, draft: SegmentDraft, segments: list[Segment], offset: int) -> Steps[list[Segment]]:
        """Put what stays of as many segments as one file takes in their place, unless damage was found in them; gives
        them."""
        group = yield from self._write(draft, segments, offset)
        if any(segment.index.holes for segment in group):
            return group
        yield draft.prepare_work
        # Right before: who begins to follow the frames behind this must find the new ones.
        yield self._replacing(self._partition, group[0].base_offset, group[-1].next_offset)
        self._check_there()
        draft.replace()
        yield draft.finish_work
        draft.finish()
        return group

    def _fits(self, written_bytes: int, group: list[Segment], following: list[Segment]) -> bool:
        """Whether the next segment may go into one file with what was written of those before it."""
        return (
            bool(following)
            and written_bytes + following[0].log_bytes <= self._log.settings.segment_bytes
            and following[0].next_offset - group[0].base_offset <= _SEGMENT_OFFSETS_MAX
            and following[0].base_offset == group[-1].next_offset  # a file that was cut leaves a gap behind it
            and not following[0].index.holes
        )

    def _leave(self, damaged: list[Segment]) -> int:
        """Leave segments as they are. As records in there stay, so do tombstones that come later."""
        if self._damaged_offset is None:
            self._damaged_offset = damaged[0].base_offset
        _log.warning("damaged segments not cleaned file=%s segments=%d", damaged[0].log_path, len(damaged))
        return len(damaged)

    def _changes(self, segment: Segment, offset: int) -> Steps[bool]:
        """Whether anything of a segment would change; if not, what it says of tombstones counts, or its damage."""
        sieve = self._sieve(offset, lambda _: None)
        segment.pinned = True
        try:
            for piece in self._pieces(segment):
                yield from sieve.sift(_frames(piece))
                if sieve.changed:
                    return True
                yield None
            if segment.index.holes:  # an index says nothing of damage that nobody has met yet
                self._leave([segment])
                return False
        finally:
            segment.pinned = False
            segment.drop_index()
        self._note_horizon(sieve)
        return False

    def _write(self, draft: SegmentDraft, segments: list[Segment], offset: int) -> Steps[list[Segment]]:
        """Write what stays of as many segments as one file takes; gives them."""
        sieve = self._sieve(offset, draft.add)
        count = 0
        while not count or self._fits(draft.log_bytes, segments[:count], segments[count : count + 1]):
            draft.take(segments[count])
            for piece in self._pieces(segments[count]):
                yield from sieve.sift(_frames(piece))
                if draft.due_bytes >= _WRITE_BYTES:
                    yield draft.write_work
                yield None
            count += 1
        sieve.finish()
        self._note_horizon(sieve)
        return segments[:count]

    def _take_back(self, draft: SegmentDraft) -> Steps[None]:
        try:
            yield draft.discard_work
        except Exception as error:  # noqa: BLE001 - the error that it is taken back for is the one to be told
            if not self._partition.deleted:
                _log.warning("draft of a segment stays directory=%s reason=%s", self._log.directory, error)
        draft.release()

    def _sieve(self, offset: int, give: Callable[[Buffer], object]) -> Sieve:
        producers = self._log.producers
        return Sieve(
            self._latest,
            self._readers,
            is_aborted=self._partition.is_aborted,
            is_remembered=lambda header: producers.remembers(header.producer_id, header.base_offset),
            start_offset=self._log.start_offset,
            end_offset=offset,
            now_ms=self._now_ms if self._damaged_offset is None else None,
            horizon_ms=self._horizon_ms,
            give=give,
        )

    def _note_horizon(self, sieve: Sieve) -> None:
        found_ms = sieve.earliest_horizon_ms
        if found_ms is not None and (self._tombstones_go_ms is None or found_ms < self._tombstones_go_ms):
            self._tombstones_go_ms = found_ms

    def _pieces(self, segment: Segment) -> Iterator[memoryview]:
        """All that can be read of a segment."""
        offset = segment.base_offset
        while offset < segment.next_offset:
            # Before it is read: of a topic that goes, that would open files again which are about to be removed.
            self._check_there()
            data, offset = segment.read(offset, _STEP_BYTES)
            if data:
                yield from steps_of(data, SLICE_RECORDS)

    def _check_there(self) -> None:
        if self._partition.deleted:
            raise UnknownTopic("the topic is being deleted")
        if not self._partition.settings.compacted:
            raise NotCompacted("the topic is not compacted any more")


def _frames(data: memoryview) -> Iterator[tuple[FrameHeader, memoryview]]:
    position = 0
    while position < len(data):
        header = read_frame_header(data, position)
        yield header, data[position : position + header.size]
        position += header.size
