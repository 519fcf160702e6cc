"""Avro, one batch at a time and without Spark: types, resolution of schemas, damaged bytes."""

import datetime
import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.spark.errors import BadSchema
from millstream.spark.values.arrow_decoder import Result, decode_batch
from millstream.spark.values.avro import AvroDecoder
from millstream.spark.values.framing import Framing

UTC = datetime.UTC


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def record(**types: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in types.items()]}


def decoded(reader: Any, *values: bytes | None, writer: Any = None) -> Result:
    writers = None if writer is None else {0: json.dumps(writer)}.__getitem__
    decoder = AvroDecoder(json.dumps(reader), writers, 0)
    result = decode_batch(decoder, values, Framing.NONE, [None] * len(values))
    result.values.validate(full=True)
    assert result.values.type == decoder.type
    return result


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("schema", "written", "kind", "read"),
    [
        ("boolean", True, pa.bool_(), True),
        ("int", -5, pa.int32(), -5),
        ("long", 2**40, pa.int64(), 2**40),
        ("float", 1.5, pa.float32(), 1.5),
        ("double", -2.25, pa.float64(), -2.25),
        ("string", "é", pa.string(), "é"),
        ("bytes", b"\0\xff", pa.binary(), b"\0\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", pa.binary(), b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", pa.string(), "B"),
        ({"type": "array", "items": ["null", "int"]}, [1, None], pa.list_(pa.int32()), [1, None]),
        ({"type": "map", "values": "int"}, {"a": 1}, pa.map_(pa.string(), pa.int32()), [("a", 1)]),
        (["null", "string"], None, pa.string(), None),
        (["int", "null", "long"], 2**40, pa.int64(), 2**40),
        (["float", "int"], 3, pa.float64(), 3.0),
        (logical("bytes", "decimal", precision=6, scale=2), Decimal("12.5"), pa.decimal128(6, 2), Decimal("12.50")),
        (logical("int", "date"), 3, pa.date32(), datetime.date(1970, 1, 4)),
        (logical("long", "timestamp-millis"), 1500, pa.timestamp("us", "UTC"), 1_500_000),
        (logical("long", "timestamp-micros"), 1500, pa.timestamp("us", "UTC"), 1500),
        (logical("long", "timestamp-nanos"), 1500, pa.timestamp("us", "UTC"), 1),
        (logical("long", "local-timestamp-millis"), 1500, pa.timestamp("us"), 1_500_000),
        (logical("int", "time-millis"), 7, pa.int32(), 7),
        (logical("long", "no-such-type"), 7, pa.int64(), 7),
    ],
)
def test_types(schema: Any, written: Any, kind: Any, read: Any) -> None:
    plain = {**schema, "logicalType": "none"} if isinstance(schema, dict) and "logicalType" in schema else schema
    data = encoded(record(x=schema if isinstance(written, Decimal) else plain), {"x": written})
    result = decoded(record(x=schema), data)
    column = result.values.field(0)
    assert column.type == kind or (pa.types.is_list(kind) and column.type.value_type == kind.value_type)
    assert (column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column).to_pylist() == [read]


def test_resolution() -> None:
    inner = {
        "type": "record",
        "name": "Leg",
        "fields": [{"name": "to", "type": "string"}, {"name": "km", "type": "int"}],
    }
    writer = record(
        id="int",
        name="string",
        legs={"type": "array", "items": inner},
        by={"type": "map", "values": "Leg"},
        state={"type": "enum", "name": "S", "symbols": ["ON", "OFF"]},
        gone="bytes",
    )
    reader = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "title", "aliases": ["name"], "type": ["null", "bytes"]},
            {"name": "id", "type": "double"},
            {"name": "legs", "type": {"type": "array", "items": {**inner, "fields": [inner["fields"][1]]}}},
            {"name": "by", "type": {"type": "map", "values": "Leg"}},
            {
                "name": "state",
                "type": {"type": "enum", "name": "S", "symbols": ["ON", "UNKNOWN"], "default": "UNKNOWN"},
            },
            {"name": "country", "type": "string", "default": "NL"},
            {"name": "at", "type": ["null", "long"], "default": None},
            {"name": "raw", "type": "bytes", "default": "\u00ff"},
            {"name": "more", "type": {"type": "map", "values": "int"}, "default": {"a": 1}},
        ],
    }
    leg = {"to": "AMS", "km": 5}
    data = encoded(writer, {"id": 3, "name": "é", "legs": [leg], "by": {"x": leg}, "state": "OFF", "gone": b"-"})
    assert decoded(reader, data, None, data, writer=writer).values.to_pylist() == [
        expected := {
            "title": "é".encode(),
            "id": 3.0,
            "legs": [{"km": 5}],
            "by": [("x", {"km": 5})],
            "state": "UNKNOWN",
            "country": "NL",
            "at": None,
            "raw": b"\xff",
            "more": [("a", 1)],
        },
        None,
        expected,
    ]


def test_values_of_several_writers_stay_in_order() -> None:
    first, second = record(a="int"), record(a="long", b="int")
    reader = {
        "type": "record",
        "name": "R",
        "fields": [*second["fields"][:1], {"name": "b", "type": "int", "default": -1}],
    }
    decoder = AvroDecoder(json.dumps(reader), {0: json.dumps(first), 1: json.dumps(second)}.__getitem__)
    values = [encoded(first, {"a": 1}), encoded(second, {"a": 2, "b": 5}), None, encoded(first, {"a": 3}), b"\2\2"]
    result = decode_batch(decoder, values, Framing.NONE, [0, 1, None, 0, None])
    assert result.values.to_pylist() == [{"a": 1, "b": -1}, {"a": 2, "b": 5}, None, {"a": 3, "b": -1}, None]
    assert result.reasons.to_pylist() == [
        *[None] * 4,
        "it does not say by which schema it was written, and there are several",
    ]


def test_one_value_that_has_no_place_in_its_column_costs_itself_only() -> None:
    schema = record(at=logical("long", "timestamp-millis"), n="int")
    plain = record(at="long", n="int")
    values = [encoded(plain, {"at": 2**62 if n == 5 else n, "n": n}) for n in range(11)]
    result = decoded(schema, *values)
    assert result.reasons.is_valid().to_pylist() == [n == 5 for n in range(11)]
    assert result.values.field("n").to_pylist() == [None if n == 5 else n for n in range(11)]
    assert "no place in its column" in result.reasons[5].as_py()


def test_null_where_the_reader_wants_a_value() -> None:
    writer = record(
        x=["null", "int"],
        r=["null", {"type": "record", "name": "I", "fields": [{"name": "y", "type": ["null", "int"]}]}],
    )
    reader = record(
        x=["null", "int"], r=["null", {"type": "record", "name": "I", "fields": [{"name": "y", "type": "int"}]}]
    )
    values = [encoded(writer, {"x": 1, "r": r}) for r in (None, {"y": 1}, {"y": None})]
    result = decoded(reader, *values, writer=writer)
    assert result.values.to_pylist() == [{"x": 1, "r": None}, {"x": 1, "r": {"y": 1}}, None]
    assert "'r.y' is null" in result.reasons[2].as_py()


@pytest.mark.parametrize(
    ("writer", "reader", "message"),
    [
        (record(x="string"), record(x="int"), "written as string and cannot be read as int"),
        (record(x="int"), record(x="int", y="int"), "'y' was not written"),
        (record(x="int"), record(x={"type": "array", "items": "int"}), "cannot be read as array"),
        (record(x={"type": "array", "items": "null"}), record(x={"type": "array", "items": "int"}), "take no bytes"),
        (
            record(x="int", r={"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}),
            record(x="int"),
            "contains itself",
        ),
    ],
)
def test_schemas_that_do_not_go_together(writer: Any, reader: Any, message: str) -> None:
    assert message in decoded(reader, b"\0\0", writer=writer).reasons[0].as_py()


def test_a_schema_that_is_none() -> None:
    with pytest.raises(BadSchema, match="not an Avro schema"):
        _ = AvroDecoder('{"type": "recordd"}').type


_NESTED = record(
    a="int",
    s="string",
    u=["null", "double"],
    l={"type": "array", "items": {"type": "map", "values": ["null", "bytes"]}},
    e={"type": "enum", "name": "E", "symbols": ["A", "B"]},
    f={"type": "fixed", "name": "F", "size": 3},
)


@given(st.binary(max_size=60))
@settings(max_examples=150)
def test_any_bytes_decode_or_are_said_not_to(data: bytes) -> None:
    result = decoded(_NESTED, data)
    assert result.values[0].is_valid != result.reasons[0].is_valid
    if result.values[0].is_valid:
        value = dict(result.values[0].as_py(), l=[dict(item) for item in result.values[0].as_py()["l"]])
        again = decoded(_NESTED, encoded(_NESTED, value)).values[0].as_py()
        assert str(again) == str(result.values[0].as_py()), "text, since not a number equals nothing"


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "a": st.integers(-(2**31), 2**31 - 1),
                "s": st.text(),
                "u": st.none() | st.floats(allow_nan=False),
                "l": st.lists(st.dictionaries(st.text(max_size=3), st.none() | st.binary(), max_size=3), max_size=3),
                "e": st.sampled_from("AB"),
                "f": st.binary(min_size=3, max_size=3),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=100)
def test_what_was_written_is_read(values: list[dict[str, Any]]) -> None:
    found = decoded(_NESTED, *(encoded(_NESTED, value) for value in values)).values.to_pylist()
    assert [dict(row, l=[dict(item) for item in row["l"]]) for row in found] == values


_FLAT = record(
    b="boolean",
    i="int",
    l=["null", "long"],
    f="float",
    d=["double", "null"],
    s=["null", "string"],
    raw="bytes",
    fixed={"type": "fixed", "name": "F", "size": 3},
    e=["null", {"type": "enum", "name": "E", "symbols": ["A", "B"]}],
    at=logical("long", "timestamp-micros"),
    day=["null", logical("int", "date")],
    inner=[
        "null",
        {
            "type": "record",
            "name": "I",
            "fields": [{"name": "x", "type": "string"}, {"name": "y", "type": ["null", "F"]}],
        },
    ],
)
_SMALLER = {
    "type": "record",
    "name": "R",
    "fields": [
        {
            "name": "inner",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "I",
                    "fields": [{"name": "z", "type": "string", "default": "?"}, {"name": "x", "type": "bytes"}],
                },
            ],
        },
        {"name": "title", "aliases": ["s"], "type": ["null", "string"]},
        {"name": "i", "type": "double"},
        {"name": "new", "type": "int", "default": 5},
    ],
}
_THREE = st.binary(min_size=3, max_size=3)
_VALUES = st.fixed_dictionaries(
    {
        "b": st.booleans(),
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.floats(width=32, allow_nan=False),
        "d": st.none() | st.floats(allow_nan=False),
        "s": st.none() | st.text(),
        "raw": st.binary(),
        "fixed": _THREE,
        "e": st.none() | st.sampled_from("AB"),
        "at": st.integers(-(2**50), 2**50),
        "day": st.none() | st.integers(-(10**6), 10**6),
        "inner": st.none() | st.fixed_dictionaries({"x": st.text(), "y": st.none() | _THREE}),
    }
)
_EDIT = st.tuples(st.integers(0, 5), st.integers(0, 200), st.integers(0, 255))


def _by_columns(decoder: AvroDecoder, values: list[bytes | None], framing: Framing = Framing.NONE) -> Result:
    # A slice, as of a larger batch.
    array = pa.array([b"other", *values, b"other"], pa.binary()).slice(1, len(values))
    result = decoder.decode_columns(array, pa.nulls(len(values), pa.binary()), framing)
    assert result is not None
    result.values.validate(full=True)
    return result


def _as_text(array: Any) -> list[str]:
    """Columns as text, in which not-a-number equals itself, and which there is of days before the year 1."""
    if isinstance(array, pa.StructArray):
        return [str(array.is_valid()), *(text for column in array.flatten() for text in _as_text(column))]
    return [array.to_string(window=10)]


@pytest.mark.parametrize("reader", [_FLAT, _SMALLER])
@given(
    st.lists(st.none() | _VALUES, min_size=1, max_size=6),
    st.lists(_EDIT, max_size=3),
    st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), max_size=2),
)
@settings(max_examples=60, deadline=None)
def test_columns_are_what_values_are_one_by_one(
    reader: Any, values: list[Any], edits: list[tuple[int, int, int]], cuts: list[tuple[int, int]]
) -> None:
    """Also where bytes are changed, cut off or added."""
    plain = json.loads(json.dumps(_FLAT).replace("logicalType", "was"))
    written = [None if value is None else bytearray(encoded(plain, value)) for value in values]
    for row, place, byte in edits:
        if row < len(written) and (data := written[row]):
            data[place % len(data)] = byte
    for row, length in cuts:
        if row < len(written) and (data := written[row]) is not None:
            written[row] = data[:length] if length < 0 else data + bytes(length)
    given_bytes = [None if one is None else bytes(one) for one in written]
    decoder = AvroDecoder(json.dumps(reader), {0: json.dumps(_FLAT)}.__getitem__, 0)
    one_by_one = decode_batch(decoder, given_bytes, Framing.NONE, [None] * len(given_bytes))
    by_columns = _by_columns(decoder, given_bytes)
    assert by_columns.reasons.to_pylist() == one_by_one.reasons.to_pylist()
    assert _as_text(by_columns.values) == _as_text(one_by_one.values)


def test_columns_behind_confluents_framing() -> None:
    schema = record(a="int", s="string")
    values = [b"\0\0\0\0\x07" + encoded(schema, {"a": n, "s": "x" * n}) for n in range(5)]
    for writers in (None, {7: json.dumps(schema)}.__getitem__):
        decoder = AvroDecoder(json.dumps(schema), writers)
        result = _by_columns(decoder, [*values, None], Framing.CONFLUENT)
        assert result.values.to_pylist() == [*({"a": n, "s": "x" * n} for n in range(5)), None]


@pytest.mark.parametrize(
    "values", [[b"\0\0\0\0\x07\x02", b"\0\0\0\0\x08\x02"], [b"\x01\0\0\0\x07\x02"], [b"\0"], [None]]
)
def test_values_of_several_schemas_are_decoded_one_by_one(values: list[bytes | None]) -> None:
    decoder = AvroDecoder(json.dumps(record(a="int")))
    assert (
        decoder.decode_columns(pa.array(values, pa.binary()), pa.nulls(len(values), pa.binary()), Framing.CONFLUENT)
        is None
    )


def test_schemas_that_are_not_there_are_asked_for_once() -> None:
    asked: list[int] = []

    def writers(number: int) -> str:
        asked.append(number)
        raise BadSchema(f"no version {number}")

    decoder = AvroDecoder(json.dumps(record(a="int")), writers)
    result = decode_batch(decoder, [b"\2", b"\2", b"\2"], Framing.NONE, [5, 5, 6])
    assert result.reasons.to_pylist() == ["no version 5", "no version 5", "no version 6"]
    assert asked == [5, 6]
