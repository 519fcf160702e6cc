"""`millstream consume`: the records of a topic on standard output."""

__all__ = ["consume"]

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, assert_never

import typer
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from millstream.cli.connection import (
    DEFAULT_BROKER,
    BrokerOption,
    Connection,
    PropertyOption,
    connected,
    no_such_topic,
)
from millstream.cli.errors import USAGE, CliError
from millstream.cli.lazy import discard_stdout
from millstream.cli.offsets import end_offsets, offset_ranges, offsets_at_time
from millstream.cli.reading import Ends, Outage, Stop, read_records
from millstream.cli.record_format import Render, compile_format, render_line, unescape
from millstream.cli.record_json import ReceivedRecord, format_record
from millstream.cli.start import Earliest, FromOffset, FromTime, LastRecords, Latest, Start, parse_start

EPILOG: Final = """\
\b
--from takes
  earliest, latest     all there is (the default), or only what comes from now on
  42                   the offset in each partition
  -10                  so many records before the end of each partition
  -1h, -2d12h, -90s    a time ago, in weeks, days, hours, minutes and seconds
  2026-01-31T08:00     a time in ISO 8601, local unless it has a zone
  @1769846400000       milliseconds since 1970-01-01 UTC

\b
--format knows
  %t topic    %p partition    %o offset    %k key    %v value    %h headers
  %T time in milliseconds, %d in ISO 8601    %K, %V length of key, value (-1: null)    %% a percent sign
  \\n \\t \\r \\0 \\xHH \\\\    and the letters %s, %S of kcat for %v, %V

With --group, the members of the group share the partitions, reading goes on where the group left off, and
what was written out is committed; --from only counts where nothing was committed before. Without it nothing is
committed. Ctrl-C, and a closed pipe, end the command with status 0.

\b
Examples:
  millstream consume orders
  millstream consume orders --from -1h --until-end --format '%d %k %v'
  millstream consume orders --group billing --json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is to be read. `partition` and `count_max` are None when they do not limit it."""

    topic: str
    start: Start
    partition: int | None
    group: str | None
    count_max: int | None
    until_end: bool


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    start: Annotated[
        str, typer.Option("--from", "-o", metavar="PLACE", help="Where to start, see below.")
    ] = "earliest",
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, metavar="N", help="Read this partition only.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", metavar="NAME", help="Join this consumer group, and commit."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, metavar="N", help="Stop after N records.")
    ] = None,
    until_end: Annotated[
        bool,
        typer.Option("--until-end/--follow", "-e/-f", help="Stop at the present end, or wait for more records."),
    ] = False,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="How to print a record, see below.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="Print a JSON object a line.")] = False,
    with_timestamp: Annotated[
        bool, typer.Option("--timestamp", help="Print the time and a tab before each record.")
    ] = False,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="Print the key and this before the value."),
    ] = None,
    delimiter: Annotated[
        str, typer.Option("--delimiter", "-D", metavar="TEXT", help="What ends each record.")
    ] = "\\n",
    broker: BrokerOption = DEFAULT_BROKER,
    properties: PropertyOption = None,
) -> None:
    """Read the records of a topic, and print their values, one a line."""
    if group is not None and partition is not None:
        raise CliError("--group and --partition exclude each other", "leave one out", status=USAGE)
    if group == "":
        raise CliError("--group is empty", "give the name of a group", status=USAGE)
    render = _render(format_, as_json, with_timestamp, key_separator, delimiter)
    wanted = _Wanted(
        topic=topic,
        start=_start(start, group),
        partition=partition,
        group=group,
        count_max=count,
        until_end=until_end,
    )
    with connected(broker, properties) as connection, Stop() as stop:
        try:
            _read(connection, wanted, render, stop)
        except BrokenPipeError:
            discard_stdout()


def _read(connection: Connection, wanted: _Wanted, render: Render, stop: Stop) -> None:
    ends = Ends() if wanted.until_end else None
    consumer = connection.consumer(_settings(wanted))
    try:
        found = connection.topics(consumer, wanted.topic)[wanted.topic]
        if found.error is not None:
            unknown = found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            raise no_such_topic(wanted.topic) if unknown else connection.explain(found.error)
        first_offsets: dict[int, int] = {}
        if wanted.group is None:
            first_offsets = _assign(connection, consumer, wanted, sorted(found.partitions), ends)
        else:
            _join(connection, consumer, wanted, ends)
        read_records(
            consumer,
            sys.stdout.buffer,
            render,
            count_max=wanted.count_max,
            first_offsets=first_offsets,
            ends=ends,
            stop=stop,
            outage=Outage(connection, patient=not wanted.until_end),
            commits=wanted.group is not None,
        )
        if wanted.group is not None:
            _commit(consumer)
    finally:
        consumer.close()


def _assign(
    connection: Connection, consumer: Any, wanted: _Wanted, partitions: Sequence[int], ends: Ends | None
) -> dict[int, int]:
    """Give the consumer its partitions, and return the first wanted offset of each."""
    if wanted.partition is not None:
        if wanted.partition not in partitions:
            raise CliError(
                f"topic {wanted.topic!r} has no partition {wanted.partition}",
                f"choose one from 0 to {len(partitions) - 1}",
            )
        partitions = [wanted.partition]
    admin = connection.admin()
    ranges = offset_ranges(admin, wanted.topic, partitions)
    starts = _start_offsets(admin, wanted, ranges)
    if ends is not None:
        ends.add({index: end for index, (_, end) in ranges.items()}, starts)
    # No reading starts beyond the end: such a partition is read from its end, up to the first wanted offset.
    consumer.assign(
        [TopicPartition(wanted.topic, index, min(starts[index], ranges[index][1])) for index in partitions]
    )
    return starts


def _start_offsets(admin: Any, wanted: _Wanted, ranges: dict[int, tuple[int, int]]) -> dict[int, int]:
    match wanted.start:
        case Earliest():
            return {index: first for index, (first, _) in ranges.items()}
        case Latest():
            return {index: end for index, (_, end) in ranges.items()}
        case LastRecords(count):
            return {index: max(first, end - count) for index, (first, end) in ranges.items()}
        case FromTime(timestamp_ms):
            found = offsets_at_time(admin, wanted.topic, list(ranges), timestamp_ms)
            return {index: end if (at := found[index]) is None else at for index, (_, end) in ranges.items()}
        case FromOffset(offset):
            if all(offset > end for _, end in ranges.values()):
                end = max(end for _, end in ranges.values())
                raise CliError(
                    f"offset {offset} is beyond the end of {wanted.topic!r}",
                    f"start from {end} at the latest",
                )
            return {index: max(first, offset) for index, (first, _) in ranges.items()}
        case _ as never:
            assert_never(never)


def _join(connection: Connection, consumer: Any, wanted: _Wanted, ends: Ends | None) -> None:
    """Subscribe as a member of the group. Partitions come and go from then on."""

    def assigned(_: Any, partitions: Sequence[Any]) -> None:
        if ends is not None:
            where = [(each.topic, each.partition) for each in partitions]
            found = end_offsets(connection.admin(), where)
            ends.add({partition: end for (_, partition), end in found.items()}, {})

    def revoked(_: Any, partitions: Sequence[Any]) -> None:
        if ends is not None:
            ends.drop(each.partition for each in partitions)

    consumer.subscribe([wanted.topic], on_assign=assigned, on_revoke=revoked)


def _commit(consumer: Any) -> None:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        # Nothing was read since the last commit.
        if error.args[0].code() != KafkaError._NO_OFFSET:
            raise


def _settings(wanted: _Wanted) -> dict[str, Any]:
    return {
        # The library asks for a group even where there is none; nothing is ever sent under this name.
        "group.id": wanted.group or "millstream-cli",
        "enable.auto.commit": wanted.group is not None,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "latest" if isinstance(wanted.start, Latest) else "earliest",
        "enable.partition.eof": wanted.until_end,
        "allow.auto.create.topics": False,
    }


def _render(
    format_: str | None, as_json: bool, with_timestamp: bool, key_separator: str | None, delimiter: str
) -> Render:
    shapes = {
        "--format": format_ is not None,
        "--json": as_json,
        "--timestamp or --key-separator": with_timestamp or key_separator is not None,
    }
    given = [name for name, chosen in shapes.items() if chosen]
    if len(given) > 1:
        raise CliError(f"{' and '.join(given)} exclude each other", "give one of them", status=USAGE)
    try:
        end = unescape(delimiter)
        if as_json:
            body: Render = format_record
        elif format_ is not None:
            body = compile_format(format_)
            # Who writes the delimiter at the end of the format, as kcat wants it, should not get it twice.
            if end and format_.endswith(delimiter):
                end = b""
        else:
            body = render_line(
                with_timestamp=with_timestamp,
                key_separator=None if key_separator is None else unescape(key_separator),
            )
    except ValueError as error:
        raise CliError(str(error), "see 'millstream consume --help' for what there is", status=USAGE) from error

    def render(record: ReceivedRecord) -> bytes:
        return body(record) + end

    return render


def _start(text: str, group: str | None) -> Start:
    try:
        start = parse_start(text, now=datetime.now(UTC))
    except ValueError as error:
        raise CliError(f"--from: {error}", "see 'millstream consume --help' for the forms", status=USAGE) from error
    if group is not None and not isinstance(start, Earliest | Latest):
        raise CliError(
            "a group goes on from what it has committed",
            "with --group, give --from earliest or latest",
            status=USAGE,
        )
    return start
