"""The last offset of each key."""

from millstream.broker.cleaning.key_offsets import KeyOffsets
from millstream.broker.keyed_frames import KeyedRecord


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
