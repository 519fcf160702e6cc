"""A program that writes while Spark runs a second attempt of a task beside the first: a table, and a stream.

Arguments: the broker's address, the master, the topic to read, the topic to write, a directory. The first two
attempts of the last task of each writing wait for each other in the middle of their rows, so that they are at work at
once. Each attempt leaves a file in the directory that is named for it.
"""

import functools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.spark.clusters.work import session

_WAIT_S = 90


def slowly(directory: Path, run: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Hand rows on, two attempts of one task waiting for each other."""
    from pyspark import TaskContext

    context = TaskContext.get()
    partition, attempt = context.partitionId(), context.attemptNumber()
    for batch in batches:
        half = batch.num_rows // 2
        yield batch.slice(0, half)
        number = context.getLocalProperty("streaming.sql.batchId") or "0"
        (directory / f"{run}-{number}-{partition}-{attempt}").touch()
        other = directory / f"{run}-{number}-{partition}-{1 - attempt}"
        deadline_s = time.monotonic() + _WAIT_S
        while partition and attempt < 2 and not other.exists() and time.monotonic() < deadline_s:
            time.sleep(0.02)
        yield batch.slice(half)


def main(servers: str, master: str, source: str, target: str, directory: str) -> None:
    """Write the rows of a topic twice, as a table and as a stream."""
    settings = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.minTaskRuntime": "1s",
        "spark.cores.max": "3",
    }
    spark = session(master, None, settings)
    options = {"kafka.bootstrap.servers": servers, "subscribe": source, "startingOffsets": "earliest"}
    rows = spark.read.format("millstream").options(**options).load().select("key", "value")
    slow = functools.partial(slowly, Path(directory), "table")
    written = rows.mapInArrow(slow, rows.schema).write.format("millstream").mode("append")
    written.options(**{"kafka.bootstrap.servers": servers, "topic": target}).save()

    stream = spark.readStream.format("millstream").options(**options, maxOffsetsPerTrigger=200)
    rows = stream.load().select("key", "value")
    slow = functools.partial(slowly, Path(directory), "stream")
    query = (
        rows.mapInArrow(slow, rows.schema)
        .writeStream.format("millstream")
        .options(**{"kafka.bootstrap.servers": servers, "topic": target, "checkpointLocation": f"{directory}/state"})
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
