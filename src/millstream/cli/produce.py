"""`millstream produce`: lines, JSON lines or files to records of a topic."""

__all__ = ["produce"]

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, BinaryIO, Final

import typer
from confluent_kafka import KafkaError

from millstream.cli.connection import (
    DEFAULT_BROKER,
    BrokerOption,
    Connection,
    PropertyOption,
    connected,
    no_such_topic,
    parse_pairs,
)
from millstream.cli.errors import INTERRUPTED, USAGE, CliError
from millstream.cli.record_format import unescape
from millstream.cli.record_json import Headers, Outgoing, parse_record
from millstream.cli.sending import Sender

EPILOG: Final = """\
A line is the value of a record, without its line feed. With --key-separator, what stands before its first
occurrence is the key; a line without it has no key. Separators may hold \\t, \\n, \\0 and \\xHH. A null value
(a tombstone) can be written with --jsonl. Records keep their order; should a request have to be repeated
because its answer was lost, some may be written twice, unless --idempotent is given.

\b
Examples:
  echo hello | millstream produce greetings
  printf 'a=1\\nb=2\\n' | millstream produce settings --key-separator =
  millstream produce images --file cat.jpeg --key cat
  millstream consume orders --json --until-end | millstream produce orders-copy --jsonl
"""

# A line longer than this is more likely a binary file than a record, and would fill the memory.
_RECORD_SIZE_BYTES_MAX: Final = 128 << 20
# How long a broker that creates topics on demand may take to do so.
_AUTO_CREATION_TIMEOUT_S: Final = 3.0


class Compression(StrEnum):
    """Codecs of a record batch."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Who has to have a record before it counts as written."""

    NOBODY = "0"
    LEADER = "1"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """How input becomes records."""

    key: bytes | None
    key_separator: bytes | None
    headers: Headers
    partition: int | None
    keep_partition: bool


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    key: Annotated[str | None, typer.Option("--key", "-k", metavar="TEXT", help="Key of every record.")] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="What separates key and value in a line."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="KEY=VALUE", help="A header of every record. Repeatable."),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, metavar="N", help="Write to this partition only."),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="PATH", help="Write a file as one record ('-': all input). Repeatable."),
    ] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Read JSON lines, as 'consume --json' prints them.")] = False,
    keep_partition: Annotated[
        bool,
        typer.Option("--keep-partition", help="With --jsonl: write to the partition that the line names."),
    ] = False,
    compression: Annotated[Compression, typer.Option("--compression", "-z", help="Codec.")] = Compression.NONE,
    acks: Annotated[Acks, typer.Option("--acks", help="Acknowledgement to wait for.")] = Acks.ALL,
    idempotent: Annotated[
        bool,
        typer.Option("--idempotent", help="Never write a record twice, with --acks all. Starts half a second later."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no progress.")] = False,
    broker: BrokerOption = DEFAULT_BROKER,
    properties: PropertyOption = None,
) -> None:
    """Write records from standard input, one a line, to a topic."""
    _refuse_together(("--key", key), ("--key-separator", key_separator), ("--jsonl", jsonl or None))
    _refuse_together(("--file", file), ("--key-separator", key_separator), ("--jsonl", jsonl or None))
    _refuse_together(("--partition", partition), ("--keep-partition", keep_partition or None))
    if idempotent and acks is not Acks.ALL:
        raise CliError("--idempotent needs --acks all", "leave out --acks", status=USAGE)
    shape = _Shape(
        key=None if key is None else key.encode(),
        key_separator=_separator(key_separator),
        headers=[(name, value.encode()) for name, value in parse_pairs(header, "--header")],
        partition=partition,
        keep_partition=keep_partition,
    )
    if file:
        records = _from_files(file, shape)
    elif jsonl:
        records = _from_json_lines(sys.stdin.buffer, shape)
    else:
        records = _from_lines(sys.stdin.buffer, shape)
    if not file and not quiet and sys.stdin.isatty():
        print("reading records from the terminal, one a line; Ctrl-D ends", file=sys.stderr)
    with connected(broker, properties) as connection:
        producer = connection.producer(_settings(compression, acks, idempotent=idempotent))
        partition_count = _prepare(producer, connection, topic)
        if partition is not None and partition >= partition_count:
            raise CliError(
                f"topic {topic!r} has no partition {partition}", f"choose one from 0 to {partition_count - 1}"
            )
        progress = not quiet and sys.stderr.isatty() and not sys.stdin.isatty()
        _send_all(records, Sender(producer, connection, topic, show_progress=progress), quiet=quiet)


def _send_all(records: Iterator[Outgoing], sender: Sender, *, quiet: bool) -> None:
    interrupted = False
    try:
        for record in records:
            sender.send(record)
    except KeyboardInterrupt:
        # What was read before is written before the command ends.
        interrupted = True
    except CliError:
        # A bad line ends the input; the records before it are on their way, so wait for them.
        sender.finish()
        raise
    sender.finish()
    if not quiet:
        noun = "record" if sender.record_count == 1 else "records"
        print(
            f"produced {sender.record_count} {noun}, {sender.byte_count} bytes in {sender.elapsed_s:.2f} s",
            file=sys.stderr,
        )
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _settings(compression: Compression, acks: Acks, *, idempotent: bool) -> dict[str, Any]:
    return {
        "acks": acks.value,
        "compression.type": compression.value,
        # Off unless asked for: the library often takes half a second to get a producer id.
        "enable.idempotence": idempotent,
        # A request that is repeated would otherwise be overtaken by the next one.
        "max.in.flight.requests.per.connection": 1,
        # The same key goes to the same partition as with the Java client.
        "partitioner": "murmur2_random",
        "delivery.report.only.error": True,
        # How large a record may be is for the broker to say.
        "message.max.bytes": _RECORD_SIZE_BYTES_MAX + (1 << 20),
        "allow.auto.create.topics": True,
    }


def _prepare(producer: Any, connection: Connection, topic: str) -> int:
    """Return how many partitions the topic has; a broker that creates topics on demand does it now."""
    deadline = time.monotonic() + _AUTO_CREATION_TIMEOUT_S
    while True:
        found = connection.topics(producer, topic)[topic]
        if found.error is None:
            return len(found.partitions)
        if found.error.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE):
            raise connection.explain(found.error)
        if time.monotonic() > deadline:
            raise no_such_topic(topic)
        time.sleep(0.1)


def _from_lines(stream: BinaryIO, shape: _Shape) -> Iterator[Outgoing]:
    for _, line in _lines(stream):
        key, value = shape.key, line
        if shape.key_separator is not None:
            before, separator, after = line.partition(shape.key_separator)
            if separator:
                key, value = before, after
        yield Outgoing(value=value, key=key, headers=shape.headers, partition=shape.partition)


def _from_json_lines(stream: BinaryIO, shape: _Shape) -> Iterator[Outgoing]:
    for number, line in _lines(stream):
        if not line.strip():
            continue
        try:
            record = parse_record(line)
        except ValueError as error:
            raise CliError(
                f"line {number} is not a record: {error}", "correct it; the lines before it were written"
            ) from error
        yield Outgoing(
            value=record.value,
            key=record.key,
            headers=[*(record.headers or ()), *shape.headers],
            timestamp_ms=record.timestamp_ms,
            partition=record.partition if shape.keep_partition else shape.partition,
        )


def _from_files(paths: list[str], shape: _Shape) -> Iterator[Outgoing]:
    for path in paths:
        try:
            if path == "-":
                content = sys.stdin.buffer.read(_RECORD_SIZE_BYTES_MAX + 1)
            else:
                with open(path, "rb") as stream:
                    content = stream.read(_RECORD_SIZE_BYTES_MAX + 1)
        except OSError as error:
            raise CliError(f"cannot read {path}: {(error.strerror or str(error)).lower()}", "check --file") from error
        _refuse_oversize(content, path)
        yield Outgoing(value=content, key=shape.key, headers=shape.headers, partition=shape.partition)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with their numbers from 1, without their line feeds."""
    number = 0
    while line := stream.readline(_RECORD_SIZE_BYTES_MAX + 1):
        number += 1
        content = line.removesuffix(b"\n")
        _refuse_oversize(content, f"line {number}")
        yield number, content


def _refuse_oversize(content: bytes, where: str) -> None:
    if len(content) > _RECORD_SIZE_BYTES_MAX:
        raise CliError(f"{where} is larger than {_RECORD_SIZE_BYTES_MAX >> 20} MiB", "split it into several records")


def _separator(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        separator = unescape(text)
    except ValueError as error:
        raise CliError(f"--key-separator: {error}", r"write a backslash itself as \\", status=USAGE) from error
    if not separator:
        raise CliError("--key-separator is empty", "give at least one character", status=USAGE)
    return separator


def _refuse_together(*options: tuple[str, object]) -> None:
    given = [name for name, value in options if value is not None]
    if len(given) > 1:
        raise CliError(f"{' and '.join(given)} exclude each other", "give one of them", status=USAGE)
