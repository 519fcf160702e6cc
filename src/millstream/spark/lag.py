"""How far streaming queries are behind the topics that they read: in records, bytes and seconds.

    listener = LagListener("127.0.0.1:9092")
    spark.streams.addListener(listener)
    ...
    listener.lag["flights-to-table"]["flights"].seconds
    print(listener.metrics())          # the same in Prometheus' text format

It goes by the offsets that Spark reports at the end of each micro-batch, so that it is right about the last one too.
Given a group, it sets the group's position to them: `millstream group describe` and every other tool that knows
consumer groups then show the query.
"""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from millstream.spark.client import EARLIEST, LATEST, Client, Topic
from millstream.spark.errors import SparkSourceError
from millstream.spark.read.frames import walk
from millstream.spark.read.offsets import rows_between
from millstream.spark.read.points import Offsets
from millstream.spark.read.sizes import mean_bytes
from millstream.spark.servers import Servers

__all__ = ["Lag", "LagListener", "measure"]

_log = logging.getLogger(__name__)
_FETCH_BYTES: Final = 1
"""One frame comes, however large it is."""
_METRICS: Final = (
    ("rows", "millstream_spark_lag_records", "Records that the query has not read yet."),
    ("bytes", "millstream_spark_lag_bytes", "Bytes that they take in the log, about."),
    ("seconds", "millstream_spark_lag_seconds", "Age of the first record that the query has not read yet."),
)


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a query is behind a topic.

    Args:
        rows: records that it has not read.
        bytes: what they take in the log, about: by the mean of each partition.
        seconds: how old the first of them is, by its own time; 0 if there are none.
    """

    rows: int
    bytes: int
    seconds: float


def measure(client: Client, offsets: Offsets, now_s: float) -> dict[str, Lag]:
    """Hold offsets against the topics as they are.

    Args:
        client: the broker.
        offsets: where a query stands. Topics and partitions that do not exist any more are left out.
        now_s: the time, seconds since 1970.

    Returns:
        How far it is behind, by topic.
    """
    topics = client.topics(sorted(offsets), required=False)
    earliest, latest = client.offsets(topics, EARLIEST), client.offsets(topics, LATEST)
    begin = {
        name: {part: max(at, offsets[name].get(part, at)) for part, at in parts.items()}
        for name, parts in earliest.items()
    }
    rows = rows_between(begin, latest)
    means = mean_bytes(client, topics, earliest, latest)
    found = {}
    for name, topic in topics.items():
        behind = {part: rows[name, part] for part in topic.leaders if rows[name, part]}
        times = [_time_ms(client, topic, part, begin[name][part]) for part in behind]
        known = [time_ms for time_ms in times if time_ms >= 0]
        found[name] = Lag(
            rows=sum(behind.values()),
            bytes=int(sum(count * means[name, part] for part, count in behind.items())),
            seconds=max(now_s - min(known) / 1000, 0.0) if known else 0.0,
        )
    return found


def _time_ms(client: Client, topic: Topic, partition: int, offset: int) -> int:
    """The time of the first record at or behind an offset, about; -1 if there is none, or it has none."""
    leader = topic.leaders[partition]
    while True:
        fetched = client.fetch(topic.name, topic.topic_id, partition, leader, offset, _FETCH_BYTES)
        headers = [frame.header for frame in walk(memoryview(fetched.records), None, offset, 2**63 - 1).found]
        if not headers:
            return -1
        for header in headers:
            if header.record_count:
                return header.early_ms
        offset = headers[-1].last_offset + 1  # compaction has left nothing up to there


class LagListener(StreamingQueryListener):
    """Watches the queries of a Spark session, to be given to `spark.streams.addListener`.

    Args:
        servers: where to begin; as text HOST:PORT, or several separated by commas, that let everybody in.
        group: the group whose position is set; empty to set none. With more than one query, give each listener the
            name of its own.
        query: the name of the query that is watched; empty for all.
    """

    def __init__(self, servers: str | Servers, *, group: str = "", query: str = "") -> None:
        super().__init__()
        self._client = Client(servers)
        self._group = group
        self._query = query
        self._lock = threading.Lock()
        self._lag: dict[str, dict[str, Lag]] = {}

    @property
    def lag(self) -> Mapping[str, Mapping[str, Lag]]:
        """How far each query is behind each topic, by the query's name (its id if it has none) and the topic's."""
        with self._lock:
            return {name: dict(topics) for name, topics in self._lag.items()}

    def metrics(self) -> str:
        """The same in Prometheus' text format."""
        lag = self.lag
        lines = []
        for field, name, text in _METRICS:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
            lines += [
                f'{name}{{query="{_escaped(query)}",topic="{_escaped(topic)}"}} {getattr(behind, field)}'
                for query, topics in sorted(lag.items())
                for topic, behind in sorted(topics.items())
            ]
        return "\n".join(lines) + "\n"

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing is known yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A micro-batch has ended, or there was nothing to do."""
        progress = event.progress
        name = progress.name or str(progress.id)
        if self._query and name != self._query:
            return
        offsets: Offsets = {}
        for source in progress.sources:
            for topic, parts in _offsets(source.endOffset).items():
                offsets.setdefault(topic, {}).update(parts)
        if offsets:
            self.note(name, offsets)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """There is nothing new."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """What was known last stays."""

    def note(self, query: str, offsets: Offsets) -> None:
        """Take note of where a query stands. A broker that does not answer is no reason to disturb the query."""
        try:
            found = measure(self._client, offsets, time.time())
            if self._group:
                self._client.commit(self._group, {name: offsets[name] for name in found})
        except SparkSourceError as error:
            _log.warning("the lag of query %s is not known: %s", query, error)
            return
        with self._lock:
            self._lag[query] = found

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _offsets(text: str | None) -> Offsets:
    """The offsets of a source, if it is one over topics; nothing if not."""
    try:
        read = json.loads(text or "{}")
        return {
            str(topic): {int(part): int(at) for part, at in parts.items()} for topic, parts in read.items() if parts
        }
    except (ValueError, TypeError, AttributeError):
        return {}


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
