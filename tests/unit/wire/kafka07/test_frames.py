"""Message sets as frames of the log: exactly as sent, cut at messages, and back to records."""

import pytest

from millstream.model.frame import HEADER_BYTES, Magic, frame_crc, read_frame_header, set_base_offset
from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.kafka07.errors import InvalidMessage
from millstream.wire.kafka07.frames import (
    CheckedSet,
    build_frame,
    encode_records,
    message_position,
    read_records,
    take_set,
)
from millstream.wire.kafka07.messages import InflationBudget, encode_wrapper
from tests.unit.wire.kafka07.sets import message_set, wrapper

NOW_MS = 1_700_000_000_000


def taken(body: bytes, payload_bytes_max: int = 1_000_000, frame_bytes_max: int = 1_048_588) -> CheckedSet:
    return take_set(
        memoryview(body),
        now_ms=NOW_MS,
        payload_bytes_max=payload_bytes_max,
        frame_bytes_max=frame_bytes_max,
        budget=InflationBudget(),
    )


def bodies(checked: CheckedSet) -> list[tuple[bytes, int]]:
    """The body and the count of records of each frame."""
    return [(bytes(frame[HEADER_BYTES:]), read_frame_header(frame).record_count) for frame in checked.frames]


def records_of(frame: bytearray) -> list[Record]:
    return read_records(memoryview(frame))


def test_a_frame() -> None:
    body = message_set(b"a", b"b", magic=1)
    (frame,) = taken(body).frames
    header = read_frame_header(frame)
    assert bytes(frame[HEADER_BYTES:]) == body
    assert (header.magic, header.size, header.attributes) == (Magic.KAFKA07_SET, len(frame), 0)
    assert (header.record_count, header.last_offset_delta) == (2, 1)
    assert (header.first_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert header.crc == frame_crc(memoryview(frame))


def test_wrappers_count_for_what_is_inside() -> None:
    body = message_set(b"a") + wrapper([b"b", b"c"]) + message_set(b"d") + wrapper([b"e"] * 3, Codec.SNAPPY)
    assert bodies(taken(body)) == [(body, 7)]


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\0\0", encode_wrapper([], Codec.GZIP)])
def test_nothing_to_store(body: bytes) -> None:
    assert taken(body) == CheckedSet([], 0)


def test_a_message_cut_off_at_the_end_is_left_out() -> None:
    whole, cut = message_set(b"a") + wrapper([b"b"]), message_set(b"c", magic=1)
    for size in range(len(cut)):
        assert bodies(taken(whole + cut[:size])) == [(whole, 2)]


@pytest.mark.parametrize("size", range(4, 12))
def test_the_first_message_must_be_whole(size: int) -> None:
    with pytest.raises(InvalidMessage):
        taken(message_set(b"abc")[:size])


def test_damage_anywhere_refuses_the_whole_set() -> None:
    body = message_set(b"a") + wrapper([b"b"])
    for position in (8, 9, len(body) - 1):
        damaged = bytearray(body)
        damaged[position] ^= 1
        with pytest.raises(InvalidMessage):
            taken(bytes(damaged))


def test_messages_that_are_too_large_are_dropped() -> None:
    small, large = message_set(b"a"), message_set(b"x" * 11)
    assert taken(large, payload_bytes_max=10) == CheckedSet([], 1)
    checked = taken(large + small + small + large + large + small, payload_bytes_max=10)
    assert checked.dropped == 3
    assert bodies(checked) == [(small + small, 2), (small, 1)]
    exact = message_set(b"x" * 10)
    assert bodies(taken(exact, payload_bytes_max=10)) == [(exact, 1)]


def test_a_wrapper_that_is_too_large_is_dropped_unopened() -> None:
    large = wrapper([bytes(range(200))])
    assert taken(large + message_set(b"a"), payload_bytes_max=50).dropped == 1


def test_a_set_larger_than_a_frame_may_be_is_cut_at_messages() -> None:
    messages = [message_set(bytes([n]) * (n % 7)) for n in range(50)] + [wrapper([b"y"] * 3)] * 5
    body = b"".join(messages)
    for room in range(60, 200, 7):
        checked = taken(body, frame_bytes_max=HEADER_BYTES + room)
        assert checked.dropped == 0
        assert b"".join(part for part, _ in bodies(checked)) == body
        assert sum(count for _, count in bodies(checked)) == 65
        assert all(len(part) <= room for part, _ in bodies(checked))


def test_a_message_larger_than_a_frame_may_be_is_dropped() -> None:
    checked = taken(message_set(b"a", b"x" * 60, b"b"), frame_bytes_max=HEADER_BYTES + 50)
    assert checked.dropped == 1
    assert bodies(checked) == [(message_set(b"a"), 1), (message_set(b"b"), 1)]


def test_records() -> None:
    frame = build_frame(message_set(b"a", b"") + wrapper([b"b", b"c"]), 4, NOW_MS)
    set_base_offset(memoryview(frame), 100)
    records = records_of(frame)
    assert [record.value for record in records] == [b"a", b"", b"b", b"c"]
    assert [record.offset for record in records] == [100, 101, 102, 103]
    assert {(r.key, r.headers, r.timestamp_ms, r.append_time) for r in records} == {(None, (), NOW_MS, True)}


def test_a_frame_that_lies_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="holds 1"):
        records_of(build_frame(message_set(b"a"), 2, NOW_MS))


@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_others_become_messages(magic: int) -> None:
    values = [b"a", None, b"", b"c" * 1000]
    records = [Record(offset=n, timestamp_ms=0, key=b"key", value=value) for n, value in enumerate(values)]
    assert encode_records(records, magic) == message_set(*(value or b"" for value in values), magic=magic)


def test_positions_of_messages() -> None:
    parts = [message_set(b"a"), wrapper([b"b", b"c"]), message_set(b"d"), wrapper([]), message_set(b"e")]
    frame = build_frame(b"".join(parts), 5, NOW_MS)
    set_base_offset(memoryview(frame), 10)
    header = read_frame_header(frame)
    starts = [sum(map(len, parts[:n])) for n in range(6)]
    found = [message_position(memoryview(frame), header, offset) for offset in range(10, 16)]
    assert found == [starts[n] for n in (0, 1, 1, 2, 4, 5)]


def test_a_frame_holds_no_more_records_than_can_be_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.wire.kafka07.frames.BATCH_RECORDS_MAX", 5)
    first, second = message_set(b"a") + wrapper([b"b"] * 4), wrapper([b"c"] * 3) + message_set(b"d")
    assert bodies(taken(first + second)) == [(first, 5), (second, 4)]
    with pytest.raises(InvalidMessage, match="at most 5"):
        taken(wrapper([b""] * 6))
