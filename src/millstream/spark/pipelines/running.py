"""A run of a declared pipeline: until it is drained, or until it is stopped.

Spark runs declared flows over what there is and ends. To run until stopped is to do that again and again with one
session: at once while there is more to read, and else as soon as a broker tells of new records.
"""

import re
import threading
import time
from collections.abc import Sequence
from typing import Final

from millstream.spark.errors import PipelineError, SparkSourceError
from millstream.spark.pipelines.checkpoints import read_checkpoints, rows_between
from millstream.spark.pipelines.engine import Engine
from millstream.spark.pipelines.graph import Graph
from millstream.spark.pipelines.latest import are_all_named, latest_offsets
from millstream.spark.pipelines.progress import Display, read_report
from millstream.spark.pipelines.run_log import RunLog
from millstream.spark.pipelines.spec import Spec
from millstream.spark.pipelines.stopping import StopWish

__all__ = ["DRAINED", "STOPPED", "Runner", "flow_targets"]

DRAINED: Final = "drained"
STOPPED: Final = "stopped"
_LOOK_EVERY_S: Final = 0.25
_NOT_IN_TIME: Final = "Python worker failed to connect back"
"""Spark gives a Python process ten seconds to start, which cannot be changed, and a busy machine takes longer."""
_ATTEMPTS: Final = 5
_STATE: Final = re.compile(r"Flow '?(?P<flow>[^' ]+)'? (?:is|has) (?P<state>[A-Z]+)")


class Runner:
    """Runs the definitions that an engine has loaded.

    Args:
        engine: which has defined the graph.
        spec, graph: the pipeline.
        log: its run log.
        display: where progress is shown.
        stop: whether the user wants an end.
    """

    def __init__(
        self, engine: Engine, spec: Spec, graph: Graph, log: RunLog, display: Display, stop: StopWish
    ) -> None:
        self._engine = engine
        self._spec = spec
        self._graph = graph
        self._log = log
        self._display = display
        self._stop = stop
        self._ended_batches: set[str] = set()
        engine.listen(self._take_report)

    def until_drained(self, full_refresh: Sequence[str] = (), *, full_refresh_all: bool = False) -> str:
        """Run over what there is now.

        Args:
            full_refresh: tables and sinks that are begun anew; see `checks.check_full_refresh`.
            full_refresh_all: whether all are.

        Returns:
            DRAINED, or STOPPED.

        Raises:
            PipelineError: a flow failed.
        """
        outcome: list[SparkSourceError] = []
        self._ended_batches.clear()

        def run() -> None:
            try:
                if full_refresh or full_refresh_all:
                    # What was begun anew must not be begun anew once more, so that this is not tried again.
                    self._engine.run(self._tell, full_refresh=full_refresh, full_refresh_all=full_refresh_all)
                else:
                    self._run_patiently()
            except SparkSourceError as error:
                outcome.append(error)

        thread = threading.Thread(target=run, name="pipeline-run")
        thread.start()
        waited_for: set[str] | None = None
        while thread.is_alive():
            thread.join(_LOOK_EVERY_S)
            if self._stop.is_wished:
                if waited_for is None:
                    waited_for = set(self._engine.active_queries())
                    self._ended_batches.clear()
                    self._display.note("stopping at the end of the batches that are going on")
                waited_for = self._stop_what_may(waited_for)
        self._engine.settle()
        if waited_for is not None:
            return STOPPED
        if outcome:
            raise outcome[0]
        return DRAINED

    def until_stopped(self, interval_s: float) -> str:
        """Run again and again.

        Args:
            interval_s: how often brokers are asked for new records, while there are none.

        Returns:
            STOPPED.

        Raises:
            PipelineError: a flow failed.
        """
        while not self._stop.is_wished:
            start_s = time.monotonic()
            self.until_drained()
            while not self._stop.wait(max(0.0, start_s + interval_s - time.monotonic())) and not self._has_news():
                self._display.note("waiting for new records")
                start_s = time.monotonic()
            self._display.note("")
        return STOPPED

    def _run_patiently(self) -> None:
        """Run over what there is, and again if Spark could not start its Python processes in time."""
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                self._engine.run(self._tell)
            except PipelineError as error:
                if _NOT_IN_TIME not in error.what or not attempts_left or self._stop.is_wished:
                    raise
                self._display.note("this machine is busy: Spark's Python processes did not start in time; once more")
            else:
                return

    def _stop_what_may(self, waited_for: set[str]) -> set[str]:
        """Stop each query that has finished a batch since the wish, and all of them when it is time."""
        active = self._engine.active_queries()
        is_due = self._stop.is_due
        for run_id, query in active.items():
            if run_id in self._ended_batches or is_due:
                query.stop()
        left = {run_id for run_id in waited_for & active.keys() if run_id not in self._ended_batches}
        if not left or is_due:
            # Flows that have not begun yet, or were begun meanwhile.
            problem = self._engine.stop_flows()
            if problem:
                self._display.note(f"a flow does not stop yet: {problem}")
        return left

    def _has_news(self) -> bool:
        """Whether there may be something to read; True if that cannot be told."""
        sources = self._engine.sources.sources
        directory = self._spec.storage_dir
        if directory is None or not sources or not are_all_named(sources):
            return True
        checkpoints = [one for one in read_checkpoints(directory) if one.position]
        if not checkpoints or any(one.is_open for one in checkpoints):
            return True
        topics = {topic for one in checkpoints for topic in one.position}
        latest, problems = latest_offsets(sources, topics)
        for problem in problems:
            self._display.note(problem)
        return any(
            rows_between(one.position, {topic: latest[topic] for topic in one.position if topic in latest})
            for one in checkpoints
        )

    def _tell(self, message: str) -> None:
        """Take what the run says."""
        found = _STATE.search(message)
        if found is not None:
            self._display.state(found["flow"], found["state"].lower())

    def _take_report(self, text: str) -> None:
        """Take the report of a batch."""
        report = read_report(text)
        self._ended_batches.add(report.run_id)
        self._display.batch(report)
        self._log.progress(
            report.flow,
            report.rows,
            batch=report.batch,
            duration_s=report.duration_s,
            rows_per_s=round(report.rows_per_s),
            lag=report.lag,
        )


def flow_targets(graph: Graph, root: str) -> dict[str, str]:
    """Where each flow goes, in words, by its name; directories below the project's are told relative to it."""
    places = {table.name: table.name for table in graph.tables}
    for sink in graph.sinks:
        path = sink.options.get("path", "").removeprefix("file://")
        place = path.removeprefix(root.rstrip("/") + "/") or sink.options.get("topic") or sink.format
        places[sink.name] = f"{sink.name} ({place})"
    return {flow.name: places[flow.target] for flow in graph.flows}
