"""python -m bench.spark: topics in Spark, beside the same rows in Parquet and Spark's own Kafka connector.

Records of 100 B without keys are written by bare clients of all four protocols, in batches of 16 KB: four topics of
one partition for each protocol; then Spark on two cores reads them with all seven columns. Everything is read twice,
the better time counts: the first reading of a form warms Spark up. Beside rows/s stand the rows for each second that
Spark's processes ran on a core, which hardly depend on what else the machine does; two cores can give twice that.
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from bench.drivers.driver import Endpoint
from bench.drivers.iggy_raw import IggyRaw
from bench.drivers.kafka07_raw import Kafka07Raw, message_set
from bench.drivers.kafka_raw import KafkaRaw
from bench.drivers.pulsar_raw import PulsarRaw
from bench.load import Budget, Load, Shape
from bench.machine import describe
from bench.systems.millstream import MillstreamOs
from bench.systems.system import Command, Server

__all__ = ["main"]

_RECORD_BYTES: Final = 100
_BATCH_BYTES: Final = 16_000
_TOPICS: Final = 4
_PROTOCOLS: Final = ("kafka", "pulsar", "iggy", "kafka07")
_CONNECTOR_POM: Final = "tests/spark/clusters/kafka_connector/pom.xml"
_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
_KIB: Final = 1024
_RESULTS: Final = Path(__file__).parent / "results"

Rates = dict[str, dict[str, tuple[float, float]]]
"""Rows/s, and rows for each second of a core, by what was read and how."""


class _MillstreamAny(MillstreamOs):
    """Ours, with one port for all protocols."""

    def command(self, directory: Path) -> Command:
        words = [sys.executable, "-m", "millstream.cli.main", "serve", "--data-dir", str(directory)]
        words += ["--listen", "any=127.0.0.1:0", "--set", "durability=os"]
        # The bare clients' messages are of 2023.
        words += ["--set", "log.segment.bytes=100000000", "--set", "log.retention.ms=-1"]
        return Command(words=words, ready="ready any=", port=0)

    def port(self, ready_line: str) -> int:
        return int(ready_line.split("any=")[1].split()[0].rpartition(":")[2])


def _write(endpoint: Endpoint, protocols: Sequence[str], records: int) -> dict[str, list[str]]:
    """Write so many records with each protocol, about; gives the topics of each as Kafka's clients name them."""
    # What repeats within a megabyte, Parquet would keep once.
    load = Load(_RECORD_BYTES, Shape("16 KB", 0, _BATCH_BYTES, 128), varied=True)
    budget = Budget(600.0, records // _TOPICS * _RECORD_BYTES)
    kafka = KafkaRaw(endpoint)
    topics: dict[str, list[str]] = {}
    for protocol in protocols:
        began = time.perf_counter()
        topics[protocol] = [f"{protocol}-{number}" for number in range(_TOPICS)]
        for number, topic in enumerate(topics[protocol]):
            if protocol == "iggy":
                iggy = IggyRaw(endpoint)
                iggy.create(topic)
                iggy.produce(topic, load, budget)
                iggy.close()
                topics[protocol][number] = f"bench.{topic}"
                continue
            kafka.create(topic)
            if protocol == "kafka":
                kafka.produce([topic], load, budget)
            elif protocol == "pulsar":
                name = f"persistent://public/default/{topic}"
                PulsarRaw(endpoint).produce(name, _RECORD_BYTES, load.batch_records, budget)
            else:
                old = Kafka07Raw(endpoint.host, endpoint.port)
                messages = message_set(load.value, _BATCH_BYTES)
                old.produce(topic, messages, max(1, records // _TOPICS * (_RECORD_BYTES + 10) // len(messages)))
                old.close()
        print(f"written by {protocol}: {records:,} records in {time.perf_counter() - began:.1f} s", flush=True)
    return topics


@contextlib.contextmanager
def _session(connector: Path | None) -> Iterator[Any]:
    """Spark on two cores.

    Args:
        connector: has the jars of Spark's own connector for Kafka.
    """
    from pyspark.sql import SparkSession

    from millstream.spark.java import use_java

    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if connector:
        builder = builder.config("spark.jars", ",".join(map(str, sorted(connector.glob("*.jar")))))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


class _Bench:
    """What is measured.

    Args:
        spark: the session.
        servers: the broker.
        directory: takes tables and checkpoints.
        batch_rows: records of a micro-batch.
    """

    def __init__(self, spark: Any, servers: str, directory: Path, batch_rows: int) -> None:
        self._spark = spark
        self._servers = servers
        self._directory = directory
        self._batch_rows = batch_rows
        self._checkpoints = 0
        self.rates: Rates = {}

    def _note(self, what: str, how: str, rows: int, work: Callable[[], None]) -> None:
        taken = []
        for _ in range(2):
            began, began_cpu = time.perf_counter(), _total(_cpu_seconds)
            work()
            taken.append((time.perf_counter() - began, _total(_cpu_seconds) - began_cpu))
        rates = rows / min(wall for wall, _ in taken), rows / min(cpu for _, cpu in taken)
        self.rates.setdefault(what, {})[how] = rates
        print(f"{what:<20}{how:<26}{rates[0]:12,.0f} rows/s{rates[1]:12,.0f} rows for a second of a core", flush=True)

    def _topics(self, reader: Any, topics: list[str], **options: Any) -> Any:
        given = {"kafka.bootstrap.servers": self._servers, "subscribe": ",".join(topics), **options}
        return reader.options(**given).load()

    def topics(self, protocol: str, topics: list[str]) -> None:
        """Batches and streams of what one protocol wrote."""
        read = self._spark.read.format("millstream")
        table = self._topics(read, topics)
        rows = table.count()
        self._note(protocol, "batch", rows, lambda: _drop(table))
        values = self._topics(read, topics, columns="value")
        self._note(protocol, "batch, values", rows, lambda: _drop(values))
        self._note(protocol, "batch to Parquet", rows, lambda: self._save(table, protocol))
        self._note(protocol, "stream", rows, lambda: self._stream("millstream", topics))
        remote = self._topics(self._spark.read.format("millstream"), topics, direct="never")
        self._note(protocol, "batch, over the network", rows, lambda: _drop(remote))

    def parquet(self) -> None:
        """The same rows in a table."""
        table = self._spark.read.parquet(str(self._directory / "kafka"))
        rows = table.count()
        self._note("Parquet", "batch", rows, lambda: _drop(table.select(*_COLUMNS)))
        values = table.select("value")
        self._note("Parquet", "batch, values", rows, lambda: _drop(values))
        self._note("Parquet", "batch to Parquet", rows, lambda: self._save(table, "copy"))

    def connector(self, topics: list[str]) -> None:
        """The same rows through Spark's own connector for Kafka."""
        table = self._topics(self._spark.read.format("kafka"), topics)
        rows = table.count()
        self._note("Kafka connector", "batch", rows, lambda: _drop(table))
        self._note("Kafka connector", "stream", rows, lambda: self._stream("kafka", topics))

    def sink(self) -> None:
        """The rows of the table into a topic."""
        table = self._spark.read.parquet(str(self._directory / "kafka")).select("value")
        rows = table.count()

        def write() -> None:
            writer = table.write.format("millstream").option("kafka.bootstrap.servers", self._servers)
            writer.option("topic", "sunk").mode("append").save()

        self._note("sink to a topic", "batch", rows, write)

    def _save(self, table: Any, name: str) -> None:
        table.write.mode("overwrite").parquet(str(self._directory / name))

    def _stream(self, form: str, topics: list[str]) -> None:
        self.run_stream(form, topics, self._batch_rows)

    def run_stream(
        self, form: str, topics: list[str], batch_rows: int, watch: Callable[[], None] | None = None
    ) -> None:
        """Drain topics in micro-batches of so many rows."""
        self._checkpoints += 1
        stream = self._topics(
            self._spark.readStream.format(form), topics, startingOffsets="earliest", maxOffsetsPerTrigger=batch_rows
        )
        checkpoint = str(self._directory / f"checkpoint-{self._checkpoints}")
        query = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
        running = query.trigger(availableNow=True).start()
        while not running.awaitTermination(1 if watch else 3600):
            if watch:
                watch()


def _drop(table: Any) -> None:
    table.write.format("noop").mode("overwrite").save()


def _memory(bench: _Bench, topics: list[str], rows: int) -> list[int]:
    """MB of all of Spark's processes, once a second, over a hundred micro-batches."""
    samples: list[int] = []
    bench.run_stream(
        "millstream", topics, max(rows // 100, 1), lambda: samples.append(int(_total(_resident_bytes)) // _KIB**2)
    )
    return samples


def _resident_bytes(stat: list[str]) -> float:
    return int(stat[21]) * os.sysconf("SC_PAGE_SIZE")


def _cpu_seconds(stat: list[str]) -> float:
    """Time on a core, with that of processes it has started that have ended."""
    return sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")


def _total(measure: Callable[[list[str]], float]) -> float:
    """A sum over all processes that this one has started, but for the server.

    Args:
        measure: takes what the kernel tells of a process behind its name.
    """
    parents, found = {}, {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            command = Path(f"/proc/{name}/cmdline").read_bytes()
            parents[int(name)] = int(stat[1])
            found[int(name)] = 0.0 if b"millstream.cli" in command else measure(stat)

    def is_ours(process: int) -> bool:
        while process > 1 and process != os.getpid():
            process = parents.get(process, 0)
        return process == os.getpid()

    return sum(value for process, value in found.items() if process != os.getpid() and is_ours(process))


def _measure(spark: Any, server: Server, directory: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    servers = f"{server.endpoint.host}:{server.endpoint.port}"
    topics = _write(server.endpoint, arguments.protocols, arguments.records)
    bench = _Bench(spark, servers, directory, max(arguments.records // 5, 1))
    for protocol in arguments.protocols:
        bench.topics(protocol, topics[protocol])
        if protocol == "kafka":
            bench.parquet()
            if arguments.connector:
                bench.connector(topics["kafka"])
            if arguments.sink:
                bench.sink()
    memory = _memory(bench, next(iter(topics.values())), arguments.records) if arguments.memory else []
    if memory:
        tenth = memory[len(memory) // 10]
        print(
            f"memory over 100 micro-batches: {tenth} MB after a tenth, {max(memory)} at most, {memory[-1]} at the end"
        )
    return {"records": arguments.records, "rows_s": bench.rates, "memory_mb": memory}


def main() -> int:
    """Run what the command line asks for and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000, help="of each protocol (default 10 million)")
    parser.add_argument(
        "--protocols",
        nargs="+",
        choices=_PROTOCOLS,
        default=_PROTOCOLS,
        help="whose topics; the table, the connector and the sink go with Kafka's (default all)",
    )
    parser.add_argument(
        "--connector",
        type=Path,
        metavar="DIRECTORY",
        help="measure Spark's own connector for Kafka too; get its jars with "
        f"mvn -f {_CONNECTOR_POM} dependency:copy-dependencies -DoutputDirectory=DIRECTORY",
    )
    parser.add_argument("--no-sink", dest="sink", action="store_false", help="do not write to a topic")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="do not watch the memory")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        directory = Path(temporary)
        facts = describe(directory)
        (directory / "server").mkdir()
        server = Server(_MillstreamAny(), directory / "server")
        try:
            with _session(arguments.connector) as spark:
                found = _measure(spark, server, directory, arguments)
        finally:
            server.stop()
    _RESULTS.mkdir(exist_ok=True)
    path = _RESULTS / f"spark-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps({"machine": facts, **found}, indent=2))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
