"""A streaming query is killed, and its broker: kill -9 of a Python worker, of the driver, of the server."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.conftest import Topics
from tests.spark.write.conftest import values
from tests.spark.write.killed_query import ROWS_PER_BATCH, Settings
from tests.support.server_process import ServerProcess, start

_ROOT = Path(__file__).parents[3]
_TIMEOUT_S = 300
"""A session takes 10 s to start on a machine that is free, and minutes on one that is not."""


@contextlib.contextmanager
def _running(settings: Settings) -> Iterator["subprocess.Popen[str]"]:
    with open(f"{settings.checkpoint}.log", "w") as log:
        process = subprocess.Popen(
            settings.command(),
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": f"{_ROOT}/src"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield process
        process.wait(_TIMEOUT_S)
    finally:
        # Its Java ends with it.
        process.kill()


def _log(settings: Settings) -> str:
    with open(f"{settings.checkpoint}.log") as file:
        return file.read()


@pytest.mark.timeout(1200)
def test_every_row_once_whatever_is_killed(own_broker: ServerProcess, tmp_path: Path) -> None:
    server = own_broker.kafka
    Topics(server).create_exactly("n", partitions=2)
    base = Settings(server, "n", str(tmp_path / "checkpoint"), until_batch=100)
    deaths = [
        (1, "EndTxn", 2),  # between two commits, behind the intent
        (2, "OffsetCommit", 2),  # when all is done, but Spark does not know
    ]
    for index, death in enumerate(deaths):
        settings = Settings(**{**vars(base), "driver_dies": death, "task_dies_in": None if index else 0})
        with _running(settings) as process:
            process.communicate(timeout=_TIMEOUT_S)
        assert process.returncode == -9, _log(settings)
        assert (tmp_path / f"checkpoint.driver-{death[0]}").exists()
        assert (tmp_path / "checkpoint.task").exists()
        published = values(server, "n")
        assert len(set(published)) == len(published)
        if death[1] == "EndTxn":
            assert ROWS_PER_BATCH < len(published) < 2 * ROWS_PER_BATCH, "a part of the batch is published"
        else:
            assert len(published) == 3 * ROWS_PER_BATCH

    restarted = own_broker
    try:
        settings = Settings(**{**vars(base), "until_batch": 6})
        with _running(settings) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line == "batch 3\n":
                    restarted.kill()
                    time.sleep(0.5)
                    restarted = start(own_broker.data_dir, listen=f"kafka={server}")
            process.communicate(timeout=_TIMEOUT_S)
        assert process.returncode == 0, _log(settings)
        published = values(server, "n")
        assert published == [b"%07d" % n for n in range(len(published))]
        assert len(published) >= 7 * ROWS_PER_BATCH
        assert len(published) % ROWS_PER_BATCH == 0
    finally:
        assert restarted.stop() == 0
        assert restarted.process.stdout is not None
        restarted.process.stdout.close()
