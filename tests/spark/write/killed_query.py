"""A streaming query of numbers into a topic, in a process of its own, that kills itself where it is told to.

    python -m tests.spark.write.killed_query JSON

JSON holds the settings, see `Settings`. The query counts from 0, 300 numbers in three tasks of each micro-batch. It
prints a line `batch N` for each micro-batch that has ended.
"""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from millstream.spark.connections import Connections
from millstream.spark.source import MillstreamSource
from millstream.spark.write.options import WriteOptions
from millstream.spark.write.writers import StreamWriter

ROWS_PER_BATCH = 300
TASKS = 3


@dataclass(frozen=True)
class Settings:
    """What the process is to do.

    Args:
        servers, topic, checkpoint: of the query.
        until_batch: it ends by itself behind this micro-batch.
        driver_dies: micro-batch, API and number of the request behind whose answer the driver is killed.
        task_dies_in: micro-batch in which the Python worker of a task is killed, at its first attempt.
    """

    servers: str
    topic: str
    checkpoint: str
    until_batch: int
    driver_dies: tuple[int, str, int] | None = None
    task_dies_in: int | None = None

    def command(self) -> list[str]:
        """The command line of such a process."""
        return [sys.executable, "-m", "tests.spark.write.killed_query", json.dumps(asdict(self))]


def kill_all(processes: list[int], mark: str) -> None:
    """SIGKILL for others, and for this process, which leaves a file to tell of it."""
    with open(mark, "w"):
        pass
    for process in [*processes, os.getpid()]:
        os.kill(process, signal.SIGKILL)


class KillingWriter(StreamWriter):
    """The sink's writer, with a death."""

    def __init__(self, options: WriteOptions, settings: Settings, driver: list[int]) -> None:
        super().__init__(options)
        self._settings = settings
        self._driver = driver

    def write(self, iterator: Iterator[Any]) -> Any:
        """Write; the worker dies behind the rows of one task, before they are all sent."""
        from pyspark import TaskContext

        context = TaskContext.get()
        batch = int(context.getLocalProperty("streaming.sql.batchId"))
        if batch != self._settings.task_dies_in or context.partitionId() != 1 or context.attemptNumber():
            return super().write(iterator)
        die_at("Produce", 1, [], f"{self._settings.checkpoint}.task")
        return super().write(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit; the driver dies at one of the requests."""
        if self._settings.driver_dies is not None and self._settings.driver_dies[0] == batchId:
            die_at(*self._settings.driver_dies[1:], self._driver, f"{self._settings.checkpoint}.driver-{batchId}")
        super().commit(messages, batchId)


def die_at(name: str, number: int, victims: list[int], mark: str) -> None:
    """Kill when the n-th request of an API has been answered; for number 0 before the first is sent."""
    seen = 0
    send, answer = Connections._send, Connections._answer

    def sending(self: Connections, server: str, api: Any, version: int, request: object) -> int:
        if api.name == name and not number:
            kill_all(victims, mark)
        return send(self, server, api, version, request)

    def answering(self: Connections, server: str, api: Any, version: int, sent: int) -> Any:
        nonlocal seen
        result = answer(self, server, api, version, sent)
        seen += api.name == name
        if seen == number and number:
            kill_all(victims, mark)
        return result

    setattr(Connections, "_send", sending)  # noqa: B010 - what is put in the place of a method has no type
    setattr(Connections, "_answer", answering)  # noqa: B010


def main(settings: Settings) -> None:
    """Run the query."""
    from pyspark.sql import SparkSession

    from millstream.spark.java import use_java

    use_java()
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    spark = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    driver = [spark._jvm.ProcessHandle.current().pid(), os.getpid()]

    class KillingSource(MillstreamSource):
        """The sink under another name."""

        @classmethod
        def name(cls) -> str:
            return "killing"

        def streamWriter(self, schema: Any, overwrite: bool) -> KillingWriter:  # noqa: N802 - Spark's name
            return KillingWriter(WriteOptions.of(self.options).for_stream(), settings, driver)

    spark.dataSource.register(KillingSource)
    numbers = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", ROWS_PER_BATCH)
        .option("numPartitions", TASKS)
        .load()
    )
    query = (
        numbers.selectExpr("lpad(CAST(value AS string), 7, '0') AS value")
        .writeStream.format("killing")
        .option("kafka.bootstrap.servers", settings.servers)
        .option("topic", settings.topic)
        .option("checkpointLocation", settings.checkpoint)
        .start()
    )
    last = -1
    while last < settings.until_batch:
        if not query.isActive:
            query.awaitTermination()
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > last:
            last = progress["batchId"]
            print(f"batch {last}", flush=True)
        else:
            query.awaitTermination(0.1)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(Settings(**{**given, "driver_dies": given["driver_dies"] and tuple(given["driver_dies"])}))
