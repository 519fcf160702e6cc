"""What is kept of runs: their log, and the lock that keeps others away."""

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from millstream.spark.errors import PipelineBusy
from millstream.spark.pipelines import run_log
from millstream.spark.pipelines.run_log import RunLog, read_runs, running_process

_SOURCES = [{"servers": "h:1", "subscribe": "x"}]


def finished(directory: Path, state: str, error: str | None = None) -> None:
    with RunLog(str(directory)) as log:
        log.started(_SOURCES, {"f": "t"})
        log.progress("f", 10, batch=1, lag=5)
        log.progress("f", 20, batch=2, lag=0)
        log.ended(state, error)


def test_runs_are_told_with_their_rows_and_the_last_batch_of_each_flow(tmp_path: Path) -> None:
    finished(tmp_path, "drained")
    finished(tmp_path, "failed", "it broke")
    one, other = read_runs(str(tmp_path))
    assert (one.state, one.rows, one.error, one.sources) == ("drained", 30, None, _SOURCES)
    assert (other.state, other.rows, other.error) == ("failed", 30, "it broke")
    assert one.ended is not None
    assert one.started <= one.ended
    assert one.flows["f"] | {"time": 0} == {"target": "t", "total": 30, "batch": 2, "lag": 0, "time": 0}
    assert running_process(str(tmp_path)) is None


def test_lines_are_few_though_batches_are_many(tmp_path: Path) -> None:
    with RunLog(str(tmp_path)) as log:
        log.started([], {"f": "t"})
        for number in range(1000):
            log.progress("f", 1, batch=number)
        log.ended("stopped")
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 4
    [run] = read_runs(str(tmp_path))
    assert (run.rows, run.flows["f"]["batch"]) == (1000, 999)


def test_a_second_run_is_refused_while_one_goes_on(tmp_path: Path) -> None:
    with RunLog(str(tmp_path)) as log:
        log.started([], {})
        assert running_process(str(tmp_path)) == os.getpid()
        assert [run.state for run in read_runs(str(tmp_path))] == ["running"]
        with pytest.raises(PipelineBusy, match=f"run by process {os.getpid()}; wait for its end"):
            RunLog(str(tmp_path))
    RunLog(str(tmp_path)).__exit__(None, None, None)


def _run_for_ever(directory: str) -> None:
    with RunLog(directory) as log:
        log.started([], {"f": "t"})
        log.progress("f", 1, batch=0)
        time.sleep(60)


def test_a_killed_run_has_crashed_and_is_in_nobodys_way(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_run_for_ever, args=(str(tmp_path),))
    process.start()
    log = tmp_path / "runs.jsonl"
    while not log.exists() or "progress" not in log.read_text():
        assert process.is_alive()
        time.sleep(0.02)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with log.open("a") as file:
        file.write('{"event": "ended", "run"')  # as a line that the crash has cut short
    assert [(run.state, run.rows) for run in read_runs(str(tmp_path))] == [("crashed", 1)]
    log.write_text(log.read_text() + "\n")
    finished(tmp_path, "drained")
    assert [run.state for run in read_runs(str(tmp_path))] == ["crashed", "drained"]


def test_a_log_that_has_grown_is_put_aside_in_the_middle_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "_LOG_BYTES_MAX", 500)
    monkeypatch.setattr(run_log, "_PROGRESS_EVERY_S", 0.0)
    with RunLog(str(tmp_path)) as log:
        log.started(_SOURCES, {"f": "t"})
        for number in range(50):
            log.progress("f", 2, batch=number)
        log.ended("stopped")
    assert sum(path.stat().st_size for path in tmp_path.glob("runs*.jsonl")) < 1500
    [run] = read_runs(str(tmp_path))
    assert (run.state, run.rows, run.flows["f"]["batch"], run.sources) == ("stopped", 100, 49, _SOURCES)
    assert all(json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines())
