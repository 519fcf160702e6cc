"""Which frames are taken apart together."""

import struct
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model import frame_heads, frame_span
from millstream.model.frame import Attributes, Magic, frame_crc, read_frame_header, set_base_offset
from millstream.model.frame_span import (
    FRAME_BYTES_MAX,
    HEAD_FIELDS,
    SPAN_BYTES_MAX,
    FrameSpan,
    frame_of,
    spans_of,
    take_span,
)
from millstream.model.numbers import numbers
from tests.support.batches import batch
from tests.support.twins import twin

IN_PYTHON = twin("model.frame_heads")


@pytest.fixture(params=["installed", "python"], autouse=True)
def heads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop as it is installed, and in Python."""
    if request.param == "python":
        monkeypatch.setattr(frame_span, "take_heads", IN_PYTHON.take_heads)


def frame(count: int = 1, value: bytes = b"v", *, magic: int = Magic.KAFKA_V2, attributes: int = 0) -> bytearray:
    made = batch(value, count)
    struct.pack_into(">b", made, 16, magic)
    struct.pack_into(">h", made, 21, attributes)
    struct.pack_into(">I", made, 17, frame_crc(memoryview(made)))
    return made


def row(*frames: bytearray, offset: int = 0) -> memoryview:
    """Frames one behind the other."""
    for one in frames:
        set_base_offset(memoryview(one), offset)
        offset = read_frame_header(one).last_offset + 1
    return memoryview(b"".join(frames))


def counts(data: memoryview) -> list[int]:
    """How many frames each span has."""
    return [span.count for span in spans_of(data, frames_max=256)]


def test_small_frames_are_taken_together() -> None:
    data = row(frame(1), frame(3, b"value"), frame(2), offset=1000)
    span = take_span(data, frames_max=256)
    assert (span.count, span.records, span.base_offset, span.end_offset) == (3, 6, 1000, 1006)
    assert span.data == data
    assert span.magic == Magic.KAFKA_V2
    assert list(span.bodies()) == [one.data[61:] for one in span.frames()]
    for number, one in enumerate(span.frames()):
        header = read_frame_header(one.data)
        assert one.header == header
        assert (one.count, one.digest) == (1, header.crc)
        head = span.heads[number * HEAD_FIELDS : (number + 1) * HEAD_FIELDS].tolist()
        assert head[0] == header.base_offset - 1000
        assert head[3:] == [
            header.record_count,
            header.last_offset_delta + 1,
            header.first_timestamp,
            header.max_timestamp,
            header.attributes,
            0,
        ]
    assert span.last_crc == header.crc


@pytest.mark.parametrize(
    "alone",
    [
        frame(65),
        frame(1, b"x" * FRAME_BYTES_MAX),
        frame(attributes=2),
        frame(attributes=Attributes.CONTROL),
    ],
    ids=["many records", "large", "compressed", "control"],
)
def test_some_frames_are_always_by_themselves(alone: bytearray) -> None:
    assert counts(row(frame(), frame(), alone, frame(), frame())) == [2, 1, 2]
    assert counts(row(alone, frame())) == [1, 1]


def test_a_span_has_one_encoding() -> None:
    data = row(frame(), frame(), frame(magic=Magic.IGGY_BATCH), frame(magic=Magic.IGGY_BATCH), frame())
    assert counts(data) == [2, 2, 1]


def test_a_gap_ends_a_span() -> None:
    data = memoryview(bytes(row(frame(), frame())) + bytes(row(frame(), offset=3)))
    assert counts(data) == [2, 1]


def test_wherever_somebody_begins_the_next_spans_are_the_same() -> None:
    data = row(*(frame(1) for _ in range(600)), offset=200)
    size = len(frame(1))
    ends = {span.end_offset for span in spans_of(data, frames_max=256)}
    assert ends == {256, 512, 768, 800}
    assert {span.end_offset for span in spans_of(data[70 * size :], frames_max=256)} == ends - {256}


def test_bounds() -> None:
    data = row(*(frame(2) for _ in range(9)))
    size = len(frame(2))
    assert take_span(data, frames_max=4).count == 4
    assert take_span(data, frames_max=256, records_max=7).count == 3
    assert take_span(data, frames_max=256, records_max=0).count == 1, "the first whatever it has"
    assert take_span(data, frames_max=256, end_offset=6).count == 3
    assert take_span(data, 2 * size, frames_max=256, end_offset=0).count == 1
    assert take_span(data, frames_max=256, bytes_max=2 * size).count == 2
    assert take_span(data, frames_max=256, bytes_max=2 * size + 1).count == 3
    large = row(*(frame(1, b"x" * 16_000) for _ in range(9)))
    assert len(take_span(large, frames_max=256).data) < SPAN_BYTES_MAX + FRAME_BYTES_MAX


def test_what_is_left_of_a_frame_makes_another_span() -> None:
    one = take_span(row(frame(1, b"a"), frame(1, b"b")), frames_max=256)
    other = take_span(row(frame(1, b"a"), frame(1, b"c")), frames_max=256)
    assert one.digest != other.digest


def test_a_body_by_itself() -> None:
    whole = frame_of(row(frame(2)))
    span = whole.with_body(1000)
    assert (span.heads[1], span.heads[2], span.count, span.records) == (0, 1000, 1, 2)
    assert whole.heads[1] == 61


headers = st.builds(
    frame,
    st.sampled_from([1, 1, 1, 2, 64, 65]),
    st.binary(max_size=20),
    magic=st.sampled_from([2, 2, 2, 4, 8, 16]),
    attributes=st.sampled_from([0, 0, 0, 8, 16, 1, 32]),
)


@given(st.lists(headers, min_size=1, max_size=9), st.sampled_from([0, 250, 2**60]), st.integers(0, 200))
@settings(derandomize=True, deadline=None, database=None)
def test_both_loops_give_the_same(frames: list[bytearray], offset: int, most: int) -> None:
    data = row(*frames, offset=offset)
    for change in (-1, 0, 4):
        if change >= 0:  # times before 1970
            data = memoryview(bytearray(data))
            data[27 + change] = 0xFF
        assert len({found(module, data, most) for module in (frame_heads, IN_PYTHON)}) == 1
    for magic in Magic:
        stops = [module.own_frames(data, 0, magic) for module in (frame_heads, IN_PYTHON)]
        own = sum(len(span.data) for span in own_spans(data, magic))
        assert stops == [own, own]


def found(module: ModuleType, data: memoryview, most: int) -> tuple[int, ...]:
    heads, totals = numbers(HEAD_FIELDS * 7), numbers(frame_heads.TOTALS)
    count = module.take_heads(data, 0, 2**62, most, 10 * most, heads, totals)
    return count, *heads.tolist(), *totals.tolist()


def own_spans(data: memoryview, magic: int) -> Iterator[FrameSpan]:
    for span in spans_of(data, frames_max=1):
        if span.magic != magic:
            return
        yield span
