"""What is kept of a pipeline's runs: a lock, and a line of JSON for whatever happens in one.

The log is `runs.jsonl` in the pipeline's state directory. Each line has `event`, `run` (its id) and `time` (seconds
since 1970); the first of a run has event `started`, with the process, the sources and the flows; the last has event
`ended`, with state `drained`, `stopped` or `failed`; between them are lines with event `progress`, one every few
seconds for each flow. A line that a crash has cut short is left out when the log is read, and a run without an end
whose process is gone has `crashed`.
"""

import fcntl
import json
import math
import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from millstream.spark.errors import PipelineBusy
from millstream.spark.servers import SECRET_OPTIONS

__all__ = ["Run", "RunLog", "read_runs", "running_process"]

_LOG: Final = "runs.jsonl"
_LOCK: Final = "lock"
_OLD_LOG: Final = "runs.1.jsonl"
_LOG_BYTES_MAX: Final = 4 * 1024 * 1024
"""From this size on the log is put aside as `runs.1.jsonl`, which replaces the one before. The run that goes on is
told of anew in the next."""
_PROGRESS_EVERY_S: Final = 5.0


@dataclass(slots=True)
class Run:
    """One run as the log tells of it.

    Args:
        id: of the run.
        started, ended: seconds since 1970; `ended` is None for a run that goes on or has crashed.
        state: running, drained, stopped, failed or crashed.
        process: its process id.
        error: why it failed, in one line.
        sources: servers and topics that its flows read, as the log has them.
        flows: by name, what was last told of each.
    """

    id: str
    started: float
    process: int
    ended: float | None = None
    state: str = "crashed"
    error: str | None = None
    sources: list[dict[str, str]] = field(default_factory=list)
    flows: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows that all flows have read together."""
        return sum(flow.get("total", 0) for flow in self.flows.values())


class RunLog:
    """Writes the log of runs, one after the other, and keeps other processes' away meanwhile; a context.

    Args:
        state_dir: the pipeline's state directory; made if need be.

    Raises:
        PipelineBusy: another process runs the pipeline.
    """

    def __init__(self, state_dir: str) -> None:
        os.makedirs(state_dir, exist_ok=True)
        self._path = os.path.join(state_dir, _LOG)
        self._lock = os.open(os.path.join(state_dir, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process = os.read(self._lock, 20).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise PipelineBusy(
                f"this pipeline is being run by process {process or 'unknown'}", "wait for its end, or stop it"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)
        self._run_id = ""
        self._start: dict[str, Any] = {}
        self._totals: dict[str, int] = {}
        self._unwritten: dict[str, dict[str, Any]] = {}
        self._written_s: dict[str, float] = {}
        # Progress is noted on the thread on which Spark reports it.
        self._one_at_a_time = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def started(self, sources: list[dict[str, str]], flows: Mapping[str, str]) -> None:
        """Note the begin of a run.

        Args:
            sources: what flows read: servers, and what selects topics. Passwords are not written down.
            flows: where each flow goes, by its name.
        """
        self._run_id = uuid.uuid4().hex[:12]
        self._totals.clear()
        self._start = {
            "begun": round(time.time(), 3),
            "process": os.getpid(),
            "sources": [
                {name: value for name, value in one.items() if name not in SECRET_OPTIONS} for one in sources
            ],
            "flows": dict(flows),
        }
        self._write("started", **self._start, totals={})

    def progress(self, flow: str, rows: int, **figures: Any) -> None:
        """Note a finished batch of a flow; it is written with the next ones if the last line is quite new."""
        with self._one_at_a_time:
            self._totals[flow] = self._totals.get(flow, 0) + rows
            self._unwritten[flow] = figures
            if time.monotonic() - self._written_s.get(flow, -math.inf) >= _PROGRESS_EVERY_S:
                self._write_progress(flow)

    def ended(self, state: str, error: str | None = None) -> None:
        """Note the end of the run: drained, stopped or failed."""
        with self._one_at_a_time:
            for flow in list(self._unwritten):
                self._write_progress(flow)
            self._write("ended", state=state, error=error)

    @property
    def rows(self) -> int:
        """Rows that all flows have read together in the last run."""
        return sum(self._totals.values())

    def _write_progress(self, flow: str) -> None:
        self._written_s[flow] = time.monotonic()
        self._write("progress", flow=flow, total=self._totals[flow], **self._unwritten.pop(flow))
        if os.path.getsize(self._path) > _LOG_BYTES_MAX:
            os.replace(self._path, os.path.join(os.path.dirname(self._path), _OLD_LOG))
            self._write("started", **self._start, totals=self._totals)

    def _write(self, event: str, **fields: Any) -> None:
        line = json.dumps({"event": event, "run": self._run_id, "time": round(time.time(), 3), **fields})
        # One write to a file that is opened for appending, so that lines stay whole.
        with open(self._path, "ab", buffering=0) as file:
            file.write(line.encode() + b"\n")


def read_runs(state_dir: str) -> list[Run]:
    """The runs that the log tells of, the oldest first; empty if there was none."""
    runs: dict[str, Run] = {}
    for name in (_OLD_LOG, _LOG):
        for event in _events(os.path.join(state_dir, name)):
            _take(runs, event)
    alive = running_process(state_dir)
    for run in runs.values():
        if run.ended is None and alive is not None and run.process == alive:
            run.state = "running"
    return list(runs.values())


def running_process(state_dir: str) -> int | None:
    """The process that runs the pipeline now; None if none does."""
    try:
        lock = os.open(os.path.join(state_dir, _LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(lock, 20).decode("ascii", "replace").strip()
        return int(process) if process.isdecimal() else 0
    finally:
        os.close(lock)
    return None


def _events(path: str) -> Iterator[dict[str, Any]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if isinstance(event, dict) and {"event", "run", "time"} <= event.keys():
                    yield event
    except FileNotFoundError:
        return


def _take(runs: dict[str, Run], event: dict[str, Any]) -> None:
    if event["event"] == "started":
        totals = event["totals"]
        flows = {name: {"target": to, "total": totals.get(name, 0)} for name, to in event["flows"].items()}
        runs.setdefault(
            event["run"],
            Run(
                id=event["run"],
                started=event["begun"],
                process=event["process"],
                sources=event["sources"],
                flows=flows,
            ),
        )
        return
    run = runs.get(event["run"])
    if run is None:
        return
    if event["event"] == "progress":
        figures = {key: value for key, value in event.items() if key not in ("event", "run", "flow")}
        run.flows.setdefault(event["flow"], {}).update(figures)
    elif event["event"] == "ended":
        run.ended, run.state, run.error = event["time"], event["state"], event["error"]
