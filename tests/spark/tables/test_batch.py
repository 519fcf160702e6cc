"""Batches into tables and back, in Spark: all types, modes, schema changes, what is said of mistakes."""

from pathlib import Path
from typing import Any

import pytest

from millstream.spark.tables import TableFormat, live_files, read_live
from tests.spark.tables.conftest import FORMATS

_TYPES = {
    "b": "true",
    "i8": "CAST(-8 AS tinyint)",
    "i16": "CAST(16 AS smallint)",
    "i32": "CAST(n AS int)",
    "f32": "CAST(1.5 AS float)",
    "f64": "CAST(n AS double)",
    "price": "CAST(n AS decimal(20, 3))",
    "word": "CASE WHEN n % 2 = 0 THEN CONCAT('wörd ', n) END",
    "raw": "CAST('bytes' AS binary)",
    "day": "DATE'2026-01-31'",
    "at": "TIMESTAMP'1969-12-31 23:59:59.999999'",
    "local": "TIMESTAMP_NTZ'2026-01-31 12:00:00.000001'",
    "many": "ARRAY(n, NULL)",
    "pairs": "MAP('a', n)",
    "parts": "NAMED_STRUCT('x', n, 'ys', ARRAY(NAMED_STRUCT('z', CAST(n AS string))))",
    "nothing": "CAST(NULL AS string)",
}
_PARQUET_ONLY = {"wait": "INTERVAL '1 02:03:04.000005' DAY TO SECOND"}


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each format."""
    return str(request.param)


def _write(frame: Any, path: Path, kind: str, mode: str = "append", **options: Any) -> None:
    writer = frame.write.format("millstream-table").mode(mode).option("tableFormat", kind)
    writer.options(**options).save(str(path))


def _numbers(spark: Any, path: Path) -> list[int]:
    return sorted(row.n for row in spark.read.format("millstream-table").load(str(path)).collect())


def _sorted(frame: Any) -> list[Any]:
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda row: int(row["n"]))


def test_every_type_comes_back_through_every_reader(kind: str, spark: Any, tmp_path: Path) -> None:
    columns = {**_TYPES, **(_PARQUET_ONLY if kind == "parquet" else {})}
    frame = spark.range(40).selectExpr("id AS n", *(f"{value} AS {name}" for name, value in columns.items()))
    path = tmp_path / "table"
    _write(frame, path, kind, partitionBy="day,i16")
    expected = _sorted(frame)
    ours = spark.read.format("millstream-table").load(str(path))
    # Iceberg has no integers of less than 32 bits.
    wider = {"i8": "int", "i16": "int"} if kind == "iceberg" else {}
    names = {field.name: wider.get(field.name, field.dataType.simpleString()) for field in frame.schema}
    assert {field.name: field.dataType.simpleString() for field in ours.schema} == names
    assert _sorted(ours) == expected
    assert _sorted(read_live(spark, str(path)).select(*frame.columns)) == expected
    if kind == "parquet":
        plain = spark.read.parquet(str(path))
        assert _sorted(plain.select(*frame.columns)) == expected
        assert plain.where("day = DATE'2026-01-31' AND n < 3").count() == 3


def test_modes(kind: str, spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "table"
    _write(spark.range(5).selectExpr("id AS n"), path, kind)
    _write(spark.range(5, 8).selectExpr("id AS n"), path, kind)
    assert _numbers(spark, path) == list(range(8))
    _write(spark.range(3).selectExpr("id AS n"), path, kind, mode="overwrite")
    assert _numbers(spark, path) == [0, 1, 2]
    _write(spark.range(0).selectExpr("id AS n"), path, kind, mode="overwrite")
    assert _numbers(spark, path) == []
    assert live_files(str(path)) == []
    for _ in range(2):
        # In foreachBatch, for instance, which Spark may run again.
        _write(spark.range(4).selectExpr("id AS n"), path, kind, applicationId="nightly", batchId=17)
    assert _numbers(spark, path) == [0, 1, 2, 3]


def test_wider_types_are_read_from_old_files_too(spark: Any, tmp_path: Path) -> None:
    narrow = spark.range(3).selectExpr(
        "CAST(id AS int) AS n", "CAST(1.5 AS float) AS x", "CAST(2 AS decimal(5,2)) AS d"
    )
    wide = spark.range(3, 5).selectExpr(
        "id AS n", "CAST(2.5 AS double) AS x", "CAST(3 AS decimal(9,2)) AS d", "id AS z"
    )
    for kind in ("parquet", "iceberg"):
        path = tmp_path / kind
        _write(narrow, path, kind)
        with pytest.raises(
            Exception, match=r"column 'n' is int in the table and bigint in the rows; .*mergeSchema=true"
        ):
            _write(wide, path, kind)
        _write(wide, path, kind, mergeSchema=True)
        _write(narrow, path, kind)
        reads = [spark.read.format("millstream-table").load(str(path)), read_live(spark, str(path))]
        for frame in [*reads, *([spark.read.parquet(str(path))] if kind == "parquet" else [])]:
            assert frame.schema.simpleString() == "struct<n:bigint,x:double,d:decimal(9,2),z:bigint>"
            rows = sorted((row.n, row.x, int(row.d), row.z) for row in frame.collect())
            assert rows[::2] == [(0, 1.5, 2, None), (1, 1.5, 2, None), (2, 1.5, 2, None), (3, 2.5, 3, 3)]


def test_an_iceberg_table_in_a_catalog_of_ones_own(spark: Any, tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    uri, path = f"sqlite:///{tmp_path}/shared.db", tmp_path / "orders"
    catalog = {"type": "sql", "uri": uri, "table": "sales.orders"}
    options = {f"catalog.{name}": value for name, value in catalog.items()}
    for start in (0, 5):
        _write(spark.range(start, start + 5).selectExpr("id AS n"), path, "iceberg", **options)
    assert SqlCatalog("millstream", uri=uri).list_tables("sales") == [("sales", "orders")]
    frame = spark.read.format("millstream-table").options(**options).load(str(path))
    assert sorted(row.n for row in frame.collect()) == list(range(10))
    assert len(live_files(str(path), TableFormat.ICEBERG, catalog)) == 4
    with pytest.raises(Exception, match=r"lies in .*orders; give that as the option path"):
        _write(spark.range(1).selectExpr("id AS n"), tmp_path / "elsewhere", "iceberg", **options)


def test_what_is_said_of_mistakes(spark: Any, tmp_path: Path) -> None:
    frame, path = spark.range(3).selectExpr("id AS n", "id AS m"), tmp_path / "table"
    with pytest.raises(Exception, match=r"there is no table in .*; change the option path"):
        spark.read.format("millstream-table").load(str(path)).count()
    _write(frame, path, "parquet", partitionBy="m")
    for mistake, message in [
        ({"kind": "delta"}, "tableFormat=delta, but the table in .* is of format parquet"),
        ({"kind": "parquet", "partitionBy": "n"}, r"partitionBy=n, but the table is partitioned by \('m',\)"),
        ({"kind": "parquet", "catalog.uri": "x"}, r"the options catalog\.\* are for tableFormat=iceberg"),
    ]:
        with pytest.raises(Exception, match=message):
            _write(frame, path, **mistake)
    with pytest.raises(Exception, match="the rows have no column 'm', by which the table is partitioned"):
        _write(frame.select("n"), path, "parquet")
    with pytest.raises(Exception, match="column 'v' is of type void, which no table holds; cast it"):
        _write(frame.selectExpr("n", "m", "NULL AS v"), path, "parquet")
    with pytest.raises(Exception, match="columns takes some of n, m, not k"):
        spark.read.format("millstream-table").option("columns", "n,k").load(str(path))
    assert spark.read.parquet(str(path)).count() == 3, "and nothing was changed"
