"""`millstream pipeline` from outside: a project is made, checked, run, killed, stopped and looked at."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from millstream.spark.errors import TableMissing
from millstream.spark.pipelines.checkpoints import read_checkpoints
from millstream.spark.tables import live_files
from tests.spark.conftest import Topics
from tests.support.sample_records import Sample
from tests.support.server_process import ServerProcess

COMMAND = [sys.executable, "-m", "millstream.cli.main", "pipeline"]
RUN_TIMEOUT_S = 400
_BASE_MS = 1_700_000_000_000


def call(*words: str, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Call the command and wait for its end."""
    result = subprocess.run(
        [*COMMAND, *words], cwd=cwd, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
    )
    assert result.returncode == status, result.stdout + result.stderr
    return result


@contextlib.contextmanager
def running(project: Path) -> Iterator["subprocess.Popen[str]"]:
    """A run until stopped."""
    process = subprocess.Popen(
        [*COMMAND, "run"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def status_of(project: Path) -> Any:
    return json.loads(call("status", "--json", cwd=project).stdout)


def wait_until(process: "subprocess.Popen[str]", is_so: Callable[[], bool]) -> None:
    """Wait for something to become so while a process runs."""
    deadline_s = time.monotonic() + RUN_TIMEOUT_S
    while not is_so():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def table_of(project: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table; none before it is made."""
    try:
        files = live_files(str(project / "tables" / name))
    except TableMissing:
        return []
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def rows(project: Path) -> Counter[tuple[int, int]]:
    """How often each record is in the two tables, by partition and offset."""
    both = table_of(project, "orders") + table_of(project, "quarantine")
    return Counter((row["partition"], row["offset"]) for row in both)


def write(topics: Topics, topic: str, numbers: range) -> None:
    """Write JSON objects; every tenth value is none."""
    values = [b"no json" if n % 10 == 9 else json.dumps({"item": "tea", "price": n}).encode() for n in numbers]
    topics.write(topic, [Sample(b"k", value, (), _BASE_MS) for value in values])


@pytest.mark.timeout(1200)
def test_a_new_project_is_killed_in_a_batch_goes_on_is_stopped_and_has_each_row_once(
    topics: Topics, broker: ServerProcess, tmp_path: Path
) -> None:
    topics.create_exactly("orders")
    write(topics, "orders", range(100))
    made = call("init", "shop", "--topic", "orders", "--broker", broker.kafka, cwd=tmp_path)
    assert "shop/spark-pipeline.yml" in made.stdout.splitlines()
    project = tmp_path / "shop"

    with running(project) as process:
        wait_until(process, lambda: sum(rows(project).values()) == 100)
        assert len(table_of(project, "quarantine")) == 10
        [first] = [row for row in table_of(project, "orders") if row["offset"] == 0]
        assert dict(first["fields"]) == {"item": "tea", "price": "0"}
        assert status_of(project)["is_running"]
        busy = call("run", cwd=project, status=1).stderr
        assert busy == f"error: this pipeline is being run by process {process.pid}; wait for its end, or stop it\n"
        write(topics, "orders", range(100, 200))
        wait_until(process, lambda: any(each.is_open for each in read_checkpoints(str(project / "storage"))))
        process.kill()
        process.wait()
    assert [run["state"] for run in status_of(project)["runs"]] == ["crashed"]

    write(topics, "orders", range(200, 300))
    with running(project) as process:
        wait_until(process, lambda: sum(rows(project).values()) >= 300)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=RUN_TIMEOUT_S)
        assert process.returncode == 0, err
        assert out.splitlines()[-1].startswith("stopped\t")
    assert rows(project) == {(0, offset): 1 for offset in range(300)}
    found = status_of(project)
    assert [run["state"] for run in found["runs"]] == ["stopped", "crashed"]
    assert [(flow["flow"], flow["lag"]) for flow in found["flows"]] == [("good", 0), ("bad", 0)]
    assert all(flow["position"] == {"orders": {"0": 300}} and not flow["is_open"] for flow in found["flows"])
    plain = [line.split("\t") for line in call("status", cwd=project).stdout.splitlines()]
    assert plain[0] == ["pipeline", "shop", "not running"]
    assert [line[0] for line in plain] == ["pipeline", "run", "run", "flow", "flow"]


_VIEW = """
from pyspark import pipelines as dp

@dp.temporary_view
def numbers():
    return spark.readStream.format("rate").load()
"""
_SQL = """
CREATE STREAMING TABLE both;
CREATE FLOW one AS INSERT INTO both BY NAME SELECT value FROM STREAM numbers;
CREATE FLOW other AS INSERT INTO both BY NAME SELECT value FROM STREAM numbers;
"""


@pytest.mark.timeout(300)
def test_definitions_in_sql_that_would_lose_rows_are_refused(tmp_path: Path) -> None:
    call("init", "shop", cwd=tmp_path)
    definitions = tmp_path / "shop" / "transformations"
    (definitions / "events.py").write_text(_VIEW)
    (definitions / "both.sql").write_text(_SQL)
    refused = call("check", "shop", cwd=tmp_path, status=1)
    [line] = refused.stderr.splitlines()
    assert line.startswith("error: transformations/both.sql:3: the flows spark_catalog.default.one and ")
    assert "write parquet files to one table spark_catalog.default.both, where Spark would lose rows" in line
    assert not os.path.exists(tmp_path / "shop" / "storage" / "_checkpoints")


def test_a_project_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    call("init", "shop", cwd=tmp_path)
    again = call("init", "shop", cwd=tmp_path, status=1)
    assert again.stderr == "error: shop is there already; take another name, or remove it\n"
    odd = call("init", "../shop", cwd=tmp_path, status=1)
    assert odd.stderr.startswith("error: '../shop' is no name of a project; use letters")
    lost = call("run", cwd=tmp_path, status=1)
    assert "there is no spark-pipeline.yml in" in lost.stderr
    assert len(lost.stderr.splitlines()) == 1


_TOTALS = """
from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.materialized_view
def totals():
    options = {"kafka.bootstrap.servers": "%s", "subscribe": "summed"}
    records = spark.read.format("millstream").options(**options).load()
    # So that there is time to stop it in the middle.
    slow = F.expr("reflect('java.lang.Thread', 'sleep', CAST(20 AS BIGINT))").alias("slept")
    return records.select("offset", slow).agg(F.count("offset").alias("records"), F.count("slept").alias("slept"))
"""


@pytest.mark.timeout(1200)
def test_a_pipeline_is_stopped_while_it_computes_a_view_and_computes_it_anew(
    topics: Topics, broker: ServerProcess, tmp_path: Path
) -> None:
    topics.create_exactly("summed")
    write(topics, "summed", range(200))
    call("init", "sums", "--topic", "summed", "--broker", broker.kafka, cwd=tmp_path)
    project = tmp_path / "sums"
    (project / "transformations" / "totals.py").write_text(_TOTALS % broker.kafka)
    with running(project) as process:
        wait_until(process, lambda: len(table_of(project, "summed")) == 180)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=RUN_TIMEOUT_S)
        assert process.returncode == 0, err
        assert out.splitlines()[-1].startswith("stopped\t")
    write(topics, "summed", range(200, 250))
    call("run", "--until-drained", cwd=project)
    assert [run["state"] for run in status_of(project)["runs"]] == ["drained", "stopped"]
    places = [row["offset"] for name in ("summed", "quarantine") for row in table_of(project, name)]
    assert sorted(places) == list(range(250))
    [view] = pq.read_table(project / "storage" / "warehouse" / "totals").to_pylist()
    assert view == {"records": 250, "slept": 250}


@pytest.mark.timeout(300)
def test_a_program_runs_a_pipeline_twice_and_reads_its_table(
    topics: Topics, broker: ServerProcess, tmp_path: Path
) -> None:
    topics.create_exactly("sales")
    write(topics, "sales", range(1, 10))
    call("init", "shop", "--topic", "sales", "--broker", broker.kafka, cwd=tmp_path)
    project = tmp_path / "shop"
    command = [sys.executable, "-m", "tests.spark.pipelines.run_twice", str(project), broker.kafka, "sales"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"runs": [["drained", 18], ["drained", 2]], "rows": 9}
    runs = status_of(project)["runs"]
    assert [(run["state"], run["rows"]) for run in runs] == [("drained", 2), ("drained", 18)]
    assert len({run["run"] for run in runs}) == 2
