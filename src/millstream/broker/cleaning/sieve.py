"""What stays of frames when a log is cleaned: frames in, frames of the same offsets out.

A record goes if a later one with its key is known, if its transaction was aborted, if it was deleted with all before
it, or if it is a tombstone whose time has come. What has no key and what cannot be read stays.

Of a frame whose records all go an empty one stays, so that offsets remain dense. Empty frames that follow each other
become one; but each of the batches that are remembered of a producer keeps a frame of its own, so that the same is
known of the producer when it is read from the log again.

A tombstone stays for a while after all before it with its key are gone, so that a reader who has read those before
meets it. The frame is told until when, the first time that it is cleaned: its delete horizon (KIP-534).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from millstream.broker.cleaning.key_offsets import KeyOffsets
from millstream.broker.keyed_frames import Buffer, FrameRecords, OpenFrame
from millstream.broker.steps import Steps
from millstream.model.frame import Attributes, FrameHeader, empty_frame, read_frame_header

__all__ = ["Sieve"]

_DELTA_MAX: Final = 2**31 - 1


class _Kept(NamedTuple):
    """Which records of a frame stay.

    Args:
        found: how many there are.
        left: how many of them stay.
        stays: a byte for each place in the frame, 1 for records that stay.
        has_tombstones: whether any of those deletes its key.
    """

    found: int
    left: int
    stays: bytearray
    has_tombstones: bool


class Sieve:
    """Decides about the frames of one file, in order.

    Args:
        give: takes what stays, frame by frame.
        latest: the last offset of each key.
        readers: what reads frames, by their magic value.
        is_aborted: whether a base offset is of an aborted transaction.
        is_remembered: whether what a header says of its producer has to stay known.
        start_offset: what ends before it is nobody's to read any more.
        end_offset: frames from there on stay as they are.
        now_ms: tombstones with an earlier horizon go; None if none may go.
        horizon_ms: what frames get that have none.

    `earliest_horizon_ms` is that of any tombstone that stays, None without any; `changed` says whether anything that
    came out differs from what went in.
    """

    def __init__(
        self,
        latest: KeyOffsets,
        readers: Mapping[int, FrameRecords],
        *,
        is_aborted: Callable[[int], bool],
        is_remembered: Callable[[FrameHeader], bool],
        start_offset: int,
        end_offset: int,
        now_ms: int | None,
        horizon_ms: int,
        give: Callable[[Buffer], object],
    ) -> None:
        self._give = give
        self._latest = latest
        self._readers = readers
        self._is_aborted = is_aborted
        self._is_remembered = is_remembered
        self._start_offset = start_offset
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._horizon_ms = horizon_ms
        self._empty: tuple[int, int] | None = None  # first and last offset of empty frames not given out yet
        self.earliest_horizon_ms: int | None = None
        self.changed = False

    def sift(self, frames: Iterable[tuple[FrameHeader, memoryview]]) -> Steps[None]:
        """Give what stays of some frames that follow those before. Empty ones come with what follows, or at
        `finish`."""
        for header, frame in frames:
            left = yield from self._left_of(header, frame)
            if left is not None:
                self.finish()
                self._give(left)
            elif self._empty is None:
                self._empty = header.base_offset, header.last_offset
                self.changed = self.changed or not _is_plain_empty(header)
            else:
                self.changed = True
                first = self._empty[0]
                if header.last_offset - first > _DELTA_MAX:
                    self.finish()
                    first = header.base_offset
                self._empty = first, header.last_offset

    def finish(self) -> None:
        """Give what is left to give: an empty frame, or nothing."""
        if self._empty is not None:
            self._give(empty_frame(*self._empty))
            self._empty = None

    def _left_of(self, header: FrameHeader, frame: memoryview) -> Steps[Buffer | None]:
        """What stays of a frame; None if it becomes a part of an empty one."""
        if header.base_offset >= self._end_offset:
            return frame
        kept = yield from self._records_left(header, frame)
        if kept is not None:
            return kept
        if header.producer_id < 0 or not self._is_remembered(header):
            return None
        empty = empty_frame(header.base_offset, header.last_offset, header)
        self.changed = self.changed or empty != frame
        return empty

    def _records_left(self, header: FrameHeader, frame: memoryview) -> Steps[Buffer | None]:
        """A frame with the records that stay; None if none does."""
        gone = header.last_offset < self._start_offset or self._is_aborted(header.base_offset)
        if gone or not header.record_count:
            return None
        reader = self._readers.get(header.magic)
        if reader is None or header.attributes & Attributes.CONTROL:
            return frame
        opened = yield from reader.open(header, frame)
        kept = (yield from self._kept(header, opened)) if opened is not None else None
        if opened is None or kept is None or not kept.found:
            return frame
        if not kept.left:
            return None
        horizon_ms = self._horizon_ms if kept.has_tombstones and header.delete_horizon_ms is None else None
        left: Buffer | None = None
        if kept.left < kept.found or horizon_ms is not None:
            left = yield from opened.left(kept.stays, horizon_ms)
            self.changed = self.changed or left is not None
        left = frame if left is None else left
        if kept.has_tombstones:
            self._note_horizon(read_frame_header(memoryview(left)).delete_horizon_ms)
        return left

    def _kept(self, header: FrameHeader, opened: OpenFrame) -> Steps[_Kept]:
        is_over = self._is_over(header)
        stays = bytearray(header.last_offset_delta + 1)
        found = tombstones = 0
        for records in opened.records():
            if found:
                yield None
            found += len(records)
            for place, key, deletes in self._latest.left(header.base_offset, records):
                if deletes and key is not None:
                    if is_over:
                        continue
                    tombstones += 1
                stays[place] = 1
        return _Kept(found, stays.count(1), stays, tombstones > 0)

    def _is_over(self, header: FrameHeader) -> bool:
        """Whether the tombstones of a frame go."""
        horizon_ms = header.delete_horizon_ms
        return horizon_ms is not None and self._now_ms is not None and horizon_ms <= self._now_ms

    def _note_horizon(self, horizon_ms: int | None) -> None:
        if horizon_ms is not None and (self.earliest_horizon_ms is None or horizon_ms < self.earliest_horizon_ms):
            self.earliest_horizon_ms = horizon_ms


def _is_plain_empty(header: FrameHeader) -> bool:
    """Whether a frame is empty already and says nothing of a producer."""
    return not header.record_count and header.producer_id < 0
