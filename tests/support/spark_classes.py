"""A program that writes an archive of the classes that Spark needs in nearly every test: python -m ... ARCHIVE."""

import os
import sys
import tempfile
from collections.abc import Iterator

import pyarrow as pa
from pyspark.core.context import SparkContext
from pyspark.sql import SparkSession

from millstream.spark.java import use_java
from tests.support.quick_java import VARIABLE, options


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main(archive: str) -> None:
    """Read and write a table, at once and as a stream, through a Connect server; its Java then writes the archive."""
    use_java()
    os.environ[VARIABLE] = options(f"-XX:ArchiveClassesAtExit={archive}.new")
    # The first is what Spark's own tests set, to have the server take a free port in place of 15002.
    os.environ.update(SPARK_TESTING="1", SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
    java = SparkContext._gateway.proc
    with tempfile.TemporaryDirectory() as directory:
        rows = spark.range(100).selectExpr("id", "id % 2 AS part", "CAST(id AS STRING) AS name", "ARRAY(id) AS many")
        rows.mapInArrow(_same, rows.schema).write.partitionBy("part").parquet(f"{directory}/table")
        table = spark.read.parquet(f"{directory}/table")
        table.groupBy("part").agg({"id": "sum"}).join(table, "part").orderBy("id").collect()
        stream = spark.readStream.schema(rows.schema).parquet(f"{directory}/table").writeStream
        stream = stream.option("checkpointLocation", f"{directory}/checkpoint").option("path", f"{directory}/copy")
        stream.format("parquet").trigger(availableNow=True).start().awaitTermination()
        spark.stop()
    java.stdin.close()
    java.wait()
    os.replace(f"{archive}.new", archive)


if __name__ == "__main__":
    main(sys.argv[1])
