"""The compiled codecs: every kind of field in every place, and bytes that are no message."""

import time
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.schema import (
    Buffer,
    array,
    boolean,
    bytes_,
    compiled_decoder,
    compiled_encoder,
    float64,
    int8,
    int16,
    int32,
    message,
    records,
    string,
    struct_,
    uint16,
    uuid_,
)
from millstream.wire.limits import ARRAY_ENTRIES_MAX
from tests.unit.wire.kafka.samples import APIS, SIDES, message_class, sample

ID = uuid.UUID("01234567-89ab-cdef-fedc-ba9876543210")
ID_HEX = "0123456789abcdeffedcba9876543210"
HUGE = "ffffffff0f"  # an unsigned varint of 2^32 - 1


@message
class Point:
    x: int = int16()
    label: str | None = string(nullable=1)


@message
class Everything:
    flag: bool = boolean()
    tiny: int = int8()
    port: int = uint16()
    ratio: float = float64()
    name: str = string()
    note: str | None = string(nullable=1)
    raw: bytes = bytes_()
    raw_or_none: bytes | None = bytes_(nullable=1)
    id: uuid.UUID = uuid_()
    numbers: list[int] = array("int64")
    names: list[str] = array("string")
    ids: list[uuid.UUID] = array("uuid")
    points: list[Point] | None = array(Point, nullable=1)
    here: Point = struct_(Point)
    there: Point | None = struct_(Point, nullable=1, default=None)
    batch: Buffer | None = records()
    old: int = int32(until=0)
    tagged_number: int = int32(since=1, tag=3, default=-1)
    tagged_name: str | None = string(since=1, tag=0, nullable=1, default=None)
    tagged_point: Point = struct_(Point, since=1, tag=5)
    tagged_points: list[Point] = array(Point, since=1, tag=200)


@message
class Strings:
    value: str = string()


@message
class NullableStrings:
    value: str | None = string(nullable=0)


@message
class Bytes:
    value: bytes = bytes_()


@message
class Batch:
    value: Buffer | None = records()


@message
class Numbers:
    value: list[int] = array("int32")


@message
class NullableNumbers:
    value: list[int] | None = array("int32", nullable=0)


@message
class Names:
    value: list[str] = array("string")


@message
class Inner:
    value: list[int] = array("int64")


@message
class Outer:
    value: list[Inner] = array(Inner)


@message
class Tagged:
    number: int = int32(tag=1, default=-1)
    name: str = string(tag=2)
    after: int = int32(tag=9, default=-1)


@message
class Id:
    value: uuid.UUID = uuid_()


def decode(cls: type, data: str, *, flexible: bool, version: int = 0) -> Any:
    view = memoryview(bytes.fromhex(data))
    value, position = compiled_decoder(cls, version, flexible=flexible)(view, 0)
    assert position == len(view)
    return value


def encode(value: Any, *, flexible: bool, version: int = 0) -> str:
    cls: type = type(value)
    return b"".join(compiled_encoder(cls, version, flexible=flexible)(value, bytearray())).hex()


def everything(**also: Any) -> Everything:
    return Everything(
        flag=True,
        tiny=-1,
        port=0xFFEE,
        ratio=1.5,
        name="ab",
        raw=b"\x01\x02",
        id=ID,
        numbers=[-1, 2],
        names=["", "c"],
        ids=[ID],
        here=Point(x=7, label="h"),
        batch=b"\xba\xba",
        **{"there": Point(), **also},
    )


def test_fixed_layout() -> None:
    value = everything(note="n", points=[Point(x=1, label="p")], old=9)
    expected = (
        "01 ff ffee 3ff8000000000000 0002 6162 0001 6e 00000002 0102 00000000"
        f"{ID_HEX} 00000002 ffffffffffffffff 0000000000000002 00000002 0000 0001 63 00000001 {ID_HEX}"
        "00000001 0001 0001 70 0007 0001 68 0000 0000 00000002 baba 00000009"
    ).replace(" ", "")
    assert encode(value, flexible=False) == expected
    assert decode(Everything, expected, flexible=False) == value


def test_flexible_layout() -> None:
    value = everything(
        note=None,
        raw_or_none=None,
        points=None,
        there=None,
        tagged_number=8,
        tagged_name="t",
        tagged_point=Point(x=5, label="q"),
    )
    fixed = (
        "01 ff ffee 3ff8000000000000 03 6162 00 03 0102 00"
        f"{ID_HEX} 03 ffffffffffffffff 0000000000000002 03 01 02 63 02 {ID_HEX}"
        "00 0007 02 68 00 ff 03 baba"
    )
    tags = "03 00 02 02 74 03 04 00000008 05 05 0005 02 71 00"
    expected = (fixed + tags).replace(" ", "")
    assert encode(value, flexible=True, version=1) == expected
    assert decode(Everything, expected, flexible=True, version=1) == value


def test_tags_in_any_order_with_unknown_ones_between() -> None:
    data = "04 09 04 00000009 07 02 aabb 02 03 03 6869 01 04 00000001"
    assert decode(Tagged, data, flexible=True) == Tagged(number=1, name="hi", after=9)


def test_tags_at_their_default_are_left_out() -> None:
    assert encode(Tagged(), flexible=True) == "00"
    assert encode(Tagged(name="x"), flexible=True) == "0102020278"
    assert decode(Tagged, "00", flexible=True) == Tagged(number=-1, name="", after=-1)


def test_what_is_left_over_in_a_tag_does_not_shift_the_next() -> None:
    assert decode(Tagged, "02 01 05 00000001 ee 09 04 00000009", flexible=True) == Tagged(number=1, after=9)


@pytest.mark.parametrize(
    "data",
    [
        "01 01 03 000000",  # a tag too short for its number, at the end of the frame
        "02 01 03 000000 09 04 00000009",  # and with the next tag right behind
        "01 02 02 03 68 69",  # a string that goes beyond its tag
        "01 02 00",  # a string without a length
        "01 02 01 00",  # null where null is not allowed
        "01 02 01 80",  # a length that is cut off
        "02 01 04 00000001 01 04 00000001",  # the same tag twice
        "808080808000",  # the number of tags in six bytes
    ],
)
def test_malformed_tags(data: str) -> None:
    with pytest.raises(MalformedMessage):
        decode(Tagged, data, flexible=True)


def test_defaults_are_made_anew_for_each_message() -> None:
    first, second = (decode(Everything, encode(everything(), flexible=False), flexible=False) for _ in range(2))
    first.tagged_points.append(Point())
    first.tagged_point.x = 9
    assert second.tagged_points == []
    assert second.tagged_point == Point()


def test_only_records_are_views() -> None:
    data = memoryview(bytes.fromhex(encode(everything(), flexible=False)))
    value, _ = compiled_decoder(Everything, 0, flexible=False)(data, 0)
    assert isinstance(value.batch, memoryview)
    assert (type(value.raw), type(value.name)) == (bytes, str)


def test_encoding_goes_on_behind_what_is_there() -> None:
    head = bytearray(b"head")
    parts = compiled_encoder(Batch, 0, flexible=True)(Batch(value=b"abc"), head)
    assert parts[0] is head
    assert b"".join(parts) == b"head\x04abc\x00"


@pytest.mark.parametrize(
    ("cls", "legacy", "compact"),
    [
        (Strings, "ffff", "0000"),
        (Bytes, "ffffffff", "0000"),
        (Numbers, "ffffffff", "0000"),
        (Names, "ffffffff", "0000"),
        (Outer, "00000001 ffffffff", "02 00 00 00"),
    ],
)
def test_null_where_it_is_not_allowed(cls: type, legacy: str, compact: str) -> None:
    for data, flexible in ((legacy, False), (compact, True)):
        with pytest.raises(MalformedMessage, match="must not be null"):
            decode(cls, data, flexible=flexible)


@pytest.mark.parametrize(
    ("cls", "legacy"), [(NullableStrings, "ffff"), (Batch, "ffffffff"), (NullableNumbers, "ffffffff")]
)
def test_null_where_it_is_allowed(cls: type, legacy: str) -> None:
    assert decode(cls, legacy, flexible=False) == cls(value=None)
    assert decode(cls, "0000", flexible=True) == cls(value=None)
    assert (encode(cls(value=None), flexible=False), encode(cls(value=None), flexible=True)) == (legacy, "0000")
    # Any other negative length is null too, as it is to Apache Kafka.
    other = legacy.replace("ff", "fe", 1)
    assert decode(cls, other, flexible=False) == cls(value=None)


def test_null_is_not_sent_where_it_is_not_allowed() -> None:
    nothing: Any = None
    for flexible in (False, True):
        with pytest.raises(AttributeError):
            encode(Strings(value=nothing), flexible=flexible)


@pytest.mark.parametrize("data", ["0001 ff", "0002 c328", "0002 c0af", "0003 eda080", "0001 c3"])
def test_text_that_is_not_utf_8(data: str) -> None:
    compact = f"{int(data[:4], 16) + 1:02x}{data[4:]}00"
    for encoded, flexible in ((data, False), (compact, True)):
        with pytest.raises(MalformedMessage):
            decode(Strings, encoded, flexible=flexible)


@contextmanager
def little_time_and_memory(*, peak_bytes_max: int = 64 * 1024) -> Iterator[None]:
    """Bounds what one refusal may cost, far above what it does and far below what its lengths ask for."""
    started = time.perf_counter()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < peak_bytes_max
    assert time.perf_counter() - started < 1


HOSTILE = [
    (Strings, False, ["7fff", "0001", "0003 6162", "fffe", "8000"]),
    (Strings, True, [HUGE, "02", "04 6162", "8080808010", "ffffffff10", "808080808000"]),
    (Bytes, False, ["7fffffff", "00000001", "00000003 0102", "fffffffe", "80000000"]),
    (Bytes, True, [HUGE, "02", "04 0102", "ffffffff7f"]),
    (Batch, False, ["7fffffff", "00000001", "00000003 0102"]),
    (Batch, True, [HUGE, "02", "04 0102"]),
    (Numbers, False, ["7fffffff", "00000001", "00000001 000000", "00000004 0000000000000000", "fffffffe"]),
    (Numbers, True, [HUGE, "02", "02 000000", "05 0000000000000000"]),
    (Names, False, ["7fffffff", "00000001", "00000002 0000", "00000001 7fff", "00000002 0000 fffe"]),
    (Names, True, [HUGE, "02", "03 01", f"02 {HUGE}", "03 01 ffffffff10"]),
    (Outer, False, ["7fffffff", "00000001", "00000001 7fffffff", "00000002 00000000 40000000", "fffffffe"]),
    (Outer, True, [HUGE, "02", f"02 {HUGE}", f"03 01 00 {HUGE}", "02 01", "02 02 00000000000000"]),
    (Id, False, ["", ID_HEX[:-2]]),
    (Id, True, [ID_HEX, ID_HEX + "01", ID_HEX + HUGE, ID_HEX + f"01 00 {HUGE}"]),
]


@pytest.mark.parametrize(
    ("cls", "flexible", "data"),
    [
        pytest.param(cls, flexible, data, id=f"{cls.__name__}-{'compact' if flexible else 'legacy'}-{data}")
        for cls, flexible, examples in HOSTILE
        for data in examples
    ],
)
def test_hostile_lengths(cls: type, flexible: bool, data: str) -> None:
    frame = memoryview(bytes.fromhex(data))
    decoder: Callable[[memoryview, int], Any] = compiled_decoder(cls, 0, flexible=flexible)
    with little_time_and_memory(), pytest.raises(MalformedMessage):
        decoder(frame, 0)


def test_a_count_that_the_frame_could_hold_but_does_not() -> None:
    """The worst case: as many elements as there are bytes left, each of which asks for as many again."""
    size = 20_000
    decoder = compiled_decoder(Outer, 0, flexible=False)
    frame = memoryview((size.to_bytes(4, "big")) * (size // 4 + 1))
    with little_time_and_memory(peak_bytes_max=50 * size), pytest.raises(MalformedMessage):
        decoder(frame, 0)


ENDS = [
    pytest.param(api, version, side, id=f"{api.name}-v{version}-{side}")
    for api in APIS
    for version in sorted({api.versions[0], api.versions[-1], *([api.flexible_since] if api.flexible_since else [])})
    for side in SIDES
]


def bytes_of(api: Api, version: int, side: str, absence: float) -> bytes:
    cls = message_class(api, side)
    value = sample(cls, version, Random(f"{api.name} {side}"), absence)
    return b"".join(compiled_encoder(cls, version, flexible=api.flexible(version))(value, bytearray()))


@pytest.mark.parametrize(("api", "version", "side"), ENDS)
def test_every_cut_is_malformed(api: Api, version: int, side: str) -> None:
    decoder = compiled_decoder(message_class(api, side), version, flexible=api.flexible(version))
    whole = memoryview(bytes_of(api, version, side, 0.5))
    # All of a long message would take seconds and show nothing that its two ends do not.
    sizes = {*range(min(len(whole), 600)), *range(max(0, len(whole) - 100), len(whole))}
    for size in sizes:
        with pytest.raises(MalformedMessage):
            decoder(whole[:size], 0)


@pytest.mark.parametrize(("api", "version", "side"), ENDS)
def test_hostile_lengths_anywhere(api: Api, version: int, side: str) -> None:
    """Put an impossible length over every place of a message: it decodes or is refused, and costs little."""
    flexible = api.flexible(version)
    decoder = compiled_decoder(message_class(api, side), version, flexible=flexible)
    whole = bytes_of(api, version, side, 0.7)
    hostile = bytes.fromhex(HUGE if flexible else "7fffffff")
    with little_time_and_memory(peak_bytes_max=40 * len(whole) + 64 * 1024):
        for position in range(min(len(whole), 300)):
            frame = whole[:position] + hostile + whole[position + len(hostile) :]
            try:
                decoder(memoryview(frame), 0)
            except MalformedMessage:
                continue


@message
class Rows:
    rows: list[Names] = array(Names)


@pytest.mark.parametrize(("rows", "fits"), [(400, True), (401, False)])
def test_entries_are_counted_over_all_arrays_of_a_message(rows: int, fits: bool) -> None:
    names = ARRAY_ENTRIES_MAX // 400 - 1
    data = encode(Rows(rows=[Names(value=[""] * names)] * rows), flexible=True)
    if fits:
        assert len(decode(Rows, data, flexible=True).rows) == rows
    else:
        with pytest.raises(MalformedMessage, match="too many entries"):
            decode(Rows, data, flexible=True)
