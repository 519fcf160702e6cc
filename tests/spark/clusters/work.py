"""The same work for every kind of cluster: topics are read, joined, streamed into tables and into another topic.

    python -m tests.spark.clusters.work --broker HOST:PORT --topic T --directory D (--master URL | --remote URL)

prints what came out, as JSON. Nothing in `work` knows where it runs.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from typing import Any


def work(spark: Any, broker: str, topic: str, directory: str) -> dict[str, Any]:
    """Do it, and tell what came out."""
    from pyspark.sql import functions as F

    servers = {"kafka.bootstrap.servers": broker}
    table = spark.read.format("millstream").options(**servers).option("subscribe", topic).load()
    figures = table.agg(
        F.count("*").alias("rows"),
        F.sum(F.col("value").cast("string").cast("long")).alias("sum"),
        F.countDistinct("partition").alias("partitions"),
    ).collect()[0]
    stream = (
        spark.readStream.format("millstream")
        .options(**servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "500")
        .load()
    )
    numbers = stream.select(F.col("value").cast("string").cast("long").alias("number"), "partition", "offset")
    into_table = (
        numbers.writeStream.format("millstream-table")
        .option("path", f"{directory}/table")
        .option("tableFormat", "parquet")
        .option("checkpointLocation", f"{directory}/table.state")
    )
    into_topic = (
        stream.select("key", "value")
        .writeStream.format("millstream")
        .options(**servers)
        .option("topic", f"{topic}-copy")
        .option("checkpointLocation", f"{directory}/topic.state")
    )
    for writer in (into_table, into_topic):
        writer.trigger(availableNow=True).start().awaitTermination()
    kept = spark.read.parquet(f"{directory}/table").agg(F.count("*"), F.sum("number")).collect()[0]
    copied = (
        spark.read.format("millstream")
        .options(**servers)
        .option("subscribe", f"{topic}-copy")
        .load()
        .agg(F.count("*"), F.sum(F.col("value").cast("string").cast("long")))
        .collect()[0]
    )
    return {"batch": list(figures), "table": list(kept), "topic": list(copied)}


def session(master: str | None, remote: str | None, more: Mapping[str, str] | None = None) -> Any:
    """A session somewhere, with more settings than those that all need."""
    from pyspark.sql import SparkSession

    if remote is not None and remote.startswith("sc://"):
        # A thin client has neither Java nor Millstream.
        return SparkSession.builder.remote(remote).getOrCreate()
    from millstream.spark.java import use_java

    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("work")
    if remote is None:
        builder = builder.master(master)
    else:
        builder = builder.remote(remote).config("spark.connect.grpc.binding.address", "127.0.0.1")
    if remote is None or remote.startswith("local"):
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
        }
        for name, value in {**settings, **(more or {})}.items():
            builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    """Do the work in a session of its own."""
    parser = argparse.ArgumentParser()
    for name in ("broker", "topic", "directory"):
        parser.add_argument(f"--{name}", required=True)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--master")
    where.add_argument("--remote")
    given = parser.parse_args()
    spark = session(given.master, given.remote)
    try:
        print(json.dumps(work(spark, given.broker, given.topic, given.directory)))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
