"""A driver is killed in the middle of a commit, and a worker in the middle of a task: every row is there once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from millstream.spark.tables import live_files
from tests.spark.tables.conftest import FORMATS, Numbers

_HERE = Path(__file__).parent
_SOURCE = _HERE.parents[2] / "src"
_POINTS = ("staged", "placed", "published")
_STOPS_IN_S = 600


@pytest.mark.timeout(1200)
def test_a_driver_killed_in_mid_commit(spark: Any, tmp_path: Path) -> None:
    streams = {}
    for name in [f"{point}-{kind}" for point in _POINTS for kind in FORMATS]:
        (tmp_path / name).mkdir()
        stream = streams[name] = Numbers(spark, tmp_path / name, name.partition("-")[2])
        stream.add(range(1000), range(1000, 1500), range(1500, 2500))
    _run_until_killed(tmp_path, list(streams))

    for name, stream in streams.items():
        is_published = name.startswith("published")
        assert stream.numbers() == list(range(1500 if is_published else 1000)), f"{name}: wholly there, or not at all"
        assert (tmp_path / f"killed-{name}").exists(), f"{name}: a worker was killed too"
        assert stream.run() == 2, f"{name}: the batch that was under way runs again"
        assert stream.numbers() == list(range(2500)), name
        there = {str(file) for file in Path(stream.table).rglob("rows-*.parquet")}
        assert there == set(live_files(stream.table)), f"{name}: no file of the attempts that died is left"


def _run_until_killed(directory: Path, names: list[str]) -> None:
    """Run a driver until all streams have come to their point in the commit of batch 1; then kill it."""
    environment = {
        **os.environ,
        "TABLES_FAULT_DIR": str(directory),
        "PYTHONPATH": f"{_HERE / 'faults'}:{_SOURCE}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, str(_HERE / "driver.py"), str(directory), *names]
    with open(directory / "driver.log", "wb") as log:
        driver = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + _STOPS_IN_S
        while len(list(directory.glob("stopped-*"))) < len(names):
            assert driver.poll() is None, (directory / "driver.log").read_text()[-2000:]
            assert time.monotonic() < deadline, (directory / "driver.log").read_text()[-2000:]
            time.sleep(0.1)
    finally:
        # The JVM is in the driver's process group; its Python workers end when they lose it.
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
