"""The frames of a Shared or Key_Shared subscription that were read and are not done, in arrays: 20 bytes a frame."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import compress
from typing import Final

__all__ = ["DELAYED", "DONE", "PENDING", "WAITING", "Entries"]

WAITING: Final = -1
"""Holder of a frame that is to be delivered, for the first time or again."""
DELAYED: Final = -2
"""Holder of a frame whose time has not come."""
DONE: Final = -3
"""Holder of a frame that is acknowledged."""
PENDING: Final = -4
"""Holder of a frame that is acknowledged but for what a transaction that is not decided has acknowledged."""
_REDELIVERIES_MAX: Final = 2**16 - 1
_COMPACT_FROM: Final = 256
"""Frames that are done are taken out when there are more than this and more than half of all."""


class Entries:
    """Frames by ascending base offset. A place is good until the next `add` or `compact`.

    `bases`, `counts` (offsets of a frame), `holders` (the number of the consumer that has it, or one of the constants
    above), `redeliveries` and `slots` (of its key) have one element a frame.
    """

    __slots__ = ("_done", "bases", "counts", "holders", "redeliveries", "slots")

    def __init__(self) -> None:
        self.bases: array[int] = array("q")
        self.counts: array[int] = array("i")
        self.holders: array[int] = array("i")
        self.redeliveries: array[int] = array("H")
        self.slots: array[int] = array("H")
        self._done = 0

    def __len__(self) -> int:
        """Frames that are not done."""
        return len(self.bases) - self._done

    def add(self, base_offset: int, count: int, holder: int, slot: int = 0) -> int:
        """Add a frame behind all others; returns its place."""
        if self._done > _COMPACT_FROM and self._done * 2 > len(self.bases):
            self.compact()
        self.bases.append(base_offset)
        self.counts.append(count)
        self.holders.append(holder)
        self.redeliveries.append(0)
        self.slots.append(slot)
        return len(self.bases) - 1

    def find(self, base_offset: int) -> int:
        """The place of a frame that is not done; -1 if there is none with this base offset."""
        bases = self.bases
        place = bisect_left(bases, base_offset)
        if place < len(bases) and bases[place] == base_offset and self.holders[place] != DONE:
            return place
        return -1

    def finish(self, place: int) -> None:
        """Mark a frame as done."""
        self.holders[place] = DONE
        self._done += 1

    def count_redelivery(self, place: int) -> None:
        """Take note that a frame was delivered in vain."""
        if self.redeliveries[place] < _REDELIVERIES_MAX:
            self.redeliveries[place] += 1

    def held_by(self, holder: int) -> Iterator[int]:
        """The places of the frames that a holder has; they may be changed on the way."""
        holders, place = self.holders, 0
        while True:
            try:
                place = holders.index(holder, place)
            except ValueError:
                return
            yield place
            place += 1

    def within(self, start: int, end: int) -> range:
        """The places of the frames that have offsets between two of them, done or not."""
        first = max(bisect_left(self.bases, start + 1) - 1, 0)
        if first < len(self.bases) and self.bases[first] + self.counts[first] <= start:
            first += 1
        return range(first, bisect_left(self.bases, end))

    def before(self, offset: int) -> range:
        """The places of the frames with base offsets before one."""
        return range(bisect_left(self.bases, offset))

    def compact(self) -> None:
        """Take out what is done."""
        if self._done == len(self.bases):
            self.clear()
            return
        keep = [holder != DONE for holder in self.holders]
        self.bases = array("q", compress(self.bases, keep))
        self.counts = array("i", compress(self.counts, keep))
        self.redeliveries = array("H", compress(self.redeliveries, keep))
        self.slots = array("H", compress(self.slots, keep))
        self.holders = array("i", compress(self.holders, keep))
        self._done = 0

    def clear(self) -> None:
        """Take out everything."""
        for column in (self.bases, self.counts, self.holders, self.redeliveries, self.slots):
            del column[:]
        self._done = 0
