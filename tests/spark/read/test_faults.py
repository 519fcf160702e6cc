"""Brokers and workers that die in the middle of it: nothing is lost, nothing is read twice."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream.spark.client import EARLIEST, LATEST, Client
from millstream.spark.errors import BrokerUnreachable
from millstream.spark.read.options import Direct
from millstream.spark.read.reading import OffsetRange, read_range
from millstream.spark.servers import Servers
from tests.spark.conftest import Topics
from tests.support.server_process import lasting_listener, serving, start

_ROOT = Path(__file__).parents[3]
_SCHEMA = pa.schema([("offset", pa.int64())])
_RECORDS = 60_000


def test_a_broker_that_is_killed_while_a_task_reads(tmp_path_factory: pytest.TempPathFactory) -> None:
    data_dir = str(tmp_path_factory.mktemp("killed") / "data")
    listen = lasting_listener()
    first = start(data_dir, listen, ["durability=os"])
    topic = Topics(first.kafka).create("killed")
    Topics(first.kafka).write_numbers(topic, range(_RECORDS), batch_size=16_000)
    with Client(first.kafka) as client:
        described = client.topics([topic])
        wanted = OffsetRange(
            servers=Servers.at(first.kafka),
            topic=topic,
            topic_id=described[topic].topic_id,
            partition=0,
            leader=first.kafka,
            data_dir="",
            start=client.offsets(described, EARLIEST)[topic][0],
            stop=client.offsets(described, LATEST)[topic][0],
            direct=Direct.NEVER,
            fails_on_data_loss=True,
            patience_s=30,
        )
    # Several fetches: the broker gives no more at once than a client has room for.
    parts = wanted.split(3)
    readers = [read_range(part, _SCHEMA) for part in parts]
    read = [row for batch in readers[0] for row in batch.column(0).to_pylist()]
    first.kill()
    impatient = dataclasses.replace(parts[1], patience_s=0.0)
    with pytest.raises(BrokerUnreachable, match=r"no Kafka broker answers at .*; see kafka.bootstrap.servers"):
        list(read_range(impatient, _SCHEMA))
    with serving_later(data_dir, listen):
        read += [row for reader in readers[1:] for batch in reader for row in batch.column(0).to_pylist()]
    assert read == list(range(_RECORDS))


class serving_later:  # noqa: N801 - reads as the function that it stands for
    """A server that starts a second after the block has begun."""

    def __init__(self, data_dir: str, listen: str) -> None:
        self._data_dir = data_dir
        self._listen = listen
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _serve(self) -> None:
        time.sleep(1)
        with serving(self._data_dir, listen=self._listen, settings=["durability=os"]):
            self._ended.wait()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("direct", ["auto", "never"])
def test_a_broker_that_is_killed_under_a_stream(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, direct: str
) -> None:
    directory = tmp_path_factory.mktemp("stream")
    data_dir, table = str(directory / "data"), str(directory / "table")
    listen = lasting_listener()
    server = start(data_dir, listen, ["durability=os"])
    address = server.kafka
    try:
        topic = Topics(address).create("restarted")
        query = (
            spark.readStream.format("millstream")
            .options(**{"kafka.bootstrap.servers": address, "subscribe": topic, "startingOffsets": "earliest"})
            .options(maxOffsetsPerTrigger=700, direct=direct)
            .load()
            .selectExpr("CAST(CAST(value AS string) AS int) AS number")
            .writeStream.format("parquet")
            .option("path", table)
            .option("checkpointLocation", str(directory / "checkpoint"))
            .trigger(processingTime="100 milliseconds")
            .start()
        )
        try:
            for number in range(3):
                Topics(address).write_numbers(topic, range(number * 1000, (number + 1) * 1000), batch_size=2000)
                _until_rows(query, number * 1000 + 300)
                server.kill()
                time.sleep(1)
                server = start(data_dir, listen, ["durability=os"])
            _until_rows(query, 3000)
        finally:
            query.stop()
    finally:
        server.stop()
    assert sorted(row.number for row in spark.read.parquet(table).collect()) == list(range(3000))


def _until_rows(query: Any, count: int) -> None:
    deadline_s = time.monotonic() + 90
    while sum(progress["numInputRows"] for progress in query.recentProgress) < count:
        assert query.exception() is None, query.exception()
        assert time.monotonic() < deadline_s, "the stream does not go on"
        time.sleep(0.05)


@pytest.mark.timeout(300)  # a Spark of its own
def test_workers_that_are_killed(tmp_path_factory: pytest.TempPathFactory) -> None:
    data_dir = str(tmp_path_factory.mktemp("workers") / "data")
    with serving(data_dir, settings=["durability=os"]) as server:
        topic = Topics(server.kafka).create("workers")
        Topics(server.kafka).write_numbers(topic, range(5000))
        program = [
            sys.executable,
            "-m",
            "tests.spark.read.killed_workers",
            server.kafka,
            str(server.process.pid),
            topic,
        ]
        path = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
        try:
            result = subprocess.run(
                program,
                capture_output=True,
                text=True,
                timeout=240,
                cwd=_ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": path,
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                },
            )
        finally:
            server.process.send_signal(signal.SIGCONT)
        told = [line for line in result.stderr.splitlines() if not line.startswith("\tat ")]
        assert result.returncode == 0, "\n".join(told)
        assert "killed " in result.stderr
        assert json.loads(result.stdout.splitlines()[-1]) == list(range(5000))
