"""Running jobs: as a stream that reads what there is, or piece by piece."""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from millstream.spark.errors import JobError, PipelineError
from millstream.spark.jobs.state import JobState
from millstream.spark.pipelines.messages import one_line
from millstream.spark.pipelines.progress import Display, Report
from millstream.spark.pipelines.queries import run_queries
from millstream.spark.pipelines.stopping import StopWish
from millstream.spark.servers import Servers

__all__ = ["TABLE", "TOPIC", "JobEnd", "Sink", "run_pieces", "run_stream", "table_sink", "topic_sink"]

TABLE: Final = "millstream-table"
TOPIC: Final = "millstream"
_ROWS: Final = "rows"
_NOT_IN_TIME: Final = "Python worker failed to connect back"
"""What Spark says when the Python process of a stream's source was not up in 10 s, as it may be on a busy machine."""
_STARTS_MAX: Final = 3


class JobEnd(NamedTuple):
    """What a run of a job has done.

    Args:
        rows: written in this run.
        batches: micro-batches or pieces, likewise.
        is_complete: whether there is nothing left to do of what there was when it began; else it was stopped.
    """

    rows: int
    batches: int
    is_complete: bool


class Sink(NamedTuple):
    """Where a job writes.

    Args:
        format: of Spark.
        options: of that format.
        name: for people.
    """

    format: str
    options: Mapping[str, str]
    name: str


def table_sink(path: str, table_format: str | None, options: Mapping[str, str] | None = None) -> Sink:
    """A table.

    Args:
        path: its directory.
        table_format: parquet, delta or iceberg; None for that of the table that is there, or Parquet.
        options: further options of the format `millstream-table`.
    """
    chosen = {} if table_format is None else {"tableFormat": table_format}
    return Sink(TABLE, {"path": path, **chosen, **(options or {})}, path)


def topic_sink(servers: str | Servers, topic: str | None, options: Mapping[str, str] | None = None) -> Sink:
    """A topic.

    Args:
        servers: brokers; as text, those that let everybody in.
        topic: None if the rows say so.
        options: further options of the format `millstream`.
    """
    chosen = {} if topic is None else {"topic": topic}
    return Sink(TOPIC, {**Servers.at(servers).options, **chosen, **(options or {})}, topic or str(servers))


def run_stream(frame: Any, sink: Sink, state: JobState, *, name: str, follows: bool, shows_progress: bool) -> JobEnd:
    """Write a stream into a sink, from where the job's checkpoint is.

    Args:
        frame: the stream.
        sink: where it goes.
        state: of the job.
        name: of the job, for people.
        follows: whether it goes on when it has written all there is, until it is stopped.
        shows_progress: whether standard output shows how it comes along.

    Raises:
        JobError: it failed; run again, it goes on where it was.
    """
    writer = (
        frame.writeStream.format(sink.format)
        .options(**sink.options)
        .option("checkpointLocation", state.spark_checkpoint)
        .queryName(name)
    )
    for tries_left in reversed(range(_STARTS_MAX)):
        try:
            [end] = run_queries([writer], until_drained=not follows, shows_progress=shows_progress)
        except PipelineError as error:
            if _NOT_IN_TIME not in str(error) or not tries_left:
                raise JobError(str(error)) from None
        else:
            return JobEnd(end.rows, end.batches, end.is_drained)
    raise AssertionError("the last try returns or raises")


def run_pieces(
    pieces: Sequence[Any],
    read: Callable[[Any], Any],
    sink: Sink,
    state: JobState,
    *,
    name: str,
    shows_progress: bool,
) -> JobEnd:
    """Write a table into a sink piece by piece, each once, from the first that is not finished.

    Each is written under its number, which the sink's ledger remembers. SIGTERM and SIGINT end it between two pieces.

    Args:
        pieces: what `read` makes a DataFrame of, one after the other; the same in every run of the job.
        read: reads a piece.
        sink, state, name, shows_progress: as for `run_stream`.

    Raises:
        JobError: a piece failed; run again, the job goes on with it.
    """
    from pyspark.errors import PySparkException

    rows, first = 0, state.done
    with contextlib.ExitStack() as stack:
        wish, display = stack.enter_context(StopWish()), None
        if shows_progress:
            display = stack.enter_context(Display(sys.stdout, name, {name: sink.name}))
            display.state(name, "running")
        for number in range(first, len(pieces)):
            if wish.is_wished:
                break
            start_s = time.monotonic()
            try:
                written = _write(read(pieces[number]), sink, state.application_id, number)
            except PySparkException as error:
                raise JobError(f"{name} failed: {one_line(str(error))}; mend that and run it again") from None
            state.finish(number)
            rows += written
            if display is not None:
                display.batch(_report(name, number, written, time.monotonic() - start_s))
    return JobEnd(rows, state.done - first, state.done == len(pieces))


def _write(frame: Any, sink: Sink, application_id: str, number: int) -> int:
    """Write one piece; returns how many rows it has."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observation = Observation()
    (
        frame.observe(observation, F.count(F.lit(1)).alias(_ROWS))
        .write.format(sink.format)
        .options(**sink.options, applicationId=application_id, batchId=str(number))
        .mode("append")
        .save()
    )
    return int(observation.get[_ROWS])


def _report(name: str, number: int, rows: int, duration_s: float) -> Report:
    return Report(flow=name, run_id="", batch=number, rows=rows, duration_s=duration_s, lag=None, position={})
