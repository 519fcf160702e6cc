"""A set of offsets as sorted ranges, in arrays: what is acknowledged one by one behind a cursor's position.

Stored form, relative to the position so that it stays small:

    byte 0       version, 1
    varint       number of ranges
    per range    varint, offsets between the end of the one before (the position, for the first) and its start;
                 varint, offsets in it
    last 4       crc32c of everything before, little-endian

Varints are unsigned, 7 bits a byte, lowest first.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from crc32c import crc32c

__all__ = ["OffsetRanges", "RangesDamaged", "decode_ranges"]

_VERSION: Final = 1
_BLOCK_BOUNDS: Final = 512
"""Bounds (two a range) that a block holds when it comes from a split: the cost of an insertion, and of encoding."""
_OFFSET_MAX: Final = 2**63 - 1
_VARINT_BITS_MAX: Final = 63


class RangesDamaged(ValueError):
    """Stored ranges that do not read."""


class OffsetRanges:
    """A set of offsets.

    Ranges are kept as a row of bounds, start, end, start, end, which only rises, cut into blocks. `size` is the
    number of offsets in the set.
    """

    __slots__ = ("_blocks", "_encoded", "_firsts", "size")

    def __init__(self) -> None:
        self._blocks: list[array[int]] = []
        self._firsts: list[int] = []
        self._encoded: dict[int, bytes] = {}
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __len__(self) -> int:
        """How many ranges there are."""
        return sum(map(len, self._blocks)) // 2

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The ranges in order, as (start, end), the end not included."""
        for block in self._blocks:
            for n in range(0, len(block), 2):
                yield block[n], block[n + 1]

    def __contains__(self, offset: int) -> bool:
        place = bisect_right(self._firsts, offset) - 1
        return place >= 0 and bool(bisect_right(self._blocks[place], offset) & 1)

    @property
    def first(self) -> tuple[int, int]:
        """The first range, of a set that is not empty."""
        block = self._blocks[0]
        return block[0], block[1]

    @property
    def last_end(self) -> int:
        """The end of the last range, of a set that is not empty."""
        return self._blocks[-1][-1]

    def range_at(self, offset: int) -> tuple[int, int] | None:
        """The range that holds an offset, or else the first behind it; None if there is none."""
        place = max(bisect_right(self._firsts, offset) - 1, 0)
        while place < len(self._blocks):
            block = self._blocks[place]
            n = bisect_right(block, offset) & ~1
            if n < len(block):
                return block[n], block[n + 1]
            place += 1
        return None

    def add(self, start: int, end: int) -> int:
        """Add the offsets from start to before end, which is larger; returns how many of them are new."""
        return self._change(start, end, adding=True)

    def remove(self, start: int, end: int) -> int:
        """Remove the offsets from start to before end, which is larger; returns how many of them were there."""
        return -self._change(start, end, adding=False)

    def remove_before(self, offset: int) -> int:
        """Remove all offsets before one; returns how many they were."""
        if not self._blocks or self._firsts[0] >= offset:
            return 0
        return self.remove(self._firsts[0], offset)

    def pop_first(self) -> tuple[int, int]:
        """Take out the first range of a set that is not empty."""
        start, end = self.first
        self.remove(start, end)
        return start, end

    def clear(self) -> None:
        """Remove everything."""
        self._blocks, self._firsts = [], []
        self._encoded.clear()
        self.size = 0

    def _change(self, start: int, end: int, *, adding: bool) -> int:
        place = max(bisect_right(self._firsts, start) - 1, 0)
        blocks, firsts = self._blocks, self._firsts
        if not blocks:
            if not adding:
                return 0
            blocks.append(array("q"))
            firsts.append(start)
        block = blocks[place]
        # All that the change can reach is brought into one block.
        stop = bisect_right(firsts, end, place + 1)
        if stop > place + 1:
            for other in blocks[place + 1 : stop]:
                self._encoded.pop(id(other), None)
                block.extend(other)
            del blocks[place + 1 : stop], firsts[place + 1 : stop]
        self._encoded.pop(id(block), None)
        low, high = bisect_left(block, start), bisect_right(block, end)
        inside = 0 if adding else 1
        bounds = array("q")
        if low & 1 == inside:
            bounds.append(start)
        if high & 1 == inside:
            bounds.append(end)
        # The size of a set is the sum of its ends minus the sum of its starts.
        grown = _measure(bounds, low) - _measure(block[low:high], low)
        block[low:high] = bounds
        self.size += grown
        if not block:
            del blocks[place], firsts[place]
        else:
            firsts[place] = block[0]
            if len(block) > 2 * _BLOCK_BOUNDS:
                self._split(place)
        return grown

    def _split(self, place: int) -> None:
        block = self._blocks[place]
        pieces = [block[n : n + _BLOCK_BOUNDS] for n in range(0, len(block), _BLOCK_BOUNDS)]
        self._blocks[place : place + 1] = pieces
        self._firsts[place : place + 1] = [piece[0] for piece in pieces]

    def take_bounds(self, bounds: "array[int]") -> None:
        """Be what a row of bounds says that only rises: start, end, start, end."""
        self.clear()
        self.size = _measure(bounds, 0)
        if bounds:
            self._blocks, self._firsts = [bounds], [bounds[0]]
            self._split(0)

    def gaps(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The ranges between two offsets that are not in the set."""
        while start < end:
            found = self.range_at(start)
            if found is None or found[0] >= end:
                yield start, end
                return
            if found[0] > start:
                yield start, found[0]
            start = found[1]

    def covered(self, start: int, end: int) -> int:
        """How many of the offsets from start to before end are in the set."""
        return end - start - sum(stop - begin for begin, stop in self.gaps(start, end)) if end > start else 0

    def encode(self, position: int) -> bytes:
        """The stored form; blocks that have not changed since the last time are not encoded again.

        Args:
            position: an offset not behind the first range.
        """
        parts = [b""]
        before = position
        for block in self._blocks:
            # The distance to the block before is encoded apart, so that the rest depends on the block alone.
            parts.append(_varint(block[0] - before))
            kept = self._encoded.get(id(block))
            if kept is None:
                kept = self._encoded[id(block)] = _encode_block(block)
            parts.append(kept)
            before = block[-1]
        parts[0] = bytes([_VERSION]) + _varint(len(self))
        body = b"".join(parts)
        return body + crc32c(body).to_bytes(4, "little")


def _measure(bounds: "array[int]", at: int) -> int:
    """What a run of bounds adds to the size of the set; `at` is the place of the first in its block, or would be."""
    sign = 1 if at & 1 else -1
    total = 0
    for bound in bounds:
        total += sign * bound
        sign = -sign
    return total


def _encode_block(block: "array[int]") -> bytes:
    """All bounds of a block but the first, each as its distance from the one before."""
    out = bytearray()
    before = block[0]
    for bound in block[1:]:
        distance = bound - before
        before = bound
        while distance > 0x7F:
            out.append(distance & 0x7F | 0x80)
            distance >>= 7
        out.append(distance)
    return bytes(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_ranges(stored: bytes, position: int) -> OffsetRanges:
    """Read the stored form.

    Args:
        stored: as `OffsetRanges.encode` made it; empty for no ranges.
        position: the one it was encoded for.

    Raises:
        RangesDamaged: it is not whole, or not in order.
    """
    ranges = OffsetRanges()
    if not stored:
        return ranges
    body, checksum = memoryview(stored)[:-4], stored[-4:]
    if len(stored) < 6 or crc32c(body).to_bytes(4, "little") != checksum:
        raise RangesDamaged("the checksum is wrong")
    if body[0] != _VERSION:
        raise RangesDamaged(f"version {body[0]} is not known")
    numbers = _varints(body[1:])
    count = next(numbers, None)
    bounds = array("q")
    bound = position
    for number in numbers:
        bound += number
        if bound > _OFFSET_MAX or (not number and bounds):
            raise RangesDamaged("the ranges are not in order")
        bounds.append(bound)
    if count is None or len(bounds) != 2 * count:
        raise RangesDamaged(f"{count} ranges, and {len(bounds)} bounds")
    ranges.take_bounds(bounds)
    return ranges


def _varints(buf: memoryview) -> Iterator[int]:
    value = shift = 0
    for byte in buf:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            yield value
            value = shift = 0
        elif shift >= _VARINT_BITS_MAX:
            raise RangesDamaged("a number is too long")
        else:
            shift += 7
    if shift:
        raise RangesDamaged("it ends within a number")
