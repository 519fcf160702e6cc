"""Types that tables hold, and how the columns of a table grow."""

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types

from millstream.spark.errors import BadOption, SchemaMismatch
from millstream.spark.tables.columns import (
    arrow_schema,
    check_partition_columns,
    is_wider,
    merged,
    spark_schema,
    widenings,
)
from millstream.spark.tables.delta_table import DeltaTable
from millstream.spark.tables.iceberg_table import IcebergTable
from millstream.spark.tables.partitions import by_partition, partition_column, partition_text
from millstream.spark.tables.staging import _aligned

_INNER = pa.struct([("a", pa.int32()), ("b", pa.string())])


def _schema(**columns: Any) -> Any:
    return pa.schema(list(columns.items()))


def test_spark_types_come_back() -> None:
    spark_type = types.StructType(
        [
            types.StructField("i", types.ByteType(), nullable=False),
            types.StructField("at", types.TimestampType()),
            types.StructField("local", types.TimestampNTZType()),
            types.StructField("for", types.DayTimeIntervalType()),
            types.StructField("many", types.ArrayType(types.MapType(types.StringType(), types.DecimalType(20, 3)))),
        ]
    )
    schema = arrow_schema(spark_type)
    assert all(field.nullable for field in schema)
    assert schema.field("at").type == pa.timestamp("us", "UTC")
    assert [field.dataType for field in spark_schema(schema)] == [field.dataType for field in spark_type]


@pytest.mark.parametrize(
    "spark_type", [types.NullType(), types.VariantType(), types.YearMonthIntervalType(), types.TimeType(6)]
)
def test_types_that_no_table_holds(spark_type: Any) -> None:
    within = types.ArrayType(types.StructType([types.StructField("x", spark_type)]))
    with pytest.raises(SchemaMismatch, match=r"column 'c.element.x' is of type .*, which no table holds; cast it"):
        arrow_schema(types.StructType([types.StructField("c", within)]))


def test_a_name_that_comes_twice() -> None:
    with pytest.raises(SchemaMismatch, match="column 'ID' comes twice"):
        arrow_schema(types.StructType().add("id", "long").add("ID", "long"))


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (pa.int64(), pa.int8(), True),
        (pa.int32(), pa.int64(), False),
        (pa.float64(), pa.float32(), True),
        (pa.float64(), pa.int32(), False),
        (pa.decimal128(12, 2), pa.decimal128(10, 2), True),
        (pa.decimal128(12, 4), pa.decimal128(10, 2), True),
        (pa.decimal128(11, 4), pa.decimal128(10, 2), False),
        (pa.string(), pa.int8(), False),
        (pa.timestamp("us"), pa.date32(), False),
    ],
)
def test_which_type_holds_another(wide: Any, narrow: Any, *, expected: bool) -> None:
    assert is_wider(wide, narrow) is expected
    assert not is_wider(wide, wide)


def test_columns_are_added_behind_and_widened_in_place() -> None:
    table = _schema(n=pa.int32(), S=_INNER, xs=pa.list_(pa.int8()), m=pa.map_(pa.string(), _INNER))
    more = pa.struct([("a", pa.int64()), ("c", pa.bool_())])
    rows = _schema(z=pa.string(), s=more, N=pa.int64(), m=pa.map_(pa.string(), more), xs=pa.list_(pa.int16()))
    whole = merged(table, rows, changes=True)
    both = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())])
    assert whole.names == ["n", "S", "xs", "m", "z"]
    assert whole.field("n").type == pa.int64()
    assert whole.field("S").type == both
    assert whole.field("m").type == pa.map_(pa.string(), both)
    assert whole.field("xs").type.value_type == pa.int16()
    assert [name for name, _, _ in widenings(table, whole)] == ["n", "S.a", "xs.element", "m.value.a"]


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        (_schema(z=pa.string()), False, "column 'z' is not in the table; leave it out, or .* mergeSchema=true"),
        (
            _schema(n=pa.int64()),
            False,
            "'n' is int in the table and bigint in the rows; cast it, or .*mergeSchema=true",
        ),
        (_schema(n=pa.string()), True, "'n' is int in the table and string in the rows, which does not fit; cast it"),
        (_schema(s=pa.struct([("a", pa.date32())])), True, r"column 's.a' is int in the table and date in the rows"),
        (_schema(s=pa.int32()), True, "column 's' is struct<a:int,b:string> in the table and int in the rows"),
        (_schema(s=pa.struct([("c", pa.int8())])), False, r"column 's.c' is not in the table"),
    ],
)
def test_rows_that_do_not_fit(rows: Any, changes: bool, message: str) -> None:
    table = _schema(n=pa.int32(), s=_INNER)
    with pytest.raises(SchemaMismatch, match=message):
        merged(table, rows, changes=changes)
    assert merged(table, _schema(N=pa.int8()), changes=False) == table, "narrower types always fit"


def test_what_the_formats_cannot_change() -> None:
    old, new = _schema(n=pa.int32()), _schema(n=pa.int64())
    with pytest.raises(SchemaMismatch, match="a column of a Delta table keeps its type"):
        DeltaTable("/nowhere").check_change(old, new)
    IcebergTable("/nowhere").check_change(old, new)
    with pytest.raises(SchemaMismatch, match="keeps its scale"):
        IcebergTable("/nowhere").check_change(_schema(n=pa.decimal128(5, 2)), _schema(n=pa.decimal128(8, 3)))
    with pytest.raises(SchemaMismatch, match="no place for"):
        DeltaTable("/nowhere").columns_of(_schema(s=pa.struct([("t", pa.time64("us"))])))
    with pytest.raises(SchemaMismatch, match="no place for"):
        IcebergTable("/nowhere").columns_of(_schema(xs=pa.list_(pa.duration("us"))))
    small = _schema(s=pa.struct([("i", pa.int8())]), m=pa.map_(pa.int16(), pa.string()))
    kept = IcebergTable("/nowhere").columns_of(small)
    assert kept == _schema(s=pa.struct([("i", pa.int32())]), m=pa.map_(pa.int32(), pa.string()))


def test_partition_columns() -> None:
    schema = _schema(Day=pa.date32(), x=pa.float64(), n=pa.int32())
    assert check_partition_columns(schema, ("day",)) == ("Day",)
    for names, message in [
        (("nothing",), "partitionBy takes columns of the rows"),
        (("x",), "column 'x' is of type double"),
        (("n", "Day"), None),
    ]:
        if message is None:
            assert check_partition_columns(schema, names) == names
        else:
            with pytest.raises(BadOption, match=message):
                check_partition_columns(schema, names)
    with pytest.raises(BadOption, match="leave one at least"):
        check_partition_columns(_schema(n=pa.int32()), ("n",))


def test_rows_are_sorted_out_by_partition() -> None:
    rows = pa.table({"a": ["x", None, "x", "y", None], "b": [1, 1, 2, 1, 1], "n": [0, 1, 2, 3, 4]})
    found = {values: part.to_pydict() for values, part in by_partition(rows, ("a", "b"), keeps=False)}
    assert found == {
        (("a", "x"), ("b", "1")): {"n": [0]},
        (("a", "x"), ("b", "2")): {"n": [2]},
        (("a", "y"), ("b", "1")): {"n": [3]},
        (("a", None), ("b", "1")): {"n": [1, 4]},
    }
    (kept,) = by_partition(rows.slice(3, 1), ("a",), keeps=True)
    assert kept[1].to_pydict() == {"a": ["y"], "b": [1], "n": [3]}


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, pa.bool_(), "true"),
        (-5, pa.int16(), "-5"),
        ("a/b=c", pa.string(), "a/b=c"),
        (datetime.date(2026, 1, 31), pa.date32(), "2026-01-31"),
        (datetime.datetime(2026, 1, 31, 12), pa.timestamp("us"), "2026-01-31 12:00:00"),
        (
            datetime.datetime(2026, 1, 1, 0, 0, 0, 5, datetime.UTC),
            pa.timestamp("us", "UTC"),
            "2026-01-01 00:00:00.000005",
        ),
        (decimal.Decimal("1.50"), pa.decimal128(5, 2), "1.50"),
        (None, pa.int8(), None),
    ],
)
def test_partition_values_in_names(value: Any, kind: Any, text: str | None) -> None:
    assert partition_text(value) == text
    assert partition_column(text, kind, 2).to_pylist() == [value, value]
    assert partition_column(text, kind, 0).type == kind


def test_rows_take_the_names_and_types_of_the_table() -> None:
    inner = pa.array([{"B": 1, "a": 2}, None], pa.struct([("B", pa.int8()), ("a", pa.int8())]))
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int8()), inner], ["N", "s"])
    wanted = _schema(n=pa.int64(), s=pa.struct([("a", pa.int32()), ("b", pa.int32()), ("c", pa.string())]))
    rows = _aligned(batch, wanted)
    assert rows.schema == wanted
    assert rows.to_pylist() == [{"n": 1, "s": {"a": 2, "b": 1, "c": None}}, {"n": 2, "s": None}]
    with pytest.raises(SchemaMismatch, match="'s' is not one of those that the write began with"):
        _aligned(batch, _schema(n=pa.int64()))
