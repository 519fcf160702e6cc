"""The loops between messages and records: the compiled module and its Python source give the same answers."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model.frame import HEADER_BYTES, read_frame_header
from millstream.model.record import Record
from millstream.wire.kafka import message_places
from millstream.wire.kafka.errors import InvalidBatch
from millstream.wire.kafka.records import build_batch, frame_records, read_records
from tests.support.message_sets import message_set, read_messages
from tests.support.twins import twin

ROOM_BYTES = 100_000


IN_PYTHON = twin("wire.kafka.message_places")
BOTH = pytest.mark.parametrize("places", [message_places, IN_PYTHON], ids=["installed", "python"])

nullable = st.none() | st.binary(max_size=300)
times = st.integers(-1, 2**62)
shapes = st.lists(st.tuples(nullable, nullable, times), min_size=1, max_size=8)


def records_of(shape: list[tuple[bytes | None, bytes | None, int]]) -> list[Record]:
    return [Record(offset=n, timestamp_ms=ms, key=key, value=value) for n, (key, value, ms) in enumerate(shape)]


def written(places: Any, messages: bytearray) -> tuple[bytearray, Any]:
    tail, out = places.RecordsTail(), bytearray(ROOM_BYTES)
    assert places.write_records(memoryview(messages), 0, len(messages), out, tail) == len(messages)
    return out[: tail.written_bytes], tail


@BOTH
@given(shape=shapes)
@settings(max_examples=60, deadline=None)
def test_messages_become_records(places: Any, shape: list[tuple[bytes | None, bytes | None, int]]) -> None:
    wanted = records_of(shape)
    body, tail = written(places, message_set(1, 0, wanted))
    batch = frame_records(body, 0, tail.count, tail.first_ms, tail.latest_ms)
    assert list(read_records(memoryview(batch))) == wanted
    assert tail.latest_ms == max(one.timestamp_ms for one in wanted)


@BOTH
@given(shape=shapes, magic=st.sampled_from([0, 1]), from_delta=st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_records_become_messages(
    places: Any, shape: list[tuple[bytes | None, bytes | None, int]], magic: int, from_delta: int
) -> None:
    batch = memoryview(build_batch(records_of(shape)))
    header = read_frame_header(batch)
    span, out = places.RecordSpan(header.record_count, 70, from_delta, False), bytearray(ROOM_BYTES)
    size = places.write_messages(batch[HEADER_BYTES:], span, header.first_timestamp, -1, magic, out)
    wanted = [
        Record(offset=70 + n, timestamp_ms=ms if magic else -1, key=key, value=value)
        for n, (key, value, ms) in enumerate(shape)
        if n >= from_delta
    ]
    assert read_messages(out[:size]) == wanted
    assert span.index == span.count


@BOTH
@given(body=st.binary(max_size=60), count=st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_a_body_that_is_anything_is_refused_or_stays_within_its_bounds(places: Any, body: bytes, count: int) -> None:
    def outcome(module: Any) -> tuple[int, bytes] | str:
        span, out = module.RecordSpan(count, 0, 0, False), bytearray(500)
        try:
            size = module.write_messages(memoryview(body), span, 0, -1, 1, out)
        except InvalidBatch as error:
            return str(error)
        return size, bytes(out[:size])

    assert outcome(places) == outcome(IN_PYTHON)


@BOTH
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_set_with_a_changed_byte_is_refused(places: Any, data: st.DataObject) -> None:
    """Offsets do not count, and no checksum covers them; all else does, and a new size or checksum is noticed."""
    magic = data.draw(st.sampled_from([0, 1]))
    messages = message_set(magic, 0, [Record(offset=0, timestamp_ms=5, key=b"key", value=b"value")])
    position = data.draw(st.integers(8, len(messages) - 1))
    messages[position] ^= data.draw(st.integers(1, 255))
    tail, out = places.RecordsTail(), bytearray(ROOM_BYTES)
    try:
        stopped = places.write_records(memoryview(messages), 0, len(messages), out, tail)
    except InvalidBatch:
        return
    assert stopped == 0, "it is taken for a compressed message, whose checksum is looked at next"
    assert position == 17


@BOTH
def test_what_there_is_no_room_for_is_told(places: Any) -> None:
    batch = memoryview(build_batch(records_of([(b"k", bytes(100), 0), (None, bytes(1000), 0)])))
    span, out = places.RecordSpan(2, 0, 0, False), bytearray(200)
    assert places.write_messages(batch[HEADER_BYTES:], span, 0, -1, 0, out) == 26 + 101
    assert (span.index, span.needed_bytes, span.last_delta) == (1, 26 + 1000, 0)
    assert places.write_messages(batch[HEADER_BYTES:], span, 0, -1, 0, bytearray(span.needed_bytes)) == 1026
    assert span.index == 2
