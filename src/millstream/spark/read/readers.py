"""The two readers that Spark drives: of one batch, and of a stream of micro-batches.

Spark pickles a reader before it calls it, and again for its tasks: a reader holds nothing but the options, until
its first call on the driver.
"""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from millstream.spark.client import EARLIEST, LATEST, Client, Topic
from millstream.spark.errors import AccessDenied, BrokerUnreachable, CommitRefused, DataLost
from millstream.spark.read.offsets import Json, from_json, limited, report_loss, rows_between, to_json
from millstream.spark.read.options import ReadOptions
from millstream.spark.read.planning import plan
from millstream.spark.read.points import Offsets, Point, resolve
from millstream.spark.read.pushdown import NOTHING_PUSHED, pushed
from millstream.spark.read.reading import read_range
from millstream.spark.read.sizes import limited_by_bytes, mean_bytes

__all__ = ["BatchReader", "PushingReader", "StreamReader", "batch_reader"]

_log = logging.getLogger(__name__)
_EARLIEST: Final = Point(option="startingOffsets", offsets="earliest")
_LATEST: Final = Point(option="startingOffsets", offsets="latest")
_PUSHING_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class BatchReader(DataSourceReader):
    """Reads a range of offsets of each partition once."""

    def __init__(self, options: ReadOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema
        self._pushed = NOTHING_PUSHED

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks."""
        options = self._options
        with Client(options.servers) as client:
            topics = options.selection.describe(client)
            earliest, latest = client.offsets(topics, EARLIEST), client.offsets(topics, LATEST)
            fails = options.fails_on_data_loss
            start = resolve(options.start or _EARLIEST, client, topics, earliest, latest, fails=fails)
            end = resolve(options.end or _LATEST, client, topics, earliest, latest, fails=fails)
            ranges = plan(client, options, topics, start, end, self._pushed)
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read one task's records, as Arrow record batches."""
        return _read(partition, self._schema)


class PushingReader(BatchReader):
    """A reader that takes filters. Spark refuses to work with one where it is not set to push any."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Take the filters that can be taken, and give back the others."""
        self._pushed, left = pushed(filters)
        return left


def batch_reader(options: ReadOptions, schema: Any) -> BatchReader:
    """A reader that takes filters where Spark pushes them (spark.sql.python.filterPushdown.enabled), else one that
    does not.

    A Python worker is not told how the session is set; but filters are pushed in a worker of their own.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    pushes = _PUSHING_WORKER in sys.modules or (spec is not None and spec.name == _PUSHING_WORKER)
    return PushingReader(options, schema) if pushes else BatchReader(options, schema)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads micro-batch after micro-batch.

    Partitions that a topic gets while the query runs, and topics that begin to match a pattern, are read from their
    first offset on.
    """

    def __init__(self, options: ReadOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema
        self._client: Client | None = None
        self._target: Offsets | None = None
        self._latest: Offsets | None = None
        self._topic_ids: dict[str, object] = {}
        self._last_batch_s = float("-inf")
        self._shown: Offsets | None = None

    def initialOffset(self) -> Json:  # noqa: N802 - Spark's name
        """Where a query without a checkpoint begins."""
        client, topics = self._connect()
        earliest, latest = client.offsets(topics, EARLIEST), client.offsets(topics, LATEST)
        fails = self._options.fails_on_data_loss
        return to_json(resolve(self._options.start or _LATEST, client, topics, earliest, latest, fails=fails))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read nothing that is written from now on."""
        client, topics = self._connect()
        self._target = client.offsets(topics, LATEST)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """One of the limits that the options set: Spark knows no two at once, the others are applied here."""
        limits = self._options.limits
        if limits.rows_max is not None:
            return ReadMaxRows(limits.rows_max)
        if limits.bytes_max is not None:
            return ReadMaxBytes(limits.bytes_max)
        return ReadAllAvailable() if limits.rows_min is None else ReadMinRows(limits.rows_min)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802 - Spark's name
        """Where the next micro-batch ends."""
        begin = from_json(start, self._options.selection)
        client, topics = self._connect()
        latest = self._latest = client.offsets(topics, LATEST)
        # All before the start is finished: Spark asks for more only then.
        self._show({name: parts for name, parts in begin.items() if name in topics})
        if self._target is not None:
            # A partition that the target does not know is newer than the query.
            latest = {
                topic: {
                    part: min(at, self._target[topic][part])
                    for part, at in parts.items()
                    if part in self._target.get(topic, {})
                }
                for topic, parts in latest.items()
            }
            latest = {topic: parts for topic, parts in latest.items() if parts}
        self._begin_new_partitions(begin, latest, client, topics)
        self._report_losses(begin, latest)
        if self._waits(begin, latest, limit):
            return start
        end = self._limited(client, topics, begin, latest, limit)
        if any(rows_between(begin, end).values()):
            self._last_batch_s = time.monotonic()
        return to_json(end)

    def reportLatestOffset(self) -> Json | None:  # noqa: N802 - Spark's name
        """The end of the topics when it was last looked at, for the progress reports."""
        return None if self._latest is None else to_json(self._latest)

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """Plan the tasks of one micro-batch."""
        selection = self._options.selection
        begin, until = from_json(start, selection), from_json(end, selection)
        client, topics = self._connect()
        self._begin_new_partitions(begin, until, client, topics)
        return [InputPartition(each) for each in plan(client, self._options, topics, begin, until)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read one task's records, as Arrow record batches."""
        return _read(partition, self._schema)

    def commit(self, end: Json) -> None:
        """Show how far the query has come. Spark calls this one micro-batch late, and not for the last one."""
        self._show(from_json(end, self._options.selection))

    def stop(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def _connect(self) -> tuple[Client, dict[str, Topic]]:
        if self._client is None:
            self._client = Client(self._options.servers)
        topics = self._options.selection.describe(self._client, required=False)
        # Whoever has answered once is only away for a while when it does not.
        self._client.patience_s = self._options.patience_s
        for name, topic in topics.items():
            if self._topic_ids.setdefault(name, topic.topic_id) != topic.topic_id:
                self._topic_ids[name] = topic.topic_id
                message = f"topic {name!r} was deleted and made anew while it was read"
                if self._options.fails_on_data_loss:
                    raise DataLost(f"{message}; give the query a new checkpointLocation, or set failOnDataLoss=false")
                _log.warning("%s: what of the old one was not read is lost", message)
        return self._client, topics

    def _begin_new_partitions(self, begin: Offsets, until: Offsets, client: Client, topics: dict[str, Topic]) -> None:
        """Let partitions and topics that are not in the checkpoint yet begin at their first offset."""
        if all(parts.keys() <= begin.get(topic, {}).keys() for topic, parts in until.items()):
            return
        earliest = client.offsets(topics, EARLIEST)
        for topic, parts in until.items():
            for part in parts.keys() - begin.setdefault(topic, {}).keys():
                begin[topic][part] = earliest.get(topic, {}).get(part, 0)

    def _report_losses(self, begin: Offsets, latest: Offsets) -> None:
        fails = self._options.fails_on_data_loss
        target = self._target or {}
        for topic, parts in begin.items():
            if topic not in latest and (self._target is None or topic in target):
                message = f"topic {topic!r} was deleted"
                if fails:
                    raise DataLost(f"{message}; failOnDataLoss=false goes on without it")
                _log.warning("%s: the query goes on without it", message)
            for part, at in parts.items():
                behind = latest.get(topic, {}).get(part)
                if behind is not None and behind < at:
                    report_loss(topic, part, behind, at, fails=fails)

    def _waits(self, begin: Offsets, latest: Offsets, limit: ReadLimit) -> bool:
        """Whether there is too little for a micro-batch yet. A query that is to end does not wait for more."""
        limits = self._options.limits
        if limits.rows_min is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        if sum(rows_between(begin, latest).values()) >= limits.rows_min:
            return False
        return time.monotonic() - self._last_batch_s < limits.delay_ms / 1000

    def _limited(
        self, client: Client, topics: dict[str, Topic], begin: Offsets, latest: Offsets, limit: ReadLimit
    ) -> Offsets:
        limits, end = self._options.limits, latest
        if isinstance(limit, ReadAllAvailable):
            return end
        if limits.rows_max is not None:
            end = limited(begin, end, limits.rows_max)
        rows = rows_between(begin, end)
        if limits.bytes_max is None or not any(rows.values()):
            return end
        assert self._latest is not None
        means = mean_bytes(client, topics, client.offsets(topics, EARLIEST), self._latest)
        return limited_by_bytes(client, topics, begin, end, means, limits.bytes_max)

    def _show(self, offsets: Offsets) -> None:
        """Let everybody see how far the query has come, as the position of its group.

        Nothing depends on it: where a query goes on, its checkpoint says.
        """
        if not self._options.group or self._client is None or offsets == self._shown:
            return
        try:
            self._client.commit(self._options.group, offsets)
            self._shown = offsets
        except (AccessDenied, BrokerUnreachable, CommitRefused) as error:
            _log.warning("how far the query has come is not shown: %s", error)


def _read(partition: InputPartition, schema: Any) -> Iterator[Any]:
    if partition.value is None:
        # What Spark makes of a plan without tasks.
        return iter(())
    return read_range(partition.value, to_arrow_schema(schema, timezone="UTC"))
