"""The same code in one process, on a standalone cluster of two worker processes, and through Spark Connect."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.clusters.connect_server import connect_server
from tests.spark.clusters.standalone import cluster
from tests.spark.clusters.work import work
from tests.spark.conftest import Topics
from tests.support.client_venv import client_venv
from tests.support.server_process import ServerProcess

ROOT = Path(__file__).parents[3]
RECORDS = 1000
RIGHT = {
    "batch": [RECORDS, sum(range(RECORDS)), 2],
    "table": [RECORDS, sum(range(RECORDS))],
    "topic": [RECORDS, sum(range(RECORDS))],
}
WORK_TIMEOUT_S = 280
THIN_CLIENT = "pyspark-client 4.2.0"
"""Of PyPI: PySpark without Spark. An older client than the server, as it may be."""


@pytest.fixture
def topic(topics: Topics) -> str:
    """A topic of two partitions with numbers, and one to copy it to."""
    name = topics.create("work", 2)
    topics.create_exactly(f"{name}-copy", 2)
    topics.write_numbers(name, range(RECORDS // 2), 0)
    topics.write_numbers(name, range(RECORDS // 2, RECORDS), 1)
    return name


def work_in_a_process(
    broker: ServerProcess, topic: str, directory: Path, *where: str, python: str = sys.executable, **environment: str
) -> Any:
    """What came out of the work somewhere else."""
    command = [python, "-m", "tests.spark.clusters.work", "--broker", broker.kafka, "--topic", topic]
    result = subprocess.run(
        [*command, "--directory", str(directory), *where],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", **environment},
        capture_output=True,
        text=True,
        timeout=WORK_TIMEOUT_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return json.loads(result.stdout.splitlines()[-1])


def test_in_this_process(spark: Any, broker: ServerProcess, topic: str, tmp_path: Path) -> None:
    assert work(spark, broker.kafka, topic, str(tmp_path)) == RIGHT


@pytest.mark.timeout(300)
def test_on_a_standalone_cluster(broker: ServerProcess, topic: str, tmp_path: Path) -> None:
    with cluster(tmp_path) as master:
        assert work_in_a_process(broker, topic, tmp_path / "out", "--master", master) == RIGHT
    executors = [path for path in tmp_path.glob("worker-*/app-*/*/stderr") if path.stat().st_size]
    assert {path.parts[-4] for path in executors} == {"worker-0", "worker-1"}


@pytest.mark.timeout(300)
def test_through_spark_connect(broker: ServerProcess, topic: str, tmp_path: Path) -> None:
    # The variable is what Spark's own tests set, to have the server take a free port in place of 15002.
    out = work_in_a_process(broker, topic, tmp_path, "--remote", "local[2]", SPARK_TESTING="1")
    assert out == RIGHT


@pytest.mark.timeout(500)
def test_from_a_thin_client(broker: ServerProcess, topic: str, tmp_path: Path) -> None:
    python = client_venv(THIN_CLIENT.replace(" ", "-"), [THIN_CLIENT.replace(" ", "==")])
    with connect_server(tmp_path) as address:
        where = ["--remote", f"sc://{address}"]
        assert work_in_a_process(broker, topic, tmp_path, *where, python=str(python), PYTHONPATH=str(ROOT)) == RIGHT
