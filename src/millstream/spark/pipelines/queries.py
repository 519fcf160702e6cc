"""Plain Structured Streaming queries, run together as one pipeline.

    run_queries([orders.writeStream.format("millstream-table")..., totals.writeStream...], until_drained=True)

What each query needs for exactly-once output is a checkpoint, and a sink that keeps a ledger.
"""

import contextlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from millstream.spark.errors import PipelineError
from millstream.spark.pipelines.messages import one_line
from millstream.spark.pipelines.progress import Display, Report, read_report
from millstream.spark.pipelines.stopping import BATCH_END_TIMEOUT_S, StopWish

__all__ = ["QueryEnd", "run_queries"]

_LOOK_EVERY_S: Final = 0.25


@dataclass(slots=True)
class QueryEnd:
    """What became of a query.

    Args:
        name: of the query.
        is_drained: it has read all there was when it began; else it was stopped.
        batches, rows: finished in this run.
        last: what was reported of the last batch; None if there was none.
    """

    name: str
    is_drained: bool = False
    batches: int = 0
    rows: int = 0
    last: Report | None = None


def run_queries(
    writers: Sequence[Any],
    *,
    until_drained: bool = False,
    interval_s: float = 0.0,
    shows_progress: bool = True,
    stop: StopWish | None = None,
) -> list[QueryEnd]:
    """Run streaming queries side by side, until they are stopped or have nothing more to read.

    Each goes on where its checkpoint says. SIGTERM and SIGINT stop all of them, each at the end of the batch that is
    going on; a batch that has not ended in a minute is given up, and comes again at the next start. When one fails,
    the others are stopped in the same way.

    Args:
        writers: DataStreamWriters with a query name and a checkpoint, not started; their trigger is set here.
        until_drained: whether they end with what there is when they begin (Spark's Trigger.AvailableNow).
        interval_s: seconds from the begin of one batch to that of the next at least.
        shows_progress: whether standard output shows rows, rows/s, batch time and lag.
        stop: another way to ask for an end than signals.

    Returns:
        The end of each query, in the order of the writers.

    Raises:
        PipelineError: a query failed, or could not be started.
    """
    if not writers:
        raise PipelineError("there are no queries to run", "pass what df.writeStream... gives, without start()")
    trigger = (
        {"availableNow": True} if until_drained else {"processingTime": f"{int(interval_s * 1000)} milliseconds"}
    )
    queries: list[Any] = []
    with contextlib.ExitStack() as stack:
        wish = stop or stack.enter_context(StopWish(BATCH_END_TIMEOUT_S))
        stack.callback(_stop_all, queries)
        # One by one, so that those which have started are stopped when the next does not start.
        queries.extend(_start(writer.trigger(**trigger)) for writer in writers)
        ends = [QueryEnd(query.name or str(query.id)) for query in queries]
        display = None
        if shows_progress:
            display = stack.enter_context(Display(sys.stdout, "queries", {end.name: "-" for end in ends}))
        _watch(queries, ends, wish, display)
    return ends


def _start(writer: Any) -> Any:
    from pyspark.errors import PySparkException

    try:
        return writer.start()
    except PySparkException as error:
        raise PipelineError(
            f"a query does not start: {one_line(str(error))}", "mend its definition or its options"
        ) from None


def _watch(queries: Sequence[Any], ends: Sequence[QueryEnd], wish: StopWish, display: Display | None) -> None:
    """Follow the queries until all have ended."""
    seen = dict.fromkeys(ends_by_name(ends), -1)
    wished_at: dict[str, int] | None = None
    while True:
        active = [query.isActive for query in queries]
        for query, end in zip(queries, ends, strict=True):
            _take_reports(query, end, seen, display)
        failed = [query for query, is_active in zip(queries, active, strict=True) if not is_active and _fault(query)]
        if failed:
            wish.wish()
        if wish.is_wished and wished_at is None:
            wished_at = dict(seen)
            if display is not None:
                display.note("stopping at the end of the batches that are going on")
        for query, end, is_active in zip(queries, ends, active, strict=True):
            if is_active and wished_at is not None and (_is_between(query, end, seen, wished_at) or wish.is_due):
                query.stop()
        if not any(active):
            break
        time.sleep(_LOOK_EVERY_S)
    for query, end in zip(queries, ends, strict=True):
        fault = _fault(query)
        if fault:
            raise PipelineError(
                f"the query {end.name} failed: {fault}", "mend that and run it again: it goes on there"
            )
        end.is_drained = not wish.is_wished


def ends_by_name(ends: Sequence[QueryEnd]) -> dict[str, QueryEnd]:
    """The ends by the names of their queries. Raises PipelineError if two have one name."""
    by_name = {end.name: end for end in ends}
    if len(by_name) < len(ends):
        raise PipelineError("two queries have the same name", "give each its own queryName")
    return by_name


def _take_reports(query: Any, end: QueryEnd, seen: dict[str, int], display: Display | None) -> None:
    for progress in query.recentProgress:
        text = progress.json
        report = read_report(text() if callable(text) else text)
        is_new = report.batch > seen[end.name]
        # A trigger that found nothing to do reports the batch that would be next.
        if not is_new or not report.duration_s or "addBatch" not in progress.durationMs:
            continue
        seen[end.name] = report.batch
        end.batches, end.rows, end.last = end.batches + 1, end.rows + report.rows, report
        if display is not None:
            display.batch(report)
            display.state(end.name, "running")


def _is_between(query: Any, end: QueryEnd, seen: dict[str, int], wished_at: dict[str, int]) -> bool:
    """Whether a batch has ended since the wish, or none is going on."""
    return seen[end.name] > wished_at[end.name] or not query.status["isTriggerActive"]


def _fault(query: Any) -> str:
    error = query.exception()
    return one_line(str(error)) if error is not None else ""


def _stop_all(queries: Sequence[Any]) -> None:
    for query in queries:
        if query.isActive:
            query.stop()
