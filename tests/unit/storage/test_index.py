"""The index of a segment: what goes in comes out, and damage is always noticed."""

from random import Random

from millstream.storage.index import INTERVAL_BYTES, Hole, SegmentIndex, decode_index, encode_index

BASE = 1_000_000_000_000


def an_index() -> SegmentIndex:
    index = SegmentIndex(BASE)
    position = 0
    for n in range(20):
        index.add(BASE + 3 * n, BASE + 3 * n + 3, position, INTERVAL_BYTES // 2, 500 + n, 2)
        position += INTERVAL_BYTES // 2
    index.add_hole(Hole(position, position + 700, BASE + 60, BASE + 64))
    return index


def test_round_trip() -> None:
    index = an_index()
    assert decode_index(BASE, encode_index(index, b"producers")) == (index, b"producers")


def test_round_trip_of_an_empty_index() -> None:
    assert decode_index(BASE, encode_index(SegmentIndex(BASE), b"")) == (SegmentIndex(BASE), b"")


def test_every_flipped_bit_is_noticed() -> None:
    content = bytearray(encode_index(an_index(), b"producers"))
    for bit in range(8 * len(content)):
        content[bit // 8] ^= 1 << bit % 8
        assert decode_index(BASE, bytes(content)) is None
        content[bit // 8] ^= 1 << bit % 8


def test_every_truncation_and_extension_is_noticed() -> None:
    content = encode_index(an_index(), b"producers")
    for size in range(len(content)):
        assert decode_index(BASE, content[:size]) is None
        assert decode_index(BASE, content[:size] + bytes(len(content) - size)) is None or not any(content[size:])
    assert decode_index(BASE, content + b"\0") is None


def test_one_entry_in_an_interval() -> None:
    index = an_index()
    assert list(index.positions) == [n * INTERVAL_BYTES for n in range(10)]
    assert list(index.offsets) == [6 * n for n in range(10)]


def test_a_frame_larger_than_an_interval_has_one_entry() -> None:
    index = SegmentIndex(0)
    index.add(0, 1, 0, 10 * INTERVAL_BYTES, 1, 2)
    index.add(1, 2, 10 * INTERVAL_BYTES, 100, 1, 2)
    assert list(index.positions) == [0, 10 * INTERVAL_BYTES]


def test_offsets_before_the_first_entry_lead_to_the_beginning() -> None:
    assert SegmentIndex(BASE).floor(BASE + 5) == (BASE, 0)
    assert an_index().floor(BASE - 1) == (BASE, 0)


def test_floor_and_before_time_against_a_search() -> None:
    random = Random(3)
    for _ in range(30):
        index = SegmentIndex(BASE)
        frames = []  # base offset, position, timestamp
        offset, position = BASE, 0
        for _ in range(random.randint(0, 60)):
            size, records, time = random.randint(61, 9000), random.randint(1, 50), random.randint(0, 100)
            frames.append((offset, position, time))
            index.add(offset, offset + records, position, size, time, 2)
            offset, position = offset + records, position + size
        places = {(base, at) for base, at, _ in frames} | {(BASE, 0)}
        for wanted in range(BASE, offset + 2, 7):
            base, at = index.floor(wanted)
            assert (base, at) in places
            assert base <= wanted
            behind = [b for b, p, _ in frames if at < p and b <= wanted and p - at >= 9000 + INTERVAL_BYTES]
            assert not behind, "an entry is never further away than an interval and a frame"
        for time in range(102):
            base, at = index.before_time(time)
            assert (base, at) in places
            assert all(t < time for b, _, t in frames if b < base), "nothing as late lies before it"


def test_the_latest_timestamp_is_that_of_the_first_frame_that_has_it() -> None:
    index = SegmentIndex(BASE)
    for n, time in enumerate([5, 9, 7, 9]):
        index.add(BASE + n, BASE + n + 1, 100 * n, 100, time, 2)
    assert (index.max_timestamp, index.max_timestamp_at) == (9, BASE + 1)


def test_holes_are_found_by_their_position() -> None:
    index = an_index()
    hole = index.holes[0]
    assert index.hole_at(hole.position) == hole
    assert index.hole_at(hole.position + 1) is None
    assert (index.log_bytes, index.next_offset) == (hole.stop_position, hole.next_offset)
