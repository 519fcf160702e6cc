"""Which consumer of a Key_Shared subscription has which keys."""

from bisect import bisect_left, bisect_right
from typing import Final, Protocol

from millstream.broker.subscriptions.errors import KeyRangesTaken
from millstream.broker.subscriptions.interface import KEY_SLOTS
from millstream.broker.subscriptions.murmur3 import murmur3_32

__all__ = ["NOBODY", "AutoSplit", "KeyRing", "StickyRanges"]

NOBODY: Final = -1
_POINTS: Final = 100
"""Points of each consumer on the ring: enough that shares differ by some percent only."""


class KeyRing(Protocol):
    """Shares the slots of keys out to consumers, by their numbers."""

    def owner(self, slot: int) -> int:
        """The consumer that a slot belongs to, NOBODY if there is none."""

    def remove(self, number: int) -> None:
        """A consumer leaves."""

    def ranges(self, number: int) -> tuple[tuple[int, int], ...]:
        """The slots of a consumer as (first, last)."""


class AutoSplit:
    """Consistent hashing: who comes or goes moves only slots of its own."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, int]] = {}
        self._consumers: dict[tuple[str, int], int] = {}
        self._points: list[int] = []
        self._owners: list[int] = []

    def add(self, number: int, name: str) -> None:
        """A consumer comes. Consumers of one name get points of their own."""
        same = 0
        while (name, same) in self._consumers:
            same += 1
        self._names[number] = name, same
        self._consumers[name, same] = number
        self._build()

    def remove(self, number: int) -> None:
        """A consumer leaves."""
        identity = self._names.pop(number, None)
        if identity is not None:
            del self._consumers[identity]
            self._build()

    def _build(self) -> None:
        owners: dict[int, int] = {}
        # Where points fall together, the name decides, so that it does not matter who came first.
        for (name, same), number in sorted(self._consumers.items(), reverse=True):
            text = f"{name}\0{same}" if same else name
            for n in range(_POINTS):
                owners[murmur3_32(f"{text}\0{n}".encode(errors="replace")) % KEY_SLOTS] = number
        self._points = sorted(owners)
        self._owners = [owners[point] for point in self._points]

    def owner(self, slot: int) -> int:
        """The consumer whose point is at the slot or the next behind it."""
        owners = self._owners
        if not owners:
            return NOBODY
        place = bisect_left(self._points, slot)
        return owners[place] if place < len(owners) else owners[0]

    def ranges(self, number: int) -> tuple[tuple[int, int], ...]:
        """The slots of a consumer as (first, last), neighbours joined."""
        found: list[tuple[int, int]] = []
        if not self._points:
            return ()
        bounds = [*self._points, KEY_SLOTS - 1]
        first = 0
        for bound in bounds:
            if first <= bound and self.owner(bound) == number:
                if found and found[-1][1] == first - 1:
                    found[-1] = found[-1][0], bound
                else:
                    found.append((first, bound))
            first = max(first, bound + 1)
        return tuple(found)


class StickyRanges:
    """Consumers that say themselves which slots they want."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, int]] = []

    def check(self, ranges: tuple[tuple[int, int], ...]) -> None:
        """Check that a consumer could come with some ranges. Raises KeyRangesTaken."""
        if not ranges:
            raise KeyRangesTaken("a consumer with ranges of its own names at least one")
        last_before = NOBODY
        for first, last in sorted(ranges):
            if not 0 <= first <= last < KEY_SLOTS:
                raise KeyRangesTaken(f"the range {first}..{last} does not lie between 0 and {KEY_SLOTS - 1}")
            if first <= last_before:
                raise KeyRangesTaken(f"the range {first}..{last} overlaps with another one of the consumer's")
            last_before = last
            for other_first, other_last, _ in self._ranges:
                if first <= other_last and other_first <= last:
                    raise KeyRangesTaken(f"the range {first}..{last} overlaps with {other_first}..{other_last}")

    def add(self, number: int, ranges: tuple[tuple[int, int], ...]) -> None:
        """A consumer comes, with ranges that were checked."""
        self._ranges = sorted([*self._ranges, *((first, last, number) for first, last in ranges)])

    def remove(self, number: int) -> None:
        """A consumer leaves."""
        self._ranges = [one for one in self._ranges if one[2] != number]

    def owner(self, slot: int) -> int:
        """The consumer that named the slot."""
        place = bisect_right(self._ranges, (slot, KEY_SLOTS, 0)) - 1
        if place >= 0 and self._ranges[place][1] >= slot:
            return self._ranges[place][2]
        return NOBODY

    def ranges(self, number: int) -> tuple[tuple[int, int], ...]:
        """The slots of a consumer as (first, last)."""
        return tuple((first, last) for first, last, whose in self._ranges if whose == number)
