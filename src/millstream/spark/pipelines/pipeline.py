"""A declared pipeline in a program: what `millstream pipeline run` does, step by step.

with Pipeline("shop") as pipeline:
    pipeline.run(until_drained=True)
    pipeline.session.read.format("millstream-table").load("shop/tables/events").show()
"""

import contextlib
import sys
import warnings
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from millstream.spark.errors import PipelineError, SparkSourceError
from millstream.spark.pipelines.checks import check_definitions, check_full_refresh
from millstream.spark.pipelines.engine import Engine
from millstream.spark.pipelines.graph import Graph
from millstream.spark.pipelines.progress import Display
from millstream.spark.pipelines.run_log import RunLog
from millstream.spark.pipelines.running import Runner, flow_targets
from millstream.spark.pipelines.spec import find_spec, load_spec
from millstream.spark.pipelines.stopping import StopWish

__all__ = ["Pipeline", "PipelineEnd", "load_safe"]


class PipelineEnd(NamedTuple):
    """How a run has ended.

    Args:
        state: drained or stopped.
        rows: that all flows have read together.
    """

    state: str
    rows: int


class Pipeline:
    """A pipeline that nobody else runs meanwhile, and a Spark for it; a context. There is one in a process, and no
    other Spark session.

    Args:
        project: its directory or spark-pipeline.yml; None for this directory or one above.
        master: where Spark runs; None for what the description says, or else all cores of this machine.
        warn: is told what may surprise, a line each; None for a Python warning.

    Raises:
        PipelineError: there is no such project, or its description is none.
    """

    def __init__(
        self, project: str | None = None, *, master: str | None = None, warn: Callable[[str], None] | None = None
    ) -> None:
        self.spec = load_spec(find_spec(project))
        self._master = master
        self._warn = warn or warnings.warn
        self._stack = contextlib.ExitStack()
        self._graph: Graph | None = None

    def __enter__(self) -> Self:
        """Start Spark, which may be done on a thread of its own. Raises JavaMissing, PipelineBusy, PipelineError."""
        with contextlib.ExitStack() as stack:
            self._log = stack.enter_context(RunLog(self.spec.state_dir))
            self._engine = stack.enter_context(Engine(self.spec, self._master))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def session(self) -> Any:
        """The session of Spark Connect that definitions are loaded with; for whatever else is to be asked."""
        return self._engine.session

    def load(self) -> Graph:
        """Load the definitions and look whether they are safe, once.

        Returns:
            What they come to.

        Raises:
            PipelineError: they cannot be loaded, or could lose or double rows.
        """
        if self._graph is None:
            self._graph = load_safe(self._engine, self._warn)
        return self._graph

    def run(
        self,
        *,
        until_drained: bool = False,
        interval_s: float = 1.0,
        full_refresh: Sequence[str] = (),
        full_refresh_all: bool = False,
        out: IO[str] | None = None,
        stop: StopWish | None = None,
    ) -> PipelineEnd:
        """Run until stopped, by SIGTERM and SIGINT unless another way is given, or until all there is has been read.

        Args:
            until_drained: whether to end with what there is when the run begins.
            interval_s: seconds between two looks for new records, at least.
            full_refresh: tables and sinks that are begun anew.
            full_refresh_all: whether all are.
            out: where progress is shown; None for standard output.
            stop: another way to ask for an end than signals.

        Raises:
            PipelineError: the definitions are not safe, something may not be begun anew, or a flow has failed.
        """
        graph = self.load()
        _raise_first(check_full_refresh(graph, full_refresh, everything=full_refresh_all), self._warn)
        targets = flow_targets(graph, self.spec.root)
        with contextlib.ExitStack() as stack:
            wish = stop or stack.enter_context(StopWish())
            self._log.started(self._engine.sources.sources, targets)
            state, error = "failed", None
            try:
                with Display(out or sys.stdout, self.spec.name, targets) as display:
                    runner = Runner(self._engine, self.spec, graph, self._log, display, wish)
                    state = runner.until_drained(full_refresh, full_refresh_all=full_refresh_all)
                    if not until_drained:
                        state = runner.until_stopped(interval_s)
            except SparkSourceError as failure:
                error = str(failure)
                raise
            finally:
                self._log.ended(state, error)
        return PipelineEnd(state, self._log.rows)


def load_safe(engine: Engine, warn: Callable[[str], None]) -> Graph:
    """Load definitions and look whether they are safe.

    Args:
        engine: which loads them.
        warn: is told what may surprise, and all that is wrong but the first.

    Raises:
        PipelineError: they cannot be loaded, or could lose or double rows.
    """
    graph = engine.define()
    _raise_first(check_definitions(graph), warn)
    for flow in engine.sources.latest:
        warn(
            f"{flow} begins at the end of its topics when it first runs; set startingOffsets to earliest to read all"
        )
    return graph


def _raise_first(problems: list[PipelineError], warn: Callable[[str], None]) -> None:
    for problem in problems[1:]:
        warn(str(problem))
    if problems:
        raise problems[0]
