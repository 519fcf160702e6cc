"""Walking over frames: what is taken, where a walk stops and why, and how frames are found behind damage."""

from collections.abc import Callable

import pytest

from millstream.model.frame import HEADER_BYTES, read_frame_header, set_base_offset
from millstream.storage.scan import Stop, find_frame, take_frames, walk_frames
from tests.support.batches import batch

COUNTS = (1, 4, 2, 1)
BASES = (10, 11, 15, 17)
END = 18


def stored() -> list[bytes]:
    frames = []
    for base, count in zip(BASES, COUNTS, strict=True):
        frame = batch(b"v" * base, count)
        set_base_offset(memoryview(frame), base)
        frames.append(bytes(frame))
    return frames


FRAMES = stored()
DATA = b"".join(FRAMES)
PLACES = [sum(map(len, FRAMES[:n])) for n in range(len(FRAMES) + 1)]


def reader(data: bytes | bytearray) -> Callable[[int, int], bytes]:
    return lambda position, size: bytes(data[position : position + size])


@pytest.mark.parametrize("wanted", range(10, END))
def test_the_frame_that_holds_the_offset_comes_first(wanted: int) -> None:
    taken = take_frames(memoryview(DATA), 10, wanted, len(DATA))
    first = max(n for n, base in enumerate(BASES) if base <= wanted)
    assert (taken.start, taken.stop, taken.next_offset) == (PLACES[first], len(DATA), END)
    assert (taken.reason, taken.needed_bytes) == (Stop.SHORT, HEADER_BYTES)


def test_one_frame_is_taken_however_small_the_limit() -> None:
    for limit in range(len(DATA) + 1):
        taken = take_frames(memoryview(DATA), 10, 10, limit)
        assert taken.stop == max([PLACES[1], *(p for p in PLACES if p <= limit)])


def test_every_cut_takes_the_whole_frames_before_it() -> None:
    for size in range(len(DATA)):
        taken = take_frames(memoryview(DATA)[:size], 10, 10, len(DATA))
        whole = max(n for n, place in enumerate(PLACES) if place <= size)
        assert (taken.start, taken.stop, taken.position) == (0, PLACES[whole], PLACES[whole])
        assert taken.reason is Stop.SHORT
        left = size - PLACES[whole]
        assert taken.needed_bytes == (HEADER_BYTES if left < HEADER_BYTES else len(FRAMES[whole]))


def test_every_flipped_bit_stops_the_walk_at_its_frame() -> None:
    data = bytearray(DATA)
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        taken = take_frames(memoryview(data), 10, 10, len(data))
        hit = max(n for n, place in enumerate(PLACES) if place <= bit // 8)
        assert (taken.start, taken.stop) == (0, PLACES[hit])
        assert taken.next_offset == BASES[hit]
        # A length that has become larger cannot be told from a frame whose end is not there yet.
        too_long = taken.needed_bytes > len(data) - taken.position
        assert too_long if taken.reason is Stop.SHORT else taken.reason is Stop.DAMAGED or hit > 0
        data[bit // 8] ^= 1 << bit % 8


def test_a_walk_yields_every_frame_with_its_place() -> None:
    walked = list(walk_frames(reader(DATA), 0, 10, len(DATA)))
    assert walked == [(place, read_frame_header(DATA, place)) for place in PLACES[:-1]]


def test_a_walk_goes_on_over_the_ends_of_what_is_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(walk_frames(reader(DATA), 0, 10, len(DATA)))
    for size in range(1, len(DATA), 7):
        monkeypatch.setattr("millstream.storage.scan._CHUNK_BYTES", size)
        assert list(walk_frames(reader(DATA), 0, 10, len(DATA))) == whole


@pytest.mark.timeout(10)
def test_a_walk_over_a_file_shorter_than_it_was_ends() -> None:
    for size in range(len(DATA)):
        walked = list(walk_frames(reader(DATA[:size]), 0, 10, len(DATA)))
        assert len(walked) == max(n for n, place in enumerate(PLACES) if place <= size)


def test_the_next_frame_is_found_behind_damage_from_every_position(monkeypatch: pytest.MonkeyPatch) -> None:
    for chunk_bytes in (HEADER_BYTES + 1, 100, 4096):
        monkeypatch.setattr("millstream.storage.scan._CHUNK_BYTES", chunk_bytes)
        for position in range(len(DATA)):
            found = find_frame(reader(DATA), position, 10, END, len(DATA))
            behind = [(place, base) for place, base in zip(PLACES, BASES, strict=False) if place > position]
            assert found == (behind[0] if behind else None)


def test_a_frame_outside_the_offsets_is_passed_over() -> None:
    assert find_frame(reader(DATA), 0, 12, END, len(DATA)) == (PLACES[2], 15)
    assert find_frame(reader(DATA), 0, 12, 15, len(DATA)) is None


def test_a_damaged_frame_is_passed_over() -> None:
    data = bytearray(DATA)
    data[PLACES[1] + HEADER_BYTES] ^= 1
    assert find_frame(reader(data), 0, 10, END, len(data)) == (PLACES[2], 15)


def test_a_base_offset_must_be_confirmed() -> None:
    data = bytearray(DATA)
    data[PLACES[1] + 11] ^= 1  # the damage that was met, in a length
    data[PLACES[2] + 7] ^= 0x40  # the next frame says 79 where it should say 15
    assert find_frame(reader(data), PLACES[1], 11, None, len(data)) is None, "and nothing confirms the last"
    assert find_frame(reader(data), PLACES[1], 11, END, len(data)) == (PLACES[3], 17)


@pytest.mark.parametrize("field_at", [23, 57], ids=["last_offset_delta", "record_count"])
def test_a_damaged_header_confirms_the_last_frame_with_either_of_its_counts(field_at: int) -> None:
    data = bytearray(DATA)
    data[PLACES[2] + field_at] ^= 0x40
    assert find_frame(reader(data), PLACES[2], 15, None, len(data)) == (PLACES[3], 17)
    data[PLACES[2] + 23 + 57 - field_at] ^= 0x40
    assert find_frame(reader(data), PLACES[2], 15, None, len(data)) is None
    assert find_frame(reader(data), PLACES[2], 15, END, len(data)) == (PLACES[3], 17)


@pytest.mark.timeout(10)
def test_a_search_in_a_file_shorter_than_it_was_ends() -> None:
    for size in (0, 1, HEADER_BYTES, PLACES[1] + 5, PLACES[1] + HEADER_BYTES + 1):
        assert find_frame(reader(DATA[:size]), 0, 10, 1000, 2**40) is None


def test_a_frame_inside_a_record_is_not_taken_for_one_of_the_log() -> None:
    inner = batch(b"planted", 3)
    set_base_offset(memoryview(inner), 500)
    outer = batch(bytes(inner))
    set_base_offset(memoryview(outer), 10)
    after = batch(b"after")
    set_base_offset(memoryview(after), 11)
    data = bytes(outer + after)
    for next_offset in (None, 12):
        assert find_frame(reader(data), 0, 10, next_offset, len(data)) == (len(outer), 11)
        assert find_frame(reader(data + bytes(100)), 0, 10, next_offset, len(data) + 100) == (len(outer), 11)
        for size in range(len(outer) + 1):
            assert find_frame(reader(data[:size]), 0, 10, next_offset, size) is None
