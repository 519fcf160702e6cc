"""Protobuf values."""

import datetime
import os
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.spark.errors import BadSchema
from millstream.spark.values import decode
from millstream.spark.values.arrow_decoder import decode_batch
from millstream.spark.values.framing import Framing
from millstream.spark.values.protobuf import ProtobufDecoder, descriptor_set_of
from tests.spark.values.conftest import Rows, reasons_of, values_of

_IMPORTS = (timestamp_pb2, duration_pb2, wrappers_pb2)


def _add(message: Any, name: str, kind: int, *, type_name: str = "", label: int = Field.LABEL_OPTIONAL) -> Any:
    field = message.field.add(name=name, number=len(message.field) + 1, type=kind, label=label)
    if type_name:
        field.type_name = type_name
    return field


def _file() -> descriptor_pb2.FileDescriptorProto:
    """What protoc makes of a file with the messages Flight, Flight.Leg and Loop, and the enum State, in proto3."""
    file = descriptor_pb2.FileDescriptorProto(name="flights.proto", package="tests", syntax="proto3")
    file.dependency.extend(one.DESCRIPTOR.name for one in _IMPORTS)
    state = file.enum_type.add(name="State")
    for number, name in enumerate(["UNKNOWN", "DEPARTED"]):
        state.value.add(name=name, number=number)
    file.message_type.add(name="Other").field.add(name="x", number=1, type=Field.TYPE_INT32, label=1)
    flight = file.message_type.add(name="Flight")
    _add(flight, "number", Field.TYPE_INT32)
    _add(flight, "carrier", Field.TYPE_STRING)
    _add(flight, "seats", Field.TYPE_UINT32)
    _add(flight, "id", Field.TYPE_FIXED64)
    _add(flight, "delay", Field.TYPE_DOUBLE)
    _add(flight, "raw", Field.TYPE_BYTES)
    _add(flight, "state", Field.TYPE_ENUM, type_name=".tests.State")
    _add(flight, "legs", Field.TYPE_MESSAGE, type_name=".tests.Flight.Leg", label=Field.LABEL_REPEATED)
    _add(flight, "at", Field.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp")
    _add(flight, "took", Field.TYPE_MESSAGE, type_name=".google.protobuf.Duration")
    _add(flight, "gate", Field.TYPE_MESSAGE, type_name=".google.protobuf.StringValue")
    _add(flight, "meals", Field.TYPE_MESSAGE, type_name=".tests.Flight.MealsEntry", label=Field.LABEL_REPEATED)
    note = _add(flight, "note", Field.TYPE_STRING)
    flight.oneof_decl.add(name="_note")
    note.oneof_index, note.proto3_optional = 0, True
    _add(flight.nested_type.add(name="Leg"), "to", Field.TYPE_STRING)
    meals = flight.nested_type.add(name="MealsEntry")
    _add(meals, "key", Field.TYPE_STRING)
    _add(meals, "value", Field.TYPE_INT32)
    meals.options.map_entry = True
    loop = file.message_type.add(name="Loop")
    _add(loop, "again", Field.TYPE_MESSAGE, type_name=".tests.Loop")
    file.message_type.add(name="Nothing")
    return file


def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for one in _IMPORTS:
        pool.AddSerializedFile(one.DESCRIPTOR.serialized_pb)
    pool.Add(_file())
    return pool


Flight: Any = message_factory.GetMessageClass(_pool().FindMessageTypeByName("tests.Flight"))
DESCRIPTORS = descriptor_set_of(Flight.DESCRIPTOR)


def flight() -> Any:
    made = Flight(number=-1, carrier="KL", seats=2**32 - 1, id=2**64 - 1, delay=1.5, raw=b"\xff", state=1, note="")
    made.legs.add(to="AMS")
    made.at.FromMicroseconds(1_500_001)
    made.took.FromMicroseconds(2_000_000)
    made.gate.value = "B7"
    made.meals["soup"] = 3
    return made


def test_rows(rows: Rows, tmp_path: Any) -> None:
    values = [flight().SerializeToString(), b"", None, flight().SerializeToString()[:-3]]
    path = os.fspath(tmp_path / "flights.desc")
    with open(path, "wb") as file:
        file.write(DESCRIPTORS)
    for schema, message in ((Flight, None), (DESCRIPTORS, "tests.Flight"), (path, "tests.Flight")):
        good, bad = decode(rows(values), format="protobuf", schema=schema, message=message)
        assert good.schema["value"].dataType.simpleString() == (
            "struct<number:int,carrier:string,seats:bigint,id:decimal(20,0),delay:double,raw:binary,state:string,"
            "legs:array<struct<to:string>>,at:timestamp,took:interval day to second,gate:string,"
            "meals:map<string,int>,note:string>"
        )
    assert list(reasons_of(bad)) == [3]
    found = values_of(good)
    assert found[0] == {
        "number": -1,
        "carrier": "KL",
        "seats": 2**32 - 1,
        "id": Decimal(2**64 - 1),
        "delay": 1.5,
        "raw": bytearray(b"\xff"),
        "state": "DEPARTED",
        "legs": [{"to": "AMS"}],
        "at": found[0]["at"],
        "took": datetime.timedelta(seconds=2),
        "gate": "B7",
        "meals": {"soup": 3},
        "note": "",
    }
    assert (found[1]["number"], found[1]["state"], found[1]["at"], found[1]["note"]) == (0, "UNKNOWN", None, None)
    assert found[2] is None
    [micros] = good.where("offset = 0").selectExpr("unix_micros(value.at)").collect()
    assert micros[0] == 1_500_001


def test_confluents_framing(rows: Rows) -> None:
    data = flight().SerializeToString()
    head = b"\0\0\0\0\x05"
    values = [head + b"\x02\x02" + data, head + b"\x00" + data, head, head + b"\x04\x02\x00", data]
    good, bad = decode(rows(values), format="protobuf", schema=Flight, framing="confluent")
    assert {offset: value["number"] for offset, value in values_of(good).items()} == {0: -1}
    assert reasons_of(bad) == {
        1: "it is the message [0] of its file, not [1], tests.Flight",
        2: "it does not begin with the indexes of its message",
        3: "it is the message [1, 0] of its file, not [1], tests.Flight",
        4: "it does not begin with a schema id in Confluent's form",
    }


def test_a_message_within_a_message(rows: Rows) -> None:
    leg = Flight.Leg(to="AMS").SerializeToString()
    good, _ = decode(
        rows([b"\0\0\0\0\x05\x04\x02\x00" + leg]),
        format="protobuf", schema=DESCRIPTORS, message="tests.Flight.Leg", framing="confluent",
    )  # fmt: skip
    assert values_of(good) == {0: {"to": "AMS"}}


@pytest.mark.parametrize(
    ("schema", "message", "text"),
    [
        (DESCRIPTORS, None, "name one with message="),
        (DESCRIPTORS, "tests.Missing", "no message 'tests.Missing'"),
        (DESCRIPTORS, "tests.Loop", "tests.Loop.again is a message within itself"),
        (DESCRIPTORS, "tests.Nothing", "without fields"),
        (b"\xff\xff", "tests.Flight", "no FileDescriptorSet"),
        ("/no/such/file", "tests.Flight", "cannot be read"),
        (None, None, "needs a schema"),
        (descriptor_pb2.FileDescriptorSet(file=[_file()]).SerializeToString(), "tests.Flight", "imports"),
    ],
)
def test_schemas_that_cannot_be_used(rows: Rows, schema: Any, message: str | None, text: str) -> None:
    with pytest.raises(BadSchema, match=text):
        decode(rows([]), format="protobuf", schema=schema, message=message)


def test_numbers_of_enums_that_the_schema_does_not_know() -> None:
    decoder = ProtobufDecoder(DESCRIPTORS, "tests.Flight")
    result = decode_batch(decoder, [b"\x38\x09"], Framing.NONE, [None])
    assert result.values[0].as_py()["state"] == "9"


@given(st.binary(max_size=80))
@settings(max_examples=300)
def test_any_bytes_decode_or_are_said_not_to(data: bytes) -> None:
    decoder = ProtobufDecoder(DESCRIPTORS, "tests.Flight")
    result = decode_batch(decoder, [data, flight().SerializeToString()], Framing.NONE, [None, None])
    assert result.values[0].is_valid != result.reasons[0].is_valid
    assert result.values[1].is_valid
    assert isinstance(result.values, pa.StructArray)
    result.values.validate(full=True)
