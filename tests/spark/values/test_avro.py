"""Avro values in Spark; what one batch is decoded to, without Spark, is tested in test_avro_batches.py."""

import io
import json
from typing import Any

import fastavro
import pytest

from millstream.spark.errors import BadSchema
from millstream.spark.values import decode
from tests.spark.values.conftest import Rows, reasons_of, values_of

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "number", "type": "int"},
        {"name": "carrier", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "legs", "type": {"type": "array", "items": "string"}},
        {"name": "more", "type": {"type": "map", "values": "long"}},
    ],
}
LATER = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "number", "type": "long"},
        {"name": "airline", "aliases": ["carrier"], "type": ["null", "string"], "default": None},
        {"name": "gate", "type": "string", "default": "?"},
    ],
}


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def flight(number: int, carrier: str | None = "KL") -> bytes:
    return encoded(
        FLIGHT, {"number": number, "carrier": carrier, "at": 1500, "legs": ["AMS"], "more": {"seats": 180}}
    )


def test_columns_and_rows(rows: Rows) -> None:
    good, bad = decode(
        rows([flight(1), flight(2, None), None, flight(3)[:-2], flight(4) + b"!"]), format="avro", schema=FLIGHT
    )
    assert good.schema["value"].dataType.simpleString() == (
        "struct<number:int,carrier:string,at:timestamp,legs:array<string>,more:map<string,bigint>>"
    )
    found = good.selectExpr(
        "offset", "value.number", "value.carrier", "unix_millis(value.at) AS ms", "value.legs", "value.more"
    )
    assert [tuple(row) for row in found.orderBy("offset").collect()] == [
        (0, 1, "KL", 1500, ["AMS"], {"seats": 180}),
        (1, 2, None, 1500, ["AMS"], {"seats": 180}),
        (2, None, None, None, None, None),
    ]
    reasons = reasons_of(bad)
    assert reasons[3].startswith("it is not of its Avro schema")
    assert reasons[4] == "it goes on for 1 bytes behind what its Avro schema says"
    assert [bytes(row.raw) for row in bad.orderBy("offset").collect()] == [flight(3)[:-2], flight(4) + b"!"]


def test_confluents_framing_and_schemas_by_id(rows: Rows) -> None:
    later = encoded(LATER, {"number": 2, "airline": "HV", "gate": "B7"})
    values = [b"\0\0\0\0\x07" + flight(1), b"\0\0\0\0\x08" + later, b"\0\0\0\0\x09" + later, flight(1)[:4]]
    good, bad = decode(rows(values), format="avro", schema={7: FLIGHT, 8: json.dumps(LATER)}, framing="confluent")
    assert values_of(good) == {
        0: {"number": 1, "airline": "KL", "gate": "?"},
        1: {"number": 2, "airline": "HV", "gate": "B7"},
    }
    assert reasons_of(bad) == {
        2: "its schema id 9 is not among those given",
        3: "it does not begin with a schema id in Confluent's form",
    }


def test_one_schema_for_every_id(rows: Rows) -> None:
    good, _ = decode(rows([b"\0\0\0\0\x07" + flight(1)]), format="avro", schema=FLIGHT, framing="confluent")
    assert values_of(good)[0]["number"] == 1


def test_keys_that_are_plain_values(rows: Rows) -> None:
    good, bad = decode(rows([None], keys=[encoded("string", "AMS")]), format="avro", schema="string", column="key")
    assert (values_of(good, "key"), bad.count()) == ({0: "AMS"}, 0)


def test_values_are_decoded_once(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    decode(rows([flight(1)]), format="avro", schema=FLIGHT).good.where("value.number = 1").explain()
    assert capsys.readouterr().out.count("ArrowEvalPython [") == 1


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "needs a schema"),
        ("{", "not an Avro schema"),
        ({"type": "record", "name": "R", "fields": [{"name": "x", "type": ["int", "string"]}]}, "'x' is a union"),
        ({"type": "record", "name": "R", "fields": [{"name": "x", "type": "null"}]}, "'x' is of the type null"),
        ({"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}, "contains itself"),
        ({"type": "record", "name": "R", "fields": []}, "without fields"),
        ({7: FLIGHT}, "schemas by id are for framing='confluent'"),
    ],
)
def test_schemas_that_cannot_be_used(rows: Rows, schema: Any, message: str) -> None:
    with pytest.raises(BadSchema, match=message):
        decode(rows([]), format="avro", schema=schema)
