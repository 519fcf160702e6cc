"""The last offset of each key."""

from millstream.broker.cleaning.key_offsets import KeyOffsets
from millstream.broker.keyed_frames import KeyedRecord
from tests.support.steps import taken


def records(*keys: bytes | None) -> list[KeyedRecord]:
    return [KeyedRecord(place, key, deletes=False) for place, key in enumerate(keys)]


def test_what_is_left_of_a_frame() -> None:
    offsets = KeyOffsets(10**6)
    long = b"x" * 1000
    offsets.note(10, records(b"a", b"b", None, long))
    offsets.note(20, records(b"a", long))
    left = offsets.left(10, records(b"a", b"b", None, long))
    assert [one.place for one in left] == [1, 2]
    assert offsets.left(20, records(b"a", long, b"never seen")) == records(b"a", long, b"never seen")
    assert offsets.left(5, records(b"y" * 1000)) == records(b"y" * 1000)


def test_a_bound_on_memory() -> None:
    offsets = KeyOffsets(1000)
    full = []
    for key in (b"a", b"b", b"a", b"c", b"d", b"a", b"e"):
        full.append(offsets.is_full)
        offsets.note(0, records(key))
    assert full == [False] * 7
    assert offsets.is_full
    assert not KeyOffsets(0).is_full, "one key always fits"


def test_many_keys_lie_in_many_tables_which_are_given_back_one_by_one() -> None:
    offsets = KeyOffsets(200 * 300_000)
    for base_offset in range(0, 200_000, 1000):
        offsets.note(base_offset, records(*(b"%d" % n for n in range(base_offset, base_offset + 1000))))
    sizes = [len(table) for table in offsets._tables]
    assert sum(sizes) == 200_000
    assert max(sizes) < 8192, "one that grows, or goes, holds up everyone for less than a millisecond"
    assert offsets.left(0, records(b"0", b"199999")) == records(b"0")
    steps = offsets.forget()
    assert sum(1 for _ in steps) == len(sizes)
    taken(steps)
    assert not offsets._tables
