"""Writes to a topic, reads it, streams it into another and reads that, all with the Kafka connector for Spark.

    python pipe.py BROKER TOPIC DIRECTORY JAR,JAR...

prints what it read, as JSON. Nothing in it knows of Millstream.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(broker: str, topic: str, directory: str, jars: str) -> None:
    """Do it."""
    settings = {
        "spark.jars": jars,
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    kafka = {"kafka.bootstrap.servers": broker}

    def written(name: str) -> Any:
        return spark.read.format("kafka").options(**kafka, subscribe=name, includeHeaders="true").load()

    numbers = spark.range(1000).select(
        F.col("id").cast("string").cast("binary").alias("key"),
        F.concat(F.lit("value "), F.col("id")).cast("binary").alias("value"),
        F.array(F.struct(F.lit("h").alias("key"), F.lit(b"x").alias("value"))).alias("headers"),
    )
    numbers.write.format("kafka").options(**kafka, topic=topic, includeHeaders="true").save()
    stream = spark.readStream.format("kafka").options(
        **kafka, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="300", includeHeaders="true"
    )
    sink = stream.load().select("key", "value", "headers").writeStream.format("kafka")
    query = sink.options(**kafka, topic=f"{topic}-copy", checkpointLocation=directory, includeHeaders="true")
    query.trigger(availableNow=True).start().awaitTermination()
    figures = {}
    for name in (topic, f"{topic}-copy"):
        row = written(name).agg(
            F.count("*"),
            F.countDistinct("key"),
            F.sum(F.length("value")),
            F.countDistinct("partition"),
            F.min(F.element_at("headers", 1)["value"].cast("string")),
        )
        figures[name] = list(row.collect()[0])
    spark.stop()
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
