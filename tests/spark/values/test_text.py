"""CSV, text and bytes."""

import struct
from typing import Any

import pytest

from millstream.spark.errors import BadSchema
from millstream.spark.values import decode
from tests.spark.values.conftest import Rows, reasons_of, values_of


def test_csv(rows: Rows) -> None:
    table = rows(
        [
            b'1,"Ad\xc3\xa9, ""A""",2.5',
            b"2,x,\r\n",
            b",,",
            None,
            b"",
            b"1,a",
            b"1,a,2,3",
            b"one,a,2",
            b"1,a,2\n2,b,3",
            b"1,\xff,2",
            b'"1,a,2',
        ]
    )
    good, bad = decode(table, format="csv", schema="id INT, name STRING, x DOUBLE")
    assert values_of(good) == {
        0: {"id": 1, "name": 'Adé, "A"', "x": 2.5},
        1: {"id": 2, "name": "x", "x": None},
        2: {"id": None, "name": None, "x": None},
        3: None,
    }
    misfit = "it does not fit the schema of 3 fields"
    assert reasons_of(bad) == {**dict.fromkeys(range(5, 11), misfit), 4: "it is empty", 9: "it is not UTF-8"}


def test_csv_options(rows: Rows) -> None:
    good, _ = decode(rows([b"1;x"]), format="csv", schema="id INT, name STRING", options={"sep": ";"})
    assert values_of(good) == {0: {"id": 1, "name": "x"}}


def test_text(rows: Rows) -> None:
    good, bad = decode(rows([b"Ad\xc3\xa9", b"", None, b"Ad\xe9"]), format="text")
    assert values_of(good) == {0: "Adé", 1: "", 2: None}
    assert reasons_of(bad) == {3: "it is not UTF-8"}
    good, bad = decode(rows([b"Ad\xe9", b"A\x00d\x00"]), format="text", schema="ISO-8859-1")
    assert values_of(good) == {0: "Adé", 1: "A\0d\0"}
    good, bad = decode(rows([b"A", b"\xe9"]), format="text", schema="US-ASCII")
    assert (values_of(good), reasons_of(bad)) == ({0: "A"}, {1: "it is not US-ASCII"})


def test_bytes(rows: Rows) -> None:
    good, bad = decode(rows([b"\0\xff", None]), format="bytes")
    assert (values_of(good), bad.count()) == ({0: bytearray(b"\0\xff"), 1: None}, 0)


@pytest.mark.parametrize(
    ("kind", "form", "value"),
    [
        ("tinyint", ">b", -5),
        ("smallint", ">h", -500),
        ("int", ">i", -70000),
        ("BIGINT", ">q", -(2**40)),
        ("float", ">f", 1.5),
        ("double", ">d", -2.25),
        ("boolean", ">?", True),
    ],
)
def test_numbers(rows: Rows, kind: str, form: str, value: Any) -> None:
    data = struct.pack(form, value)
    good, bad = decode(rows([data, None, data + b"\0", b""]), format="bytes", schema=kind)
    assert values_of(good) == {0: value, 1: None}
    assert good.schema["value"].dataType.simpleString() == kind.lower()
    assert reasons_of(bad)[2] == f"it has {len(data) + 1} bytes, and a {kind.lower()} has {len(data)}"
    assert set(reasons_of(bad)) == {2, 3}


def test_a_number_of_no_known_type(rows: Rows) -> None:
    with pytest.raises(BadSchema, match="bytes are binary or one of tinyint"):
        decode(rows([]), format="bytes", schema="date")
