"""Two plain streaming queries run as one pipeline: orders into a table, large ones into another topic, each row once.

    pip install 'millstream[spark]'
    python examples/pipeline/plain_queries.py [BROKER [DIRECTORY]]

BROKER is HOST:PORT of a server that has the topic `orders`, with values such as {"id": 1, "item": "tea", "price": 3};
without it, a server is started and filled. The queries run until there is nothing more to read. Call it again, with
the same broker and directory, and they go on where they have ended.
"""

import contextlib
import json
import os
import sys
import tempfile
from typing import Any

from confluent_kafka import Producer

import millstream
from millstream.spark.java import use_java
from millstream.spark.pipelines.queries import run_queries
from millstream.spark.values import decode


def queries(spark: Any, broker: str, directory: str) -> list[Any]:
    """The queries, not started: where they read, what they do, where they write."""
    records = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", broker)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    good, bad = decode(records, format="json", schema="id BIGINT, item STRING, price DOUBLE")

    def table(name: str, rows: Any) -> Any:
        return (
            rows.writeStream.queryName(name)
            .format("millstream-table")
            .option("path", f"{directory}/{name}")
            .option("checkpointLocation", f"{directory}/checkpoints/{name}")
        )

    large = (
        good.where("value.price >= 900")
        .selectExpr("key", "to_json(value) AS value")
        .writeStream.queryName("large")
        .format("millstream")
        .option("kafka.bootstrap.servers", broker)
        .option("topic", "large-orders")
        .option("checkpointLocation", f"{directory}/checkpoints/large")
    )
    return [table("orders", good.select("value.*", "timestamp")), table("quarantine", bad), large]


def fill(broker: str) -> None:
    """A thousand orders, of which every hundredth is no JSON."""
    producer = Producer({"bootstrap.servers": broker})
    for number in range(1000):
        order = json.dumps({"id": number, "item": "tea", "price": float(number)})
        producer.produce("orders", "lost in translation" if number % 100 == 99 else order, str(number % 10))
    producer.flush()


def main(broker: str | None = None, directory: str | None = None) -> None:
    """Run them."""
    use_java()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with contextlib.ExitStack() as stack:
        directory = directory or stack.enter_context(tempfile.TemporaryDirectory())
        if broker is None:
            broker = stack.enter_context(millstream.running(data_dir=f"{directory}/broker")).kafka
            fill(broker)
        settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}
        spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        stack.callback(spark.stop)
        for end in run_queries(queries(spark, broker, directory), until_drained=True):
            print(f"{end.name}: {end.rows} rows read, in {end.batches} micro-batch(es)")
        for name in ("orders", "quarantine"):
            print(f"{name}: {spark.read.parquet(f'{directory}/{name}').count()} rows in the table")


if __name__ == "__main__":
    main(*sys.argv[1:])
