"""Sets of offsets as ranges, against sets of numbers; their stored form; their size and cost."""

import tracemalloc
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.broker.subscriptions.ranges import OffsetRanges, RangesDamaged, decode_ranges

changes = st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(1, 9)))


@given(changes=changes)
def test_ranges_are_a_set_of_numbers(changes: list[tuple[bool, int, int]]) -> None:
    ranges, reference = OffsetRanges(), set[int]()
    for adds, start, size in changes:
        numbers = set(range(start, start + size))
        if adds:
            assert ranges.add(start, start + size) == len(numbers - reference)
            reference |= numbers
        else:
            assert ranges.remove(start, start + size) == len(numbers & reference)
            reference -= numbers
        assert ranges.size == len(reference)
        pairs = list(ranges)
        assert {n for first, end in pairs for n in range(first, end)} == reference
        assert len(ranges) == len(pairs)
        assert all(first[1] < second[0] for first, second in pairwise(pairs)), "touching ranges"
    for start in range(0, 70, 7):
        assert (start in ranges) == (start in reference)
        gaps = {n for first, end in ranges.gaps(start, start + 10) for n in range(first, end)}
        assert gaps == set(range(start, start + 10)) - reference
        assert ranges.covered(start, start + 10) == 10 - len(gaps)
    assert list(decode_ranges(ranges.encode(0), 0)) == list(ranges)


def test_blocks_split_join_and_keep_what_they_hold() -> None:
    random = Random(1)
    ranges, reference = OffsetRanges(), set[int]()
    for _ in range(8000):
        start, size = random.randrange(40_000), random.choice((1, 1, 1, 3, 500))
        numbers = range(start, start + size)
        if random.random() < 0.8 and size < 500:
            ranges.add(start, start + size)
            reference.update(numbers)
        else:
            ranges.remove(start, start + size)
            reference.difference_update(numbers)
        if random.random() < 0.01:
            assert list(decode_ranges(ranges.encode(0), 0)) == list(ranges), "a block was encoded anew, or should be"
    assert {n for first, end in ranges for n in range(first, end)} == reference
    assert ranges.remove_before(20_000) == sum(1 for n in reference if n < 20_000)
    assert ranges.first[0] == min(n for n in reference if n >= 20_000)
    while ranges:
        assert ranges.first == ranges.pop_first()
    assert ranges.size == 0


def test_an_empty_set_has_an_empty_and_a_whole_form() -> None:
    assert not decode_ranges(b"", 5)
    assert not decode_ranges(OffsetRanges().encode(5), 5)
    assert OffsetRanges().range_at(3) is None
    assert OffsetRanges().remove(1, 4) == 0


def test_what_is_damaged_does_not_read() -> None:
    ranges = OffsetRanges()
    for n in range(100):
        ranges.add(10 + 3 * n, 11 + 3 * n)
    stored = ranges.encode(7)
    for position in range(len(stored)):
        damaged = bytearray(stored)
        damaged[position] ^= 0x10
        with pytest.raises(RangesDamaged):
            decode_ranges(bytes(damaged), 7)
        with pytest.raises(RangesDamaged):
            decode_ranges(stored[:position] or b"x", 7)


@pytest.mark.parametrize(
    "body",
    [b"\x02\x00", b"\x01\x01\x05", b"\x01\x01\x05\x00", b"\x01\x01\x05\x80", b"\x01" + b"\xff" * 11 + b"\x01"],
    ids=["version", "half a range", "empty range", "cut number", "long number"],
)
def test_what_is_wrong_behind_a_good_checksum_does_not_read(body: bytes) -> None:
    from crc32c import crc32c

    with pytest.raises(RangesDamaged):
        decode_ranges(body + crc32c(body).to_bytes(4, "little"), 0)


def test_ten_thousand_scattered_holes_are_small() -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    ranges = OffsetRanges()
    for n in range(10_000):
        ranges.add(n * 1000, n * 1000 + 1)
    stored = ranges.encode(0)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(ranges) == 10_000
    assert used < 1_000_000
    assert len(stored) < 40_000
