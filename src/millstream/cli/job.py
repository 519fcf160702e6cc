"""`millstream job`: jobs on the log itself, on Spark."""

__all__ = ["job"]

import contextlib
import importlib.util
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Final

import typer

from millstream.cli.errors import USAGE, CliError
from millstream.cli.lazy import CommandGroup
from millstream.cli.option_groups import with_groups
from millstream.cli.output import print_section
from millstream.cli.spark_options import OtherBroker, SourceBroker, SparkOptions, Writing, servers_of
from millstream.cli.start import Earliest, FromOffset, FromTime, Latest, parse_start
from millstream.spark.errors import SparkSourceError

job = typer.Typer(
    name="job",
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    help="Archive, replay, backfill, compact, re-partition and copy topics, on Spark.",
)

_MANY: Final = 1_000_000

CheckpointOption = Annotated[
    str,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="A local directory where the job remembers how far it is; run again with it, it goes on there.",
    ),
]
TopicsArgument = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Names of topics.")]
TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
CopyArgument = Annotated[
    str, typer.Argument(metavar="COPY", help="Name of the topic to write; made if it is missing.")
]
TableOption = Annotated[str | None, typer.Option("--table", metavar="DIR", help="Directory of the table.")]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="parquet|delta|iceberg", help="Of the table.  [default: that it has, or parquet]"
    ),
]
RowsOption = Annotated[int, typer.Option("--batch-rows", metavar="N", min=1, help="Rows that are written at once.")]
FollowOption = Annotated[
    bool, typer.Option("--follow", help="Go on until stopped; else end with what there is at the beginning.")
]
_END: Final = """\
The last line tells the rows and batches that were written, and whether the job is complete or was stopped. When the
output is no terminal, each batch is a line: batch, job, number, rows, rows/s, seconds, lag.

\b
Examples:
"""


@job.command(
    "archive",
    epilog=_END
    + """\
  millstream job archive orders --table /data/orders --format delta --checkpoint /data/orders.job
  millstream job archive orders payments --table /data/all --checkpoint /data/all.job --follow
""",
)
@with_groups
def archive(
    topics: TopicsArgument,
    checkpoint: CheckpointOption,
    table: Annotated[str, typer.Option("--table", metavar="DIR", help="Directory of the table.")],
    table_format: FormatOption = None,
    start: Annotated[
        str, typer.Option("--from", metavar="earliest|latest|JSON", help="Where a new archive begins.")
    ] = "earliest",
    batch_rows: RowsOption = _MANY,
    follow: FollowOption = False,
    *,
    at: SourceBroker,
    on: SparkOptions,
) -> None:
    """Write topics into a table: all of each record, and where it was."""
    servers = at.servers
    with _spark(on.master) as spark:
        from millstream.spark.jobs import archive as run

        _tell(
            run(
                spark, servers=servers, topics=topics, path=table, checkpoint=checkpoint, table_format=table_format,
                start=start, batch_rows=batch_rows, follows=follow, shows_progress=True,
            )
        )  # fmt: skip


@job.command(
    "replay",
    epilog=_END
    + """\
  millstream job replay /data/orders --checkpoint /data/again.job
  millstream job replay /data/all --source-topic orders --topic orders-again --checkpoint /data/again.job
""",
)
@with_groups
def replay(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="Directory of a table that 'job archive' has written.")
    ],
    checkpoint: CheckpointOption,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="NAME", help="Where to.  [default: where each record was]")
    ] = None,
    source_topic: Annotated[
        str | None, typer.Option("--source-topic", metavar="NAME", help="Whose records.  [default: all]")
    ] = None,
    table_format: FormatOption = None,
    offset_header: Annotated[
        str | None, typer.Option("--offset-header", metavar="NAME", help="Add a header with the offset it had.")
    ] = None,
    batch_rows: RowsOption = _MANY // 2,
    *,
    writing: Writing,
    at: SourceBroker,
    on: SparkOptions,
) -> None:
    """Write the records of an archive back into topics, as they were."""
    servers = at.servers
    with _spark(on.master) as spark:
        from millstream.spark.jobs import replay as run

        _tell(
            run(
                spark, path=table, servers=servers, checkpoint=checkpoint, topic=topic, source_topic=source_topic,
                table_format=table_format, offset_header=offset_header, batch_rows=batch_rows,
                sink_options=writing.sink_options, shows_progress=True,
            )
        )  # fmt: skip


@job.command(
    "backfill",
    epilog=_END
    + """\
  millstream job backfill orders --from 2026-01-01 --until 2026-02-01 --table /data/january --checkpoint /data/b.job
  millstream job backfill orders --from 1000 --until 2000 --topic orders-part --checkpoint /data/b.job
""",
)
@with_groups
def backfill(
    source: TopicArgument,
    checkpoint: CheckpointOption,
    table: TableOption = None,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="NAME", help="A topic to write, not a table.")
    ] = None,
    start: Annotated[
        str,
        typer.Option("--from", metavar="START", help="The first: earliest, an offset, or a time as for 'consume'."),
    ] = "earliest",
    until: Annotated[
        str, typer.Option("--until", metavar="END", help="The first that is not: latest, an offset, or a time.")
    ] = "latest",
    table_format: FormatOption = None,
    batch_rows: RowsOption = _MANY,
    *,
    writing: Writing,
    at: SourceBroker,
    to: OtherBroker,
    on: SparkOptions,
) -> None:
    """Write a range of a topic, by offsets or by time, into a table or another topic."""
    if (table is None) == (topic is None):
        raise CliError("a backfill goes into one place", "give --table or --topic", status=USAGE)
    first, behind = _bound("--from", start), _bound("--until", until)
    servers, to_servers = at.servers, to.servers(at)
    with _spark(on.master) as spark:
        from millstream.spark.jobs import backfill as run
        from millstream.spark.jobs import table_sink, topic_sink

        sink = (
            topic_sink(to_servers, topic, writing.sink_options) if table is None else table_sink(table, table_format)
        )
        _tell(
            run(
                spark, servers=servers, topic=source, sink=sink, checkpoint=checkpoint, start=first, end=behind,
                batch_rows=batch_rows, shows_progress=True,
            )
        )  # fmt: skip


@job.command(
    "compact", epilog=_END + "  millstream job compact orders orders-latest --checkpoint /data/compact.job\n"
)
@with_groups
def compact(
    source: TopicArgument,
    copy_name: CopyArgument,
    checkpoint: CheckpointOption,
    keep_tombstones: Annotated[
        bool, typer.Option("--keep-tombstones", help="Copy records without a value where they are the latest.")
    ] = False,
    drop_unkeyed: Annotated[bool, typer.Option("--drop-unkeyed", help="Leave out records without a key.")] = False,
    *,
    writing: Writing,
    at: SourceBroker,
    to: OtherBroker,
    on: SparkOptions,
) -> None:
    """Write the latest record of every key into another topic."""
    servers, to_servers = at.servers, to.servers(at)
    with _spark(on.master) as spark:
        from millstream.spark.jobs import compact as run

        _tell(
            run(
                spark, servers=servers, topic=source, to=copy_name, checkpoint=checkpoint, to_servers=to_servers,
                keeps_tombstones=keep_tombstones, drops_unkeyed=drop_unkeyed,
                sink_options=writing.sink_options, shows_progress=True,
            )
        )  # fmt: skip


@job.command(
    "repartition",
    epilog=_END
    + "  millstream job repartition orders orders-12 --partitions 12 --checkpoint /data/repartition.job\n",
)
@with_groups
def repartition(
    source: TopicArgument,
    copy_name: CopyArgument,
    checkpoint: CheckpointOption,
    partitions: Annotated[int, typer.Option("--partitions", metavar="N", min=1, help="Of the copy.")],
    partitioner: Annotated[
        str, typer.Option("--partitioner", metavar="NAME", help="By which hash of keys.")
    ] = "murmur2_random",
    batch_rows: RowsOption = _MANY,
    follow: FollowOption = False,
    *,
    writing: Writing,
    at: SourceBroker,
    to: OtherBroker,
    on: SparkOptions,
) -> None:
    """Copy a topic into one with another number of partitions, by key."""
    servers, to_servers = at.servers, to.servers(at)
    with _spark(on.master) as spark:
        from millstream.spark.jobs import repartition as run

        _tell(
            run(
                spark, servers=servers, topic=source, to=copy_name, partitions=partitions, checkpoint=checkpoint,
                partitioner=partitioner, to_servers=to_servers, batch_rows=batch_rows,
                sink_options=writing.sink_options, follows=follow, shows_progress=True,
            )
        )  # fmt: skip


@job.command(
    "copy",
    epilog=_END
    + """\
  millstream job copy orders payments --to-broker backup:9092 --checkpoint /data/copy.job --follow
""",
)
@with_groups
def copy(
    topics: TopicsArgument,
    checkpoint: CheckpointOption,
    to_broker: Annotated[str, typer.Option("--to-broker", metavar="HOST:PORT", help="Where to write.")],
    to_properties: Annotated[
        list[str] | None,
        typer.Option("--to-property", metavar="KEY=VALUE", help="How to speak to that broker. Repeatable."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Name of the copy of one topic.  [default: the same]")
    ] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="earliest|latest|JSON", help="Where a new copy begins.")
    ] = "earliest",
    batch_rows: RowsOption = _MANY,
    follow: FollowOption = False,
    *,
    writing: Writing,
    at: SourceBroker,
    on: SparkOptions,
) -> None:
    """Copy topics to another broker, partition by partition."""
    servers, to_servers = at.servers, servers_of(to_broker, to_properties, "--to-property")
    with _spark(on.master) as spark:
        from millstream.spark.jobs import copy as run

        _tell(
            run(
                spark, servers=servers, topics=topics, to_servers=to_servers, checkpoint=checkpoint, to=name,
                start=start, batch_rows=batch_rows, sink_options=writing.sink_options, follows=follow,
                shows_progress=True,
            )
        )  # fmt: skip


@contextlib.contextmanager
def _spark(master: str | None) -> Iterator[Any]:
    """A Spark session, and the errors of jobs in the words of the command line."""
    if importlib.util.find_spec("pyspark") is None:
        raise CliError("Spark is not installed", "run pip install 'millstream[spark]'")
    from pyspark.errors import PySparkException

    from millstream.spark.jobs.session import job_session
    from millstream.spark.pipelines.messages import one_line

    try:
        with job_session(master) as spark:
            yield spark
    except SparkSourceError as error:
        what, _, remedy = str(error).rpartition("; ")
        raise CliError(what or str(error), remedy if what else "see 'millstream job --help'") from None
    except PySparkException as error:
        raise CliError(one_line(str(error)), "mend that and run it again") from None


def _bound(option: str, text: str) -> int | datetime | None:
    """An end of a range. Raises CliError."""
    try:
        point = parse_start(text, now=datetime.now().astimezone())
    except ValueError as error:
        raise CliError(
            f"{option}: {error}", f"see 'millstream job backfill --help' for {option}", status=USAGE
        ) from None
    match point:
        case FromOffset():
            return point.offset
        case FromTime():
            return datetime.fromtimestamp(point.timestamp_ms / 1000).astimezone()
        case Earliest() if option == "--from":
            return None
        case Latest() if option == "--until":
            return None
    raise CliError(f"{option} cannot be {text}", "give an offset or a time", status=USAGE)


def _tell(end: Any) -> None:
    state = "complete" if end.is_complete else "stopped"
    print_section("done", ("rows", "batches", "state"), [(end.rows, end.batches, state)])
