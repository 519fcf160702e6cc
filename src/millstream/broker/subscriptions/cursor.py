"""A cursor: how far a subscription has come in one partition, in memory and in the metadata store.

The stored form is a `CommittedOffset`: the position as its offset, the ranges beyond it as `acknowledged`.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from millstream.broker.offsets import Offsets, Place
from millstream.broker.subscriptions.ranges import OffsetRanges, RangesDamaged, decode_ranges
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.model.runtime import Runtime, Timer
from millstream.storage.metadata import CommittedOffset

__all__ = ["Cursor"]

_log = logging.getLogger(__name__)
_STORED_BYTES_PER_MS: Final = 4096
"""Ranges are written no faster than this when nobody waits: 4 MB/s leaves the disk to the logs."""


class Cursor:
    """The cursor of one subscription.

    `position` is the first offset that is not acknowledged together with all before it; `acknowledged` holds the
    offsets behind it that are acknowledged, and `pending` those that transactions have acknowledged which are not
    decided: they are not delivered, and not stored here. `wanted` tells which records of a frame are to be delivered,
    as `unacknowledged` does but without those pending; it is that very function as long as nothing is pending.

    Args:
        runtime: time and timers.
        offsets: where it lasts; None for a cursor that does not.
        name: of its subscription.
        place: its partition.
        position: where it stands.
        persist_interval_ms: how long an acknowledgement that nobody waits for may be in memory only.
        moved: told when it was moved by a commit of the group of its name; whether backwards.
        dropped: told when what is stored of it was deleted.
    """

    def __init__(
        self,
        runtime: Runtime,
        offsets: Offsets | None,
        name: str,
        place: Place,
        position: int,
        persist_interval_ms: int,
        *,
        moved: Callable[[bool], None],
        dropped: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._offsets = offsets
        self._name = name
        self._place = place
        self.position = position
        self.acknowledged = OffsetRanges()
        self.pending = OffsetRanges()
        self.wanted: Callable[[int, int], int | None] = self.unacknowledged
        self._interval_ms = persist_interval_ms
        self._moved = moved
        self._dropped = dropped
        self._stored: CommittedOffset | None = None
        self._stored_bytes = 0
        self._changed = False
        self._timer: Timer | None = None
        self._writing: Pending[None] | None = None
        self._awaited: Pending[None] | None = None
        if offsets is not None:
            offsets.attach(name, place, self)

    def restore(self, stored: CommittedOffset) -> None:
        """Take over what is stored. Damaged ranges are dropped, with a line in the log: their records come again."""
        self._stored = stored
        self.position = stored.offset
        try:
            self.acknowledged = decode_ranges(stored.acknowledged, stored.offset)
        except RangesDamaged as error:
            _log.error("acknowledgements damaged subscription=%s reason=%s", self._name, error)

    # Acknowledging

    def acknowledge(self, start: int, end: int) -> int:
        """Acknowledge the offsets from start to before end; returns how many of them were not."""
        position = self.position
        if end <= position or end <= start:
            return 0
        if start > position:
            count = self.acknowledged.add(start, end)
        else:
            count = end - position
            ranges = self.acknowledged
            if ranges:
                count -= self._swallow(end)
            else:
                self.position = end
        if count and not self._changed:
            self._touch()
        return count

    def _swallow(self, end: int) -> int:
        """Move on to an offset and over the range that follows; returns how many before it were acknowledged."""
        ranges = self.acknowledged
        swallowed = ranges.remove_before(end)
        if ranges and ranges.first[0] == end:
            end = ranges.pop_first()[1]
        self.position = end
        return swallowed

    def _wanted_beside_pending(self, base_offset: int, count: int) -> int | None:
        """What `wanted` is while anything is pending."""
        mask = self.unacknowledged(base_offset, count)
        if mask == 0:
            return mask
        whole = (1 << count) - 1
        kept = 0
        for start, stop in self.pending.gaps(base_offset, base_offset + count):
            kept |= ((1 << (stop - start)) - 1) << (start - base_offset)
        if mask is not None:
            kept &= mask
        return None if kept == whole else kept

    def unacknowledged(self, base_offset: int, count: int) -> int | None:
        """Which records of a frame are not acknowledged, or pending at most.

        Returns:
            Bit n for record n; None if all of them are.
        """
        position, ranges = self.position, self.acknowledged
        end = base_offset + count
        if end <= position:
            return 0
        if base_offset >= position:
            if not ranges or ranges.last_end <= base_offset:
                return None
            found = ranges.range_at(base_offset)
            if found is None or found[0] >= end:
                return None
            if found[0] <= base_offset and end <= found[1]:
                return 0
        return _bits(ranges.gaps(max(base_offset, position), end), base_offset, count)

    @property
    def untouched_offset(self) -> int:
        """An offset from which on nothing is acknowledged, nor pending."""
        ends = [ranges.last_end for ranges in (self.acknowledged, self.pending) if ranges]
        return max([self.position, *ends])

    def is_acknowledged(self, base_offset: int, count: int) -> bool:
        """Whether all records of a frame are acknowledged; takes the same time however many they are."""
        left = self.acknowledged.gaps(max(base_offset, self.position), base_offset + count)
        return next(left, None) is None

    def count_wanted(self, base_offset: int, count: int) -> int:
        """How many records of a frame are `wanted`; takes its time by the ranges in it, not by its records."""
        gaps = self.acknowledged.gaps(max(base_offset, self.position), base_offset + count)
        return sum(stop - start - self.pending.covered(start, stop) for start, stop in gaps)

    def reset(self, offset: int) -> None:
        """Move to an offset, backwards or forwards, and forget what was acknowledged behind it."""
        self.position = offset
        self.acknowledged.clear()
        if not self._changed:
            self._touch()

    def pend(self, start: int, end: int) -> None:
        """A transaction that is not decided has acknowledged the offsets from start to before end."""
        self.pending.add(start, end)
        self.wanted = self._wanted_beside_pending

    def unpend(self, start: int, end: int) -> None:
        """It is decided."""
        self.pending.remove(start, end)
        if not self.pending:
            self.wanted = self.unacknowledged

    # Lasting

    def _touch(self) -> None:
        self._changed = True
        if self._offsets is not None and self._writing is None and self._awaited is None:
            self._write_later()

    def _write_later(self) -> None:
        if self._timer is None:
            delay_ms = max(self._interval_ms, self._stored_bytes // _STORED_BYTES_PER_MS)
            self._timer = self._runtime.call_later(delay_ms / 1000, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._writing is None:
            self._write()

    def persist(self) -> Pending[None] | None:
        """Make everything up to now last.

        Returns:
            Resolves once it does, fails with MetadataFailed; None if it does already, or never will.
        """
        if self._offsets is None:
            return None
        if not self._changed:
            return self._writing
        if self._awaited is None:
            self._awaited = Pending()
            if self._writing is None:
                # After the work at hand: whatever else it acknowledges goes into the same write.
                self._runtime.call_soon(self._write_awaited)
        return self._awaited

    def _write_awaited(self) -> None:
        if self._writing is None and self._awaited is not None:
            self._write()

    def _write(self) -> None:
        """Store the present state. One write is under way at a time; the next one has all that came meanwhile."""
        offsets = self._offsets
        if offsets is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        awaited, self._awaited = self._awaited, None
        written: Pending[None] = awaited or Pending()
        self._writing = written
        stored = offsets.put_cursor(self._name, self._place, self._state())

        def finish(outcome: Pending[None]) -> None:
            self._writing = None
            try:
                outcome.result()
            except MillstreamError as error:
                self._changed = True
                _log.warning("acknowledgements not stored subscription=%s reason=%s", self._name, error)
                written.fail(error)
            else:
                written.resolve(None)
            self._go_on()

        stored.when_done(finish)

    def _go_on(self) -> None:
        """See to what came while a write was under way."""
        if self._writing is not None or not self._changed or self._offsets is None:
            return
        if self._awaited is not None:
            self._write()
        else:
            self._write_later()

    def _state(self) -> CommittedOffset:
        """What is to be stored, as of now."""
        before = self._stored
        same = before is not None and before.offset == self.position
        encoded = self.acknowledged.encode(self.position) if self.acknowledged else b""
        self._stored_bytes = len(encoded)
        self._stored = CommittedOffset(
            self.position,
            before.leader_epoch if before is not None and same else -1,
            before.note if before is not None and same else "",
            self._runtime.now_ms(),
            encoded,
            subscription=True,
        )
        self._changed = False
        return self._stored

    def keep(self) -> Pending[None]:
        """Store it for the first time; resolves once it lasts."""
        assert self._offsets is not None, "only a durable cursor is stored"
        self._changed = True
        pending = self.persist()
        assert pending is not None, "there is something to store"
        return pending

    # What others do to it

    def commit(self, committed: CommittedOffset) -> CommittedOffset:
        """A group of its name commits: forwards is an acknowledgement, backwards a new start."""
        backwards = committed.offset < self.position
        if backwards:
            self.position = committed.offset
            self.acknowledged.clear()
        elif committed.offset > self.position:
            self._swallow(committed.offset)
        # The note belongs to the offset that was committed, though the cursor may stand behind it by now.
        self._stored = CommittedOffset(self.position, committed.leader_epoch, committed.note, committed.committed_ms)
        state = self._state()
        # If that is not stored, it is the group's affair; what was acknowledged before must be stored all the same.
        self._touch()
        self._runtime.call_soon(lambda: self._moved(backwards))
        return state

    def drop(self) -> None:
        """What is stored was deleted."""
        self.detach()
        self._dropped()

    def detach(self) -> None:
        """Store nothing any more; whoever waits is told that nothing is left to wait for."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._offsets is not None:
            self._offsets.detach(self._name, self._place)
            self._offsets = None
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited.resolve(None)

    def close(self) -> None:
        """Store what is not stored yet, and let no timer run any more: the server stops."""
        if self._changed and self._offsets is not None and self._writing is None:
            self._write()
        elif self._changed and self._offsets is not None:
            self._offsets.put_cursor(self._name, self._place, self._state())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _bits(runs: Iterable[tuple[int, int]], base_offset: int, count: int) -> int:
    """Runs of offsets (start, end) of a frame as bits: bit n for record n.

    It goes by way of text, because a frame may have a million records, and as many runs as half of that.
    """
    text = bytearray(b"0" * count)
    for start, end in runs:
        text[count - (end - base_offset) : count - (start - base_offset)] = b"1" * (end - start)
    return int(text, 2) if count else 0
