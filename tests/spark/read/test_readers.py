"""The readers as Spark drives them, without Spark: what is read, from where to where, and how much at once."""

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewPartitions
from pyspark.sql.streaming.datasource import ReadAllAvailable

from millstream.spark.client import Client
from millstream.spark.errors import BadOption, DataLost, TopicMissing
from millstream.spark.read.readers import StreamReader
from tests.spark.conftest import Topics
from tests.spark.read.readers_bed import batch_rows, stream_reader, stream_rows
from tests.support.server_process import ServerProcess

_BASE_MS = 1_700_000_000_000


def _numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [int(row["value"]) for row in rows]


def _read(server: ServerProcess, **options: Any) -> list[int]:
    return _numbers(batch_rows(server.kafka, **options))


def _drain(reader: StreamReader, start: Any = None) -> tuple[list[list[int]], Any]:
    """Read until there is nothing new, as Trigger.AvailableNow does; gives the micro-batches and where they ended."""
    begin = reader.initialOffset() if start is None else start
    reader.prepareForTriggerAvailableNow()
    batches: list[list[int]] = []
    while True:
        end = reader.latestOffset(begin, reader.getDefaultReadLimit())
        if end == begin:
            return batches, end
        batches.append(_numbers(stream_rows(reader, begin, end)))
        begin = end


def _commit(server: ServerProcess, group: str, topic: str, offset: int, partition: int = 0) -> None:
    consumer = Consumer({"bootstrap.servers": server.kafka, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
    consumer.close()


def _position(server: ServerProcess, group: str, topic: str) -> int:
    with Client(server.kafka) as client:
        return client.committed(group, client.topics([topic]))[topic][0]


@pytest.fixture(scope="module")
def points(topics: Topics) -> str:
    """A topic of two partitions of ten records a millisecond apart."""
    name = topics.create("points", partitions=2)
    topics.write_numbers(name, range(10))
    topics.write_numbers(name, range(10, 20), partition=1)
    return name


@pytest.fixture(scope="module")
def limits(topics: Topics) -> str:
    """A topic of two partitions, one twice as large as the other: 3000 records."""
    name = topics.create("limits", partitions=2)
    topics.write_numbers(name, range(2000), batch_size=2000)
    topics.write_numbers(name, range(2000, 3000), partition=1, batch_size=2000)
    return name


class TestSelection:
    """subscribePattern and assign."""

    def test_a_pattern(self, broker: ServerProcess, topics: Topics) -> None:
        one, two = topics.create("pat.a"), topics.create("pat.b")
        topics.create("other")
        topics.write_numbers(one, range(5))
        topics.write_numbers(two, range(5, 9))
        pattern = rf"({one}|{two})".replace(".", r"\.")
        assert sorted(_read(broker, subscribePattern=pattern)) == list(range(9))
        with pytest.raises(TopicMissing, match=r"no topic matches 'nothing.*'; change the option subscribePattern"):
            _read(broker, subscribePattern="nothing.*")

    def test_single_partitions(self, broker: ServerProcess, topics: Topics) -> None:
        topic = topics.create("assigned", partitions=3)
        for partition in range(3):
            topics.write_numbers(topic, range(partition * 10, partition * 10 + 5), partition)
        assert _read(broker, assign=f'{{"{topic}": [0, 2]}}') == [*range(5), *range(20, 25)]
        starting = f'{{"{topic}": {{"2": 3}}}}'
        assert _read(broker, assign=f'{{"{topic}": [2]}}', startingOffsets=starting) == [23, 24]
        with pytest.raises(TopicMissing, match=r"has the partitions 0 to 2, not 7; change the option assign"):
            _read(broker, assign=f'{{"{topic}": [0, 7]}}')

    def test_topics_that_begin_to_match(self, broker: ServerProcess, topics: Topics) -> None:
        first = topics.create("grow-a", partitions=1)
        topics.write_numbers(first, range(3))
        reader = stream_reader(broker.kafka, subscribePattern="grow-[ab].*", startingOffsets="earliest")
        start = reader.initialOffset()
        limit = reader.getDefaultReadLimit()
        end = reader.latestOffset(start, limit)
        assert _numbers(stream_rows(reader, start, end)) == [0, 1, 2]
        second = topics.create("grow-b")
        topics.write_numbers(second, range(3, 6))
        for made in topics.admin.create_partitions([NewPartitions(first, 2)]).values():
            made.result(timeout=30)
        topics.write_numbers(first, range(6, 8), partition=1)
        later = reader.latestOffset(end, limit)
        assert later == {first: {"0": 3, "1": 2}, second: {"0": 3}}
        assert sorted(_numbers(stream_rows(reader, end, later))) == [3, 4, 5, 6, 7]
        for done in topics.admin.delete_topics([second]).values():
            done.result(timeout=30)
        with pytest.raises(DataLost, match=f"topic '{second}' was deleted; failOnDataLoss=false goes on"):
            reader.latestOffset(later, limit)
        reader.stop()

    def test_a_topic_that_is_made_anew(self, broker: ServerProcess, topics: Topics) -> None:
        topic = topics.create("anew")
        topics.write_numbers(topic, range(3))
        reader = stream_reader(broker.kafka, subscribe=topic)
        end = reader.initialOffset()
        for done in topics.admin.delete_topics([topic]).values():
            done.result(timeout=30)
        topics.create_exactly(topic)
        topics.write_numbers(topic, range(10))
        with pytest.raises(DataLost, match=f"topic '{topic}' was deleted and made anew while it was read"):
            reader.latestOffset(end, reader.getDefaultReadLimit())
        reader.stop()


class TestPoints:
    """Where a query begins and ends."""

    def test_by_time(self, broker: ServerProcess, points: str) -> None:
        between = {"startingTimestamp": _BASE_MS + 7, "endingTimestamp": _BASE_MS + 12}
        assert _read(broker, subscribe=points, **between) == [*range(7, 10), *range(10, 12)]
        by_partition = f'{{"{points}": {{"0": {_BASE_MS + 8}, "1": {_BASE_MS + 18}}}}}'
        assert _read(broker, subscribe=points, startingOffsetsByTimestamp=by_partition) == [8, 9, 18, 19]
        assert _read(broker, subscribe=points, endingOffsetsByTimestamp=by_partition) == [*range(8), *range(10, 18)]

    def test_a_time_that_no_record_has(self, broker: ServerProcess, points: str) -> None:
        late = {"subscribe": points, "startingTimestamp": _BASE_MS + 15}
        with pytest.raises(BadOption, match=rf"partition 0 holds no record as late as {_BASE_MS + 15}; .*=latest"):
            _read(broker, **late)
        assert _read(broker, **late, startingOffsetsByTimestampStrategy="latest") == [*range(15, 20)]
        assert len(_read(broker, subscribe=points, endingTimestamp=_BASE_MS + 10**9)) == 20

    def test_all_partitions_must_be_named(self, broker: ServerProcess, points: str) -> None:
        named = f'{{"{points}": {{"0": {_BASE_MS}}}}}'
        with pytest.raises(BadOption, match="startingOffsetsByTimestamp must name all partitions of 'points"):
            _read(broker, subscribe=points, startingOffsetsByTimestamp=named)

    def test_from_the_position_of_a_group(self, broker: ServerProcess, points: str) -> None:
        _commit(broker, "billing", points, 6)
        assert _read(broker, subscribe=points, startingGroup="billing") == [*range(6, 10), *range(10, 20)]
        starting = f'{{"{points}": {{"0": 0, "1": 8}}}}'
        assert _read(broker, subscribe=points, startingGroup="billing", startingOffsets=starting) == [
            *range(6, 10),
            18,
            19,
        ], "startingOffsets says where the group has no position"
        reader = stream_reader(broker.kafka, subscribe=points, startingGroup="billing", startingOffsets="latest")
        assert reader.initialOffset() == {points: {"0": 6, "1": 10}}
        reader.stop()

    def test_a_group_that_stands_at_what_is_gone(self, broker: ServerProcess, topics: Topics) -> None:
        topic = topics.create("expired")
        topics.write_numbers(topic, range(10))
        _commit(broker, "slow", topic, 2)
        topics.delete_before(topic, 5)
        with pytest.raises(DataLost, match=r"startingGroup=slow: .* holds the offsets 5 to 9, 2 is not among them"):
            _read(broker, subscribe=topic, startingGroup="slow")
        assert _read(broker, subscribe=topic, startingGroup="slow", failOnDataLoss=False) == list(range(5, 10))


class TestLimits:
    """How much a micro-batch has; all of it until there is nothing new, as with the trigger availableNow."""

    def test_rows(self, broker: ServerProcess, limits: str) -> None:
        reader = stream_reader(broker.kafka, subscribe=limits, startingOffsets="earliest", maxOffsetsPerTrigger=700)
        batches, end = _drain(reader)
        assert [len(batch) for batch in batches] == [700, 700, 700, 700, 200]
        assert sorted(number for batch in batches for number in batch) == list(range(3000))
        assert end == {limits: {"0": 2000, "1": 1000}}
        reader.stop()

    def test_bytes(self, broker: ServerProcess, limits: str) -> None:
        with Client(broker.kafka) as client:
            total = sum(client.sizes(client.topics([limits]))[limits].values())
        reader = stream_reader(
            broker.kafka, subscribe=limits, startingOffsets="earliest", maxBytesPerTrigger=total // 5
        )
        batches, _ = _drain(reader)
        assert sorted(number for batch in batches for number in batch) == list(range(3000))
        assert 5 <= len(batches) <= 6
        assert max(len(batch) for batch in batches) <= 3000 // 5 + 100
        reader.stop()

    def test_rows_and_bytes(self, broker: ServerProcess, limits: str) -> None:
        with Client(broker.kafka) as client:
            total = sum(client.sizes(client.topics([limits]))[limits].values())
        options = {"subscribe": limits, "startingOffsets": "earliest"}
        reader = stream_reader(
            broker.kafka, **options, maxOffsetsPerTrigger=100, maxBytesPerTrigger=total, includeHeaders=True
        )
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, reader.getDefaultReadLimit())
        assert len(stream_rows(reader, begin, end)) == 100, "the records are the smaller limit"
        reader.stop()
        reader = stream_reader(broker.kafka, **options, maxOffsetsPerTrigger=2900, maxBytesPerTrigger=total // 10)
        end = reader.latestOffset(begin, reader.getDefaultReadLimit())
        assert 0 < len(stream_rows(reader, begin, end)) <= 330, "the bytes are"
        assert len(stream_rows(reader, begin, reader.latestOffset(begin, ReadAllAvailable()))) == 3000
        reader.stop()

    def test_a_record_larger_than_the_limit_is_read(self, broker: ServerProcess, limits: str) -> None:
        reader = stream_reader(broker.kafka, subscribe=limits, startingOffsets="earliest", maxBytesPerTrigger=1)
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, reader.getDefaultReadLimit())
        assert len(stream_rows(reader, begin, end)) == 1
        reader.stop()

    def test_enough_rows_or_enough_time(self, broker: ServerProcess, topics: Topics) -> None:
        topic = topics.create("least")
        reader = stream_reader(
            broker.kafka,
            subscribe=topic,
            minOffsetsPerTrigger=10,
            maxTriggerDelay="1500ms",
            startingOffsets="earliest",
        )
        limit = reader.getDefaultReadLimit()
        start = reader.initialOffset()
        topics.write_numbers(topic, range(3))
        first = reader.latestOffset(start, limit)
        began = time.monotonic()
        assert first == {topic: {"0": 3}}, "the first micro-batch waits for nothing"
        topics.write_numbers(topic, range(3, 6))
        assert reader.latestOffset(first, limit) == first
        topics.write_numbers(topic, range(6, 13))
        second = reader.latestOffset(first, limit)
        assert second == {topic: {"0": 13}}
        topics.write_numbers(topic, range(13, 14))
        assert reader.latestOffset(second, limit) == second
        time.sleep(max(0.0, 1.6 - (time.monotonic() - began)) + 1.5)
        third = reader.latestOffset(second, limit)
        assert third == {topic: {"0": 14}}
        topics.write_numbers(topic, range(14, 15))
        assert _drain(reader, third)[0] == [[14]], "a query that is to end does not wait"
        reader.stop()

    def test_tasks(self, broker: ServerProcess, limits: str) -> None:
        reader = stream_reader(broker.kafka, subscribe=limits, startingOffsets="earliest", maxRecordsPerPartition=600)
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, reader.getDefaultReadLimit())
        assert [task.value.stop - task.value.start for task in reader.partitions(begin, end)] == [500] * 6
        reader.stop()


class TestGroup:
    """A query that shows how far it has come."""

    def test_its_position_is_that_of_the_finished_micro_batches(self, broker: ServerProcess, topics: Topics) -> None:
        topic = topics.create("shown")
        topics.write_numbers(topic, range(100))
        reader = stream_reader(
            broker.kafka,
            subscribe=topic,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=40,
            kafka__group__id="spark",
        )
        begin = reader.initialOffset()
        first = reader.latestOffset(begin, reader.getDefaultReadLimit())
        assert _position(broker, "spark", topic) == 0
        second = reader.latestOffset(first, reader.getDefaultReadLimit())
        assert _position(broker, "spark", topic) == 40
        reader.commit(second)
        assert _position(broker, "spark", topic) == 80
        reader.stop()

    def test_a_group_that_has_members_does_not_stop_the_query(
        self, broker: ServerProcess, topics: Topics, caplog: pytest.LogCaptureFixture
    ) -> None:
        topic = topics.create("taken")
        topics.write_numbers(topic, range(5))
        consumer = Consumer(
            {"bootstrap.servers": broker.kafka, "group.id": "taken", "auto.offset.reset": "earliest", "log_level": 0}
        )
        consumer.subscribe([topic])
        assert consumer.poll(30) is not None
        reader = stream_reader(broker.kafka, subscribe=topic, startingOffsets="earliest", kafka__group__id="taken")
        assert _drain(reader)[0] == [[0, 1, 2, 3, 4]]
        assert "how far the query has come is not shown: group 'taken' does not take positions" in caplog.text
        reader.stop()
        consumer.close()
