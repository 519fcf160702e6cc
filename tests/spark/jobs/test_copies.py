"""Backfilling, compacting, re-partitioning and copying."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from millstream.spark.errors import JobError
from millstream.spark.jobs import backfill, compact, copy, repartition, table_sink, topic_sink
from millstream.spark.values import decode
from tests.spark.conftest import Topics
from tests.spark.jobs.conftest import Rows, records_of
from tests.support.sample_records import BASE_MS, Sample, samples
from tests.support.server_process import ServerProcess, serving

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def other_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A second server."""
    data_dir = str(tmp_path_factory.mktemp("other") / "data")
    with serving(data_dir, settings=["durability=os"]) as server:
        yield server


@pytest.fixture
def job(tmp_path: Path) -> str:
    """A place for a checkpoint."""
    return os.fspath(tmp_path / "job")


def test_a_backfill_of_offsets_into_a_table(
    spark: Any, broker: ServerProcess, topics: Topics, held: Rows, job: str
) -> None:
    topic = topics.create("backfilled", partitions=2)
    topics.write_numbers(topic, range(50))
    topics.write_numbers(topic, range(30), partition=1)

    def run() -> Any:
        return backfill(
            spark, servers=broker.kafka, topic=topic, sink=table_sink(f"{job}.table", "delta"), checkpoint=job,
            start={0: 10}, end=25, batch_rows=20,
        )  # fmt: skip

    end = run()
    assert (end.rows, end.batches, end.is_complete) == (15 + 25, 3, True)
    assert records_of(spark.read.format("millstream-table").load(f"{job}.table")) == [
        row for row in held.of(topic) if (10 if row[0] == 0 else 0) <= row[1] < 25
    ]
    topics.write_numbers(topic, range(5))
    assert run().rows == 0


def test_a_backfill_of_a_time_into_a_topic(
    spark: Any, broker: ServerProcess, topics: Topics, held: Rows, job: str
) -> None:
    topic = topics.create("timed", partitions=2)
    topics.write(topic, samples()[:100])
    to = f"{topic}-part"
    start = datetime.fromtimestamp((BASE_MS + 40) / 1000, UTC)
    end = datetime.fromtimestamp((BASE_MS + 60) / 1000, UTC)
    done = backfill(
        spark,
        servers=broker.kafka,
        topic=topic,
        sink=topic_sink(broker.kafka, to),
        checkpoint=job,
        start=start,
        end=end,
    )
    assert done.rows == 20
    assert held.of(to, without_offsets=True) == [
        (row[0], None, *row[2:]) for row in held.of(topic) if 40 <= row[1] < 60
    ]


def test_a_backfill_with_a_transformation(spark: Any, broker: ServerProcess, topics: Topics, job: str) -> None:
    topic = topics.create("transformed")
    topics.write(topic, [Sample(None, value, (), 1) for value in (b'{"id": 1}', b"nope", b'{"id": 3}')])

    def ids(rows: Any) -> Any:
        return decode(rows, format="json", schema="id INT").good.select("value.id", "offset")

    backfill(
        spark, servers=broker.kafka, topic=topic, sink=table_sink(f"{job}.table", None), checkpoint=job, transform=ids
    )
    table = spark.read.format("millstream-table").load(f"{job}.table")
    assert sorted(tuple(row) for row in table.collect()) == [(1, 0), (3, 2)]


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (11, None, "holds at partition 0 the offsets 0 to 9, and 11 is not one of them"),
        (None, 11, "would end at 11"),
        (5, 4, "begins at 5"),
        ({3: 0}, None, "has no partition 3"),
    ],
)
def test_ranges_that_are_none(
    spark: Any, broker: ServerProcess, topics: Topics, job: str, start: Any, end: Any, message: str
) -> None:
    topic = topics.create("ranges")
    topics.write_numbers(topic, range(10))
    with pytest.raises(JobError, match=message):
        backfill(
            spark,
            servers=broker.kafka,
            topic=topic,
            sink=table_sink(job, None),
            checkpoint=f"{job}.x",
            start=start,
            end=end,
        )


@pytest.mark.parametrize("everything", [False, True])
def test_compaction(
    spark: Any, broker: ServerProcess, topics: Topics, held: Rows, job: str, everything: bool
) -> None:
    topic = topics.create("compacted", partitions=2)
    first = [
        (b"a", b"1"),
        (b"b", b"1"),
        (None, b"n"),
        (b"a", b"2"),
        (b"c", b"1"),
        (b"", b"e"),
        (b"c", None),
        (b"d", None),
    ]
    topics.write(topic, [Sample(key, value, (("h", b"x"),), BASE_MS + n) for n, (key, value) in enumerate(first)])
    topics.write(topic, [Sample(b"a", b"9", (), BASE_MS)], partition=1)
    to = f"{topic}-latest"
    end = compact(
        spark, servers=broker.kafka, topic=topic, to=to, checkpoint=job,
        keeps_tombstones=everything, drops_unkeyed=everything,
    )  # fmt: skip
    kept = {1, 3, 5, 6, 7} if everything else {1, 2, 3, 5}
    expected = [row for row in held.of(topic, without_offsets=False) if row[0] == 1 or row[1] in kept]
    assert held.of(to, without_offsets=True) == [(row[0], None, *row[2:]) for row in expected]
    assert end.rows == len(expected)
    again = compact(
        spark, servers=broker.kafka, topic=topic, to=to, checkpoint=job,
        keeps_tombstones=everything, drops_unkeyed=everything,
    )  # fmt: skip
    assert (again.rows, again.is_complete) == (0, True)


def test_an_empty_topic_is_compacted(spark: Any, broker: ServerProcess, topics: Topics, held: Rows, job: str) -> None:
    topic = topics.create("empty")
    end = compact(spark, servers=broker.kafka, topic=topic, to=f"{topic}-latest", checkpoint=job)
    assert (end.rows, held.of(f"{topic}-latest")) == (0, [])


def test_repartitioning(spark: Any, broker: ServerProcess, topics: Topics, held: Rows, job: str) -> None:
    topic = topics.create("narrow")
    records = [Sample(b"key %d" % (n % 17), b"%d" % n, (("n", b"%d" % n),), BASE_MS + n) for n in range(300)]
    topics.write(topic, records)
    to = f"{topic}-wide"
    end = repartition(spark, servers=broker.kafka, topic=topic, to=to, partitions=5, checkpoint=job, batch_rows=200)
    assert (end.rows, end.is_complete) == (300, True)
    found = held.of(to)
    assert sorted(row[2:] for row in found) == sorted(row[2:] for row in held.of(topic))
    for key in {record.key for record in records}:
        mine = [row for row in found if row[2] == key]
        assert len({row[0] for row in mine}) == 1, "a key has one partition"
        assert [int(row[3]) for row in mine] == sorted(int(row[3]) for row in mine), "and its records their order"

    # Where a client of Kafka would have put them.
    direct = topics.create("direct", partitions=5)
    producer = Producer({"bootstrap.servers": broker.kafka, "partitioner": "murmur2_random", "log_level": 0})
    for record in records:
        producer.produce(direct, record.value, record.key)
    producer.flush(30)
    assert {(row[0], row[2]) for row in held.of(direct)} == {(row[0], row[2]) for row in found}

    with pytest.raises(JobError, match="has 5 partitions, and 4 are needed"):
        repartition(spark, servers=broker.kafka, topic=topic, to=to, partitions=4, checkpoint=f"{job}.4")
    with pytest.raises(JobError, match="copied into itself"):
        repartition(spark, servers=broker.kafka, topic=topic, to=topic, partitions=4, checkpoint=f"{job}.5")


def test_a_copy_to_another_broker(
    spark: Any, broker: ServerProcess, other_broker: ServerProcess, topics: Topics, held: Rows, job: str
) -> None:
    names = [topics.create("copied", partitions=2), topics.create("copied")]
    topics.write(names[0], samples()[:80], partition=1)
    topics.write_numbers(names[1], range(20))

    def run() -> Any:
        return copy(spark, servers=broker.kafka, topics=names, to_servers=other_broker.kafka, checkpoint=job)

    assert run().rows == 100
    topics.write_numbers(names[1], range(20, 25))
    assert run().rows == 5
    for name in names:
        there = spark.read.format("millstream").option("kafka.bootstrap.servers", other_broker.kafka)
        frame = there.option("subscribe", name).option("includeHeaders", True).load()
        assert records_of(frame) == held.of(name)
    with pytest.raises(JobError, match="copied into itself"):
        copy(spark, servers=broker.kafka, topics=names, to_servers=broker.kafka, checkpoint=f"{job}.2")
    with pytest.raises(JobError, match="several topics"):
        copy(spark, servers=broker.kafka, topics=names, to_servers=other_broker.kafka, checkpoint=job, to="x")
