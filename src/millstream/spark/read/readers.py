"""The two readers that Spark drives: of one batch, and of a stream of micro-batches.

Spark pickles a reader before it calls it, and again for its tasks: a reader holds nothing but the options, until
its first call on the driver.
"""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from millstream.spark.client import EARLIEST, LATEST, Client, Topic
from millstream.spark.read.offsets import Offsets, from_json, limited, report_loss, resolved, split, to_json
from millstream.spark.read.options import Direct, ReadOptions
from millstream.spark.read.reading import OffsetRange, read_range

__all__ = ["BatchReader", "StreamReader"]


class BatchReader(DataSourceReader):
    """Reads a range of offsets of each partition once."""

    def __init__(self, options: ReadOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks."""
        options = self._options
        with Client(options.servers) as client:
            topics = client.topics(list(options.topics))
            earliest, latest = client.offsets(topics, EARLIEST), client.offsets(topics, LATEST)
            fails = options.fails_on_data_loss
            start = resolved("startingOffsets", options.start or "earliest", earliest, latest, fails=fails)
            end = resolved("endingOffsets", options.end, earliest, latest, fails=fails)
            return _plan(client, options, topics, start, end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read one task's records, as Arrow record batches."""
        return _read(partition, self._schema)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads micro-batch after micro-batch.

    Partitions that a topic gets while the query runs are read from their first offset on.
    """

    def __init__(self, options: ReadOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema
        self._client: Client | None = None
        self._target: Offsets | None = None
        self._latest: Offsets | None = None

    def initialOffset(self) -> dict[str, dict[str, int]]:  # noqa: N802 - Spark's name
        """Where a query without a checkpoint begins."""
        client, topics = self._connect()
        earliest, latest = client.offsets(topics, EARLIEST), client.offsets(topics, LATEST)
        point, fails = self._options.start or "latest", self._options.fails_on_data_loss
        return to_json(resolved("startingOffsets", point, earliest, latest, fails=fails))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read nothing that is written from now on."""
        client, topics = self._connect()
        self._target = client.offsets(topics, LATEST)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """What maxOffsetsPerTrigger says."""
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, dict[str, int]], limit: ReadLimit) -> dict[str, dict[str, int]]:  # noqa: N802
        """Where the next micro-batch ends."""
        begin = from_json(start, self._options.topics)
        client, topics = self._connect()
        latest = self._latest = client.offsets(topics, LATEST)
        if self._target is not None:
            # A partition that the target does not know is newer than the query.
            latest = {
                topic: {
                    part: min(at, self._target[topic][part])
                    for part, at in parts.items()
                    if part in self._target[topic]
                }
                for topic, parts in latest.items()
            }
        self._begin_new_partitions(begin, latest, client, topics)
        fails = self._options.fails_on_data_loss
        for topic, parts in begin.items():
            for part, at in parts.items():
                behind = latest[topic].get(part, 0)
                if behind < at:
                    report_loss(topic, part, behind, at, fails=fails)
        if isinstance(limit, ReadMaxRows):
            latest = limited(begin, latest, limit.max_rows)
        return to_json(latest)

    def reportLatestOffset(self) -> dict[str, dict[str, int]] | None:  # noqa: N802 - Spark's name
        """The end of the topics when it was last looked at, for the progress reports."""
        return None if self._latest is None else to_json(self._latest)

    def partitions(self, start: dict[str, dict[str, int]], end: dict[str, dict[str, int]]) -> list[InputPartition]:
        """Plan the tasks of one micro-batch."""
        begin, until = from_json(start, self._options.topics), from_json(end, self._options.topics)
        client, topics = self._connect()
        self._begin_new_partitions(begin, until, client, topics)
        return _plan(client, self._options, topics, begin, until)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read one task's records, as Arrow record batches."""
        return _read(partition, self._schema)

    def stop(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def _connect(self) -> tuple[Client, dict[str, Topic]]:
        if self._client is None:
            self._client = Client(self._options.servers)
        return self._client, self._client.topics(list(self._options.topics))

    def _begin_new_partitions(self, begin: Offsets, until: Offsets, client: Client, topics: dict[str, Topic]) -> None:
        """Let partitions and topics that are not in the checkpoint yet begin at their first offset."""
        if all(parts.keys() <= begin.get(topic, {}).keys() for topic, parts in until.items()):
            return
        earliest = client.offsets(topics, EARLIEST)
        for topic, parts in until.items():
            for part in parts.keys() - begin.setdefault(topic, {}).keys():
                begin[topic][part] = earliest[topic].get(part, 0)


def _plan(
    client: Client, options: ReadOptions, topics: dict[str, Topic], start: Offsets, end: Offsets
) -> list[InputPartition]:
    """Plan the tasks that read from one set of offsets to another.

    Raises:
        DataLost: the log does not reach so far back (any more), and that is an error.
    """
    earliest = client.offsets(topics, EARLIEST)
    data_dirs: dict[str, str] = {}
    ranges = []
    for name, parts in sorted(end.items()):
        topic = topics[name]
        for partition, stop in sorted(parts.items()):
            first, leader = start[name][partition], topic.leaders.get(partition, "")
            lost_before = min(earliest[name].get(partition, stop), stop)
            if first < lost_before:
                report_loss(name, partition, first, lost_before, fails=options.fails_on_data_loss)
                first = lost_before
            if first >= stop:
                continue
            if options.direct is not Direct.NEVER and leader not in data_dirs:
                data_dirs[leader] = client.data_dir(leader)
            ranges.append(
                OffsetRange(
                    servers=options.servers,
                    topic=name,
                    topic_id=topic.topic_id,
                    partition=partition,
                    leader=leader,
                    data_dir=data_dirs.get(leader, ""),
                    start=first,
                    stop=stop,
                    direct=options.direct,
                    fails_on_data_loss=options.fails_on_data_loss,
                )
            )
    counts = split([one.stop - one.start for one in ranges], options.min_partitions)
    return [InputPartition(part) for one, count in zip(ranges, counts, strict=True) for part in one.split(count)]


def _read(partition: InputPartition, schema: Any) -> Iterator[Any]:
    if partition.value is None:
        # What Spark makes of a plan without tasks.
        return iter(())
    return read_range(partition.value, to_arrow_schema(schema, timezone="UTC"))
