"""What a table may look like that is written, and what is said otherwise."""

import pytest

from millstream.spark.errors import BadOption, UnwritableRow
from millstream.spark.write.columns import check_columns, rows_of
from tests.spark.write.tables import table

_HEADERS = "array<struct<key:string,value:binary>>"


@pytest.mark.parametrize(
    "columns",
    [
        [("value", "string")],
        [("value", "binary"), ("key", "string"), ("headers", _HEADERS), ("partition", "int"), ("topic", "string")],
        [("timestamp", "timestamp"), ("value", "varchar(20)"), ("headers", _HEADERS.replace("binary", "string"))],
    ],
)
def test_columns_that_can_be_written(columns: list[tuple[str, str]]) -> None:
    check_columns(columns, has_topic=True)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            [("value", "string"), ("id", "bigint")],
            "no column 'id'.* key, value, headers, topic, partition, timestamp",
        ),
        ([("value", "int")], "column value is of type int, and must be string or binary: cast it"),
        ([("value", "string"), ("key", "bigint")], "column key is of type bigint"),
        ([("value", "string"), ("partition", "bigint")], "column partition is of type bigint, and must be int"),
        ([("value", "string"), ("headers", "map<string,string>")], "column headers is of type map"),
        ([("value", "string"), ("timestamp", "bigint")], "column timestamp is of type bigint"),
        ([("value", "string"), ("value", "string")], "two columns 'value'"),
        ([("key", "string")], "column value is missing"),
        ([("Value", "string")], "no column 'Value'"),
    ],
)
def test_columns_that_cannot(columns: list[tuple[str, str]], problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        check_columns(columns, has_topic=True)


def test_somebody_must_say_which_topic() -> None:
    check_columns([("value", "string"), ("topic", "string")], has_topic=False)
    with pytest.raises(BadOption, match="option topic is missing"):
        check_columns([("value", "string")], has_topic=False)
    with pytest.raises(UnwritableRow, match="a row names no topic"):
        rows_of(table(value=[b"1", b"2"], topic=["t", None]), topic_is_given=False, now_ms=0)
    rows = rows_of(table(value=[b"1"], topic=[None]), topic_is_given=True, now_ms=0)
    assert rows.topic is None


@pytest.mark.parametrize("headers", [[[None]], [[{"key": None, "value": b"1"}]]])
def test_headers_have_names(headers: list[object]) -> None:
    with pytest.raises(UnwritableRow, match="a header has no name"):
        rows_of(table(value=[b"1"], headers=headers), topic_is_given=True, now_ms=0)
