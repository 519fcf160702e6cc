"""What the tests of tables share: streams of numbers, and readers of tables that are not ours."""

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_TIMEOUT_S = 300
FORMATS = ("parquet", "delta", "iceberg")


class Numbers:
    """Files of numbers, each of which becomes a micro-batch, and a stream over them into a table.

    Args:
        spark: the session.
        path: where files, checkpoint and table are.
        table_format: of the table.
    """

    def __init__(self, spark: Any, path: Path, table_format: str) -> None:
        self._spark = spark
        self._files = itertools.count()
        self.input = path / "input"
        self.checkpoint = str(path / "checkpoint")
        self.table = str(path / "table")
        self.format = table_format
        self.input.mkdir()

    def add(self, *batches: range, **columns: Callable[[int], Any]) -> None:
        """Add a file for each range, with a column `n` and others that are made of it."""
        for numbers in batches:
            add_file(self.input, next(self._files), numbers, **columns)

    def start(self, *columns: str, mode: str = "append", **options: Any) -> Any:
        """Start a query that ends when all files are read; columns as SQL."""
        stream = self._spark.readStream.format("parquet").schema("n long").option("maxFilesPerTrigger", 1)
        frame = stream.load(str(self.input)).selectExpr(*(columns or ("n",)))
        writer = frame.writeStream.format("millstream-table").outputMode(mode).options(tableFormat=self.format)
        writer = writer.option("path", self.table).option("checkpointLocation", self.checkpoint)
        return writer.options(**options).trigger(availableNow=True).start()

    def run(self, *columns: str, **options: Any) -> int:
        """Run such a query until it ends; returns how many micro-batches it had. Raises what the query raised."""
        query = self.start(*columns, **options)
        try:
            assert query.awaitTermination(_TIMEOUT_S), "the query does not end"
        finally:
            query.stop()
        return sum(1 for progress in query.recentProgress if progress["numInputRows"])

    def numbers(self) -> list[int]:
        """The column `n` of the table, in order, as Spark's own Parquet reader sees it."""
        return numbers_in(self._spark, self.table, self.format)


def add_file(directory: Path, index: int, numbers: range, **columns: Callable[[int], Any]) -> None:
    """Write a Parquet file of numbers, under a name that sorts by index, with that time of change."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = {name: [function(n) for n in numbers] for name, function in columns.items()}
    path = directory / f"{index:05d}.parquet"
    pq.write_table(pa.table({"n": list(numbers), **made}), str(path) + ".tmp")
    os.utime(str(path) + ".tmp", (1_700_000_000 + index, 1_700_000_000 + index))
    os.rename(str(path) + ".tmp", path)


def numbers_in(spark: Any, table: str, table_format: str) -> list[int]:
    """The column `n` of a table without our format: a plain read of Parquet, or of the live files."""
    from millstream.spark.tables import read_live

    frame = spark.read.parquet(table) if table_format == "parquet" else read_live(spark, table)
    return sorted(row.n for row in frame.select("n").collect())


@pytest.fixture(params=FORMATS)
def numbers(request: pytest.FixtureRequest, spark: Any, tmp_path: Path) -> Numbers:
    """A stream of numbers into a table, once for each format."""
    return Numbers(spark, tmp_path, request.param)
