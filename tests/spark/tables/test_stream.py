"""Streams into tables, in Spark: exactly once over restarts, and readable without us."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from millstream.spark.tables import compact, describe, expire, live_files
from tests.spark.tables.conftest import Numbers

_ONE_FORMAT = pytest.mark.parametrize("numbers", ["parquet"], indirect=True)
"""What is the same for all formats is tried with one: a query in Spark takes seconds."""


def test_a_stream_into_a_table_is_read_by_everyone(numbers: Numbers, spark: Any) -> None:
    numbers.add(range(100), range(100, 150), range(150, 400))
    assert numbers.run("n", "n % 3 AS third", partitionBy="third") == 3
    assert numbers.numbers() == list(range(400))
    numbers.add(range(400, 500))
    assert numbers.run("n", "n % 3 AS third") == 1, "only what is new is read after a restart"
    assert numbers.run("n", "n % 3 AS third") == 0

    assert numbers.numbers() == list(range(500))
    frame = spark.read.format("millstream-table").load(numbers.table)
    assert frame.columns == ["n", "third"]
    assert sorted((row.n, row.third) for row in frame.collect()) == [(n, n % 3) for n in range(500)]
    one = spark.read.format("millstream-table").option("columns", "third").load(numbers.table)
    assert one.columns == ["third"]
    assert one.where("third = 2").count() == 166
    assert _read_by_the_formats_own_library(numbers) == list(range(500))
    assert describe(numbers.table).rows == 500


def _read_by_the_formats_own_library(numbers: Numbers) -> list[int]:
    import pyarrow.dataset
    from deltalake import DeltaTable
    from pyiceberg.catalog.sql import SqlCatalog

    if numbers.format == "delta":
        return sorted(DeltaTable(numbers.table).to_pyarrow_table().column("n").to_pylist())
    if numbers.format == "iceberg":
        catalog = SqlCatalog("millstream", uri=f"sqlite:///{numbers.table}/_millstream/catalog.db")
        return sorted(catalog.load_table("millstream.table").scan().to_arrow().column("n").to_pylist())
    return sorted(pyarrow.dataset.dataset(live_files(numbers.table)).to_table().column("n").to_pylist())


def test_a_batch_that_spark_runs_again_is_not_written_again(numbers: Numbers) -> None:
    numbers.add(range(100), range(100, 200))
    assert numbers.run() == 2
    os.unlink(os.path.join(numbers.checkpoint, "commits", "1"))
    os.unlink(os.path.join(numbers.checkpoint, "commits", ".1.crc"))
    assert numbers.run() == 1, "Spark ran it again"
    assert numbers.numbers() == list(range(200))


def test_upkeep_does_not_make_a_stream_forget(numbers: Numbers) -> None:
    numbers.add(*(range(n, n + 10) for n in range(0, 60, 10)))
    assert numbers.run() == 6
    assert compact(numbers.table).files_after == 1
    assert expire(numbers.table, older_than_s=0).files >= 6
    assert numbers.numbers() == list(range(60))
    os.unlink(os.path.join(numbers.checkpoint, "commits", "5"))
    os.unlink(os.path.join(numbers.checkpoint, "commits", ".5.crc"))
    numbers.add(range(60, 70))
    assert numbers.run() == 2
    assert numbers.numbers() == list(range(70))


@_ONE_FORMAT
def test_a_checkpoint_that_is_made_anew_writes_anew(numbers: Numbers) -> None:
    numbers.add(range(10))
    numbers.run()
    shutil.rmtree(numbers.checkpoint)
    numbers.run()
    assert numbers.numbers() == sorted([*range(10), *range(10)]), "another query, whose rows nobody may drop"


@_ONE_FORMAT
def test_an_application_id_belongs_to_one_checkpoint(numbers: Numbers) -> None:
    numbers.add(range(10))
    numbers.run(applicationId="nightly")
    shutil.rmtree(numbers.checkpoint)
    with pytest.raises(Exception, match=r"'nightly' from another checkpoint; give the option applicationId another"):
        numbers.run(applicationId="nightly")
    assert numbers.numbers() == list(range(10))
    assert not list(Path(numbers.table, "_millstream", "staging").rglob("*.parquet")), "what was staged is gone"


def test_each_micro_batch_replaces_all_in_complete_mode(numbers: Numbers, spark: Any) -> None:
    numbers.add(range(10), range(10, 30))
    stream = spark.readStream.format("parquet").schema("n long").option("maxFilesPerTrigger", 1)
    counted = stream.load(str(numbers.input)).selectExpr("n % 2 AS odd").groupBy("odd").count()
    query = (
        counted.writeStream.format("millstream-table")
        .outputMode("complete")
        .options(path=numbers.table, tableFormat=numbers.format, checkpointLocation=numbers.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    frame = spark.read.format("millstream-table").load(numbers.table)
    assert sorted(tuple(row) for row in frame.collect()) == [(0, 15), (1, 15)]


def test_schema_changes_between_runs(numbers: Numbers, spark: Any) -> None:
    numbers.add(range(10))
    numbers.run("n", "CAST(n AS int) AS m")
    numbers.add(range(10, 20))
    with pytest.raises(Exception, match=r"column 'word' is not in the table; .* mergeSchema=true"):
        numbers.run("n", "CAST(n AS int) AS m", "CAST(n AS string) AS word")
    numbers.run("n", "CAST(n AS int) AS m", "CAST(n AS string) AS word", mergeSchema=True)
    numbers.add(range(20, 30))
    with pytest.raises(Exception, match="column 'm' is int in the table and string in the rows, which does not fit"):
        numbers.run("n", "CAST(n AS string) AS m", mergeSchema=True)
    numbers.run("n")
    frame = spark.read.parquet(numbers.table) if numbers.format == "parquet" else None
    if frame is not None:
        assert frame.columns == ["n", "m", "word"], "a plain read sees the new column"
    frame = spark.read.format("millstream-table").load(numbers.table)
    rows = sorted(tuple(row) for row in frame.collect())
    assert rows[5] == (5, 5, None)
    assert rows[15] == (15, 15, "15")
    assert rows[25] == (25, None, None)
    assert numbers.numbers() == list(range(30))


@_ONE_FORMAT
def test_what_spark_says_of_the_sink(numbers: Numbers) -> None:
    numbers.add(range(3))
    with pytest.raises(Exception, match="partitionBy takes columns of the rows"):
        numbers.run(partitionBy="nothing")
    with pytest.raises(Exception, match="there is no option 'tableformet'"):
        numbers.run(tableFormet="delta")
    with open(os.path.join(numbers.checkpoint, "metadata")) as file:
        assert json.load(file)["id"]
