"""JSON values: what decodes, what does not, and why."""

from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from millstream.spark.errors import BadOption, BadSchema
from millstream.spark.values import QUARANTINE_COLUMNS, decode
from tests.spark.values.conftest import Rows, reasons_of, values_of

SCHEMA = "id INT, name STRING, at STRUCT<x: DOUBLE>, tags ARRAY<INT>"


def test_what_decodes(rows: Rows) -> None:
    table = rows(
        [
            b'{"id": 1, "name": "Ad\xc3\xa9", "at": {"x": 1.5}, "tags": [1, 2]}',
            b'\n {"id": 2}\t ',
            b'{"id": null, "name": null, "new": [true]}',
            b"{}",
            None,
        ]
    )
    good, bad = decode(table, format="json", schema=SCHEMA)
    assert values_of(good) == {
        0: {"id": 1, "name": "Adé", "at": {"x": 1.5}, "tags": [1, 2]},
        1: {"id": 2, "name": None, "at": None, "tags": None},
        2: {"id": None, "name": None, "at": None, "tags": None},
        3: {"id": None, "name": None, "at": None, "tags": None},
        4: None,
    }
    assert good.columns == table.columns, "the decoded column stands in place of the raw one"
    assert bad.count() == 0


@pytest.mark.parametrize("has_default", [False, True])
def test_what_does_not_decode_and_why(rows: Rows, has_default: bool) -> None:
    """With a default in its schema JSON is read in another way, which must not be told by its results."""
    schema = StructType.fromDDL(SCHEMA)
    if has_default:
        schema.add("country", "string", metadata={"EXISTS_DEFAULT": "'NL'", "CURRENT_DEFAULT": "'NL'"})
    values = [
        b"",
        b" \n",
        b'{"name": "\xff"}',
        b"null",
        b'[{"id": 1}]',
        b"12",
        b"nope",
        b'{"id": 1',
        b'{"id": 1} x',
        b'{"id": 1}{"id": 2}',
        b'{"id": 1},{"id": 2}',
        b'{"id": 1}]',
        b"{'id': 1}",
        b'{"id": "1"}',
        b'{"id": 1.5, "name": "a"}',
        b'{"id": 99999999999}',
        b'{"at": {"x": "far"}, "id": []}',
        b'{"tags": [1, "a"]}',
    ]
    good, bad = decode(rows(values), format="json", schema=schema)
    assert good.count() == 0
    whole = "it is not one JSON object and nothing else"
    none = "it is no JSON object"
    assert reasons_of(bad) == {
        0: "it is empty",
        1: "it is empty",
        2: "it is not UTF-8",
        3: none,
        4: none,
        5: none,
        6: none,
        **dict.fromkeys(range(7, 13), whole),
        13: "its type does not fit: id is no INT",
        14: "its type does not fit: id is no INT",
        15: "its type does not fit: id is no INT",
        16: "its type does not fit: id is no INT, at.x is no DOUBLE",
        17: "its type does not fit: tags is no ARRAY<INT>",
    }


def test_the_quarantine_says_where_a_row_was(rows: Rows) -> None:
    _, bad = decode(rows([b"{}", b"nope"]), format="json", schema="id INT")
    assert tuple(bad.columns) == QUARANTINE_COLUMNS
    [row] = bad.collect()
    assert (row.topic, row.partition, row.offset, row.timestamp) == ("orders", 0, 1, None)
    assert (row.column, row.reason, bytes(row.raw)) == ("value", "it is no JSON object", b"nope")


def test_modes(rows: Rows) -> None:
    table = rows([b'{"id": 1}', b"nope"])
    good, bad = decode(table, format="json", schema="id INT", mode="null")
    assert values_of(good) == {0: {"id": 1}, 1: None}
    assert list(reasons_of(bad)) == [1]
    good, bad = decode(table, format="json", schema="id INT", mode="failfast")
    assert bad.count() == 0
    with pytest.raises(
        Exception, match=r"topic 'orders' has at partition 0 offset 1 a value that does not decode: it is no"
    ):
        good.collect()
    assert values_of(decode(rows([b'{"id": 1}']), format="json", schema="id INT", mode="failfast").good) == {
        0: {"id": 1}
    }


def test_keys(rows: Rows) -> None:
    table = rows([b"{}", b"{}", b"nope"], keys=[b'{"id": 7}', b"x", b'{"id": 8}'])
    values, bad_values = decode(table, format="json", schema="a INT")
    keys, bad_keys = decode(values, format="json", schema="id INT", column="key")
    assert values_of(keys, "key") == {0: {"id": 7}}
    both = bad_values.unionByName(bad_keys).orderBy("offset").collect()
    assert [(row.offset, row.column, bytes(row.raw)) for row in both] == [(1, "key", b"x"), (2, "value", b"nope")]


def test_defaults_and_fields_that_must_be_there(rows: Rows) -> None:
    schema = StructType(
        [
            StructField("id", IntegerType(), nullable=False),
            StructField("country", StringType(), metadata={"EXISTS_DEFAULT": "'NL'", "CURRENT_DEFAULT": "'NL'"}),
        ]
    )
    good, bad = decode(
        rows([b'{"id": 1}', b'{"id": 2, "country": null}', b'{"country": "BE"}']), format="json", schema=schema
    )
    assert values_of(good) == {0: {"id": 1, "country": "NL"}, 1: {"id": 2, "country": None}}
    assert reasons_of(bad) == {2: "its field id is missing or null"}


def test_options_and_confluents_framing(rows: Rows) -> None:
    values = [b'\0\0\0\0\x05{"day": "24.12.2026"}', b'{"day": "24.12.2026"}', b"\0\0"]
    good, bad = decode(
        rows(values), format="json", schema="day DATE", framing="confluent", options={"dateFormat": "dd.MM.yyyy"}
    )
    assert {offset: str(value["day"]) for offset, value in values_of(good).items()} == {0: "2026-12-24"}
    assert set(reasons_of(bad).values()) == {"it does not begin with a schema id in Confluent's form"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "xml"}, "format is one of json, avro"),
        ({"mode": "drop"}, "mode is one of quarantine, null, failfast"),
        ({"framing": "x"}, "framing is one of none, confluent"),
        ({"column": "body"}, "the rows have no column 'body'"),
        ({"format": "text", "options": {"sep": ";"}}, "options are for the formats json and csv"),
        ({"schema": None}, "format='json' needs a schema"),
        ({"schema": "id NUMBER OF"}, "no list of columns in DDL"),
    ],
)
def test_arguments_that_make_no_sense(rows: Rows, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((BadOption, BadSchema), match=message):
        decode(rows([]), **{"format": "json", "schema": "id INT", **arguments})


def test_values_are_decoded_once(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = decode(rows([b"{}"]), format="json", schema=SCHEMA)
    for table in (good.select("value.*").where("id = 1"), bad):
        table.explain()
        assert capsys.readouterr().out.count("from_json") == 1
