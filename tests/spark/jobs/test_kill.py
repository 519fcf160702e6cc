"""Jobs from the command line that are killed, run again, and come out exactly."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import Topics
from tests.spark.jobs.conftest import Rows
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.timeout(900)

_RUN_TIMEOUT_S = 300


def _start(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "millstream.cli.main", "job", *words, "--master", "local[2]"]
    # In a group of its own, so that Spark's Java goes with it.
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _kill_after(batches: int, *words: str) -> None:
    """Run a job, and kill it with all its processes once so many batches are done."""
    process = _start(*words)
    assert process.stdout is not None
    seen = 0
    for line in process.stdout:
        seen += line.startswith("batch\t")
        if seen == batches:
            break
    os.killpg(process.pid, signal.SIGKILL)
    _, errors = process.communicate()
    assert seen == batches, errors


def _run(*words: str) -> list[str]:
    process = _start(*words)
    out, errors = process.communicate(timeout=_RUN_TIMEOUT_S)
    assert process.returncode == 0, errors
    return out.splitlines()[-1].split("\t")


def test_an_archive_and_a_replay_that_are_killed(
    broker: ServerProcess, topics: Topics, held: Rows, tmp_path: Path
) -> None:
    topic = topics.create("killed", partitions=2)
    topics.write_numbers(topic, range(600))
    topics.write_numbers(topic, range(600), partition=1)
    table, job = os.fspath(tmp_path / "table"), os.fspath(tmp_path / "job")
    archive = ["archive", topic, "--table", table, "--checkpoint", job, "--batch-rows", "250", "-b", broker.kafka]
    _kill_after(2, *archive)
    kind, rows, batches, state = _run(*archive)
    assert (kind, state) == ("done", "complete")
    assert 0 < int(rows) <= 1200 - 2 * 250
    assert int(batches) <= 3

    again = f"{topic}-again"
    replay = ["replay", table, "--topic", again, "--checkpoint", f"{job}.replay", "--batch-rows", "400"]
    replay += ["-b", broker.kafka]
    _kill_after(1, *replay)
    kind, rows, _, state = _run(*replay)
    assert (kind, state) == ("done", "complete")
    assert int(rows) <= 1200 - 400
    assert held.of(again, without_offsets=True) == held.of(topic, without_offsets=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["archive", "missing", "--table", "t"], "error: there is no topic 'missing' at"),
        (["backfill", "x"], "error: a backfill goes into one place; give --table or --topic"),
        (["backfill", "x", "--table", "t", "--from", "soon"], "error: --from: 'soon' is no place to start from; see"),
        (
            ["backfill", "x", "--table", "t", "--until", "earliest"],
            "error: --until cannot be earliest; give an offset",
        ),
    ],
)
def test_errors_are_one_line(
    broker: ServerProcess, tmp_path: Path, words: list[str], message: str, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    process = _start(*words, "--checkpoint", "job", "-b", broker.kafka)
    _, errors = process.communicate(timeout=_RUN_TIMEOUT_S)
    assert process.returncode in {1, 2}
    assert errors.splitlines()[-1].startswith(message)
