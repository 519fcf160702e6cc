"""Frames whose time to be delivered has not come: a binary heap in two arrays, 16 bytes a frame."""

from array import array

__all__ = ["Delays"]


class Delays:
    """Base offsets by the time at which they are due."""

    __slots__ = ("_bases", "_times")

    def __init__(self) -> None:
        self._times: array[int] = array("q")
        self._bases: array[int] = array("q")

    def __len__(self) -> int:
        return len(self._times)

    @property
    def first_ms(self) -> int:
        """When the first is due, if there is any."""
        return self._times[0]

    def add(self, due_ms: int, base_offset: int) -> None:
        """Add a frame."""
        times, bases = self._times, self._bases
        place = len(times)
        times.append(due_ms)
        bases.append(base_offset)
        while place:
            parent = (place - 1) >> 1
            if times[parent] <= due_ms:
                break
            times[place], bases[place] = times[parent], bases[parent]
            place = parent
        times[place], bases[place] = due_ms, base_offset

    def pop(self) -> int:
        """Take out the frame that is due first, of those there are."""
        times, bases = self._times, self._bases
        first = bases[0]
        due_ms, base_offset = times.pop(), bases.pop()
        count = len(times)
        if not count:
            return first
        place, child = 0, 1
        while child < count:
            if child + 1 < count and times[child + 1] < times[child]:
                child += 1
            if times[child] >= due_ms:
                break
            times[place], bases[place] = times[child], bases[child]
            place, child = child, 2 * child + 1
        times[place], bases[place] = due_ms, base_offset
        return first

    def clear(self) -> None:
        """Take out everything."""
        del self._times[:], self._bases[:]
