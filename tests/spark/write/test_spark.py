"""Tables and streams of Spark's in topics, as every client reads them."""

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.spark.conftest import Topics
from tests.spark.write.conftest import messages, values
from tests.support.server_process import ServerProcess, serving

Save = Callable[..., None]

_TIMEOUT_S = 60
_SCHEMA = """
    key binary, value binary, headers array<struct<key: string, value: binary>>, topic string, partition int,
    timestamp timestamp
"""


@pytest.fixture(scope="module")
def every_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that speaks every protocol at one address."""
    data_dir = str(tmp_path_factory.mktemp("every") / "data")
    with serving(data_dir, listen="any=127.0.0.1:0", settings=["durability=os"]) as server:
        yield server


@pytest.fixture
def save(broker: ServerProcess) -> Save:
    """Writes a table into topics: save(table, option=value, ...)."""

    def write(table: Any, **options: Any) -> None:
        given = {name.replace("_", "."): value for name, value in options.items()}
        writer = table.write.format("millstream").mode("append").option("kafka.bootstrap.servers", broker.kafka)
        writer.options(**given).save()

    return write


def _moment(micros: int) -> datetime.datetime:
    return datetime.datetime(2026, 1, 2, 3, 4, 5, micros, datetime.UTC)


def test_every_column(spark: Any, save: Save, topics: Topics, broker: ServerProcess) -> None:
    topic, other = topics.create("every-column", partitions=3), topics.create("every-column", partitions=3)
    headers = [("a", b"1"), ("a", None), ("", b"")]
    rows = [
        (b"key", b"value", headers, topic, 2, _moment(123_456)),
        (None, None, None, topic, 0, _moment(0)),
        (b"", b"", [], other, 1, _moment(999_999)),
        (b"key", b"x" * 100_000, None, other, None, None),
    ]
    save(spark.createDataFrame(rows, _SCHEMA))
    found = messages(broker.kafka, topic)
    [first], [second] = found[2], found[0]
    assert (first.key(), first.value(), first.headers()) == (b"key", b"value", headers)
    assert first.timestamp()[1] == 1_767_323_045_123
    assert (second.key(), second.value(), second.headers()) == (None, None, None)
    found = messages(broker.kafka, other)
    assert (found[1][0].key(), found[1][0].value()) == (b"", b"")
    assert sum(map(len, found.values())) == 2


def test_a_round_trip_restores_records(spark: Any, save: Save, read: Any, topics: Topics) -> None:
    first, second = topics.create("round-trip", partitions=2), topics.create("round-trip", partitions=2)
    noise = spark.range(2000).selectExpr(
        "IF(id % 7 = 0, NULL, CAST(id % 50 AS string)) AS key",
        "IF(id % 11 = 0, NULL, repeat(CAST(id AS string), CAST(id % 20 AS int))) AS value",
        "IF(id % 3 = 0, array(named_struct('key', 'h', 'value', CAST(hex(id) AS binary)), "
        "named_struct('key', 'n', 'value', CAST(NULL AS binary))), NULL) AS headers",
        "timestamp_millis(1700000000000 + (id * 7919) % 100000) AS timestamp",
    )
    save(noise, topic=first, kafka_batch_size=3000)
    kept = ["key", "value", "headers", "partition", "timestamp"]
    save(read(first, includeHeaders=True).select(*kept), topic=second)
    original, copied = (
        read(topic, includeHeaders=True).orderBy("partition", "offset").select("offset", *kept).collect()
        for topic in (first, second)
    )
    assert len(original) == 2000
    assert copied == original


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed(codec: str, spark: Any, save: Save, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create(codec)
    save(spark.range(3000).selectExpr("lpad(id, 7, '0') AS value"), topic=topic, kafka_compression_type=codec)
    assert values(broker.kafka, topic) == [b"%07d" % n for n in range(3000)]


def test_a_pulsar_client_reads_what_was_written(spark: Any, every_broker: ServerProcess) -> None:
    address = every_broker.addresses["any"]
    table = spark.range(500).selectExpr("CAST(id AS string) AS key", "lpad(id, 7, '0') AS value")
    writer = table.write.format("millstream").mode("append").option("kafka.bootstrap.servers", address)
    writer.option("topic", "for-pulsar").save()
    client = pulsar.Client(f"pulsar://{address}", logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        reader = client.create_reader("for-pulsar", pulsar.MessageId.earliest)
        found = [reader.read_next(30_000) for _ in range(500)]
        assert sorted(message.data() for message in found) == [b"%07d" % n for n in range(500)]
        assert all(int(message.data()) == int(message.partition_key()) for message in found)
        assert not reader.has_message_available()
    finally:
        client.close()


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        ("id AS value", {}, "column value is of type bigint, and must be string or binary: cast it"),
        ("'x' AS value, id", {}, "a topic has no column 'id'"),
        ("'x' AS value", {"topic": ""}, "option topic is empty"),
        ("'x' AS value", {"kafka.acks": "1"}, "kafka.acks is always all"),
        ("'x' AS value", {"subscribe": "t"}, "there is no option 'subscribe' for writing"),
        (
            "'x' AS value",
            {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.delivery.timeout.ms": 500},
            "no Kafka broker answers at 127.0.0.1:1",
        ),
        ("'x' AS value", {"topic": "not a name"}, "does not take the topic 'not a name'"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_runs(
    columns: str, options: dict[str, Any], problem: str, spark: Any, save: Save
) -> None:
    failing = spark.range(1).selectExpr(*columns.split(", "), "assert_true(id < 0) AS timestamp").drop("timestamp")
    with pytest.raises(Exception, match=problem):
        save(failing, **{"topic": "unwritable", **options})


def test_a_topic_is_not_overwritten(spark: Any, broker: ServerProcess) -> None:
    writer = spark.range(1).selectExpr("'x' AS value").write.format("millstream").mode("overwrite")
    with pytest.raises(Exception, match="a topic is not overwritten"):
        writer.option("kafka.bootstrap.servers", broker.kafka).option("topic", "t").save()


def test_a_table_that_fails_is_not_seen(spark: Any, save: Save, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("failing")
    table = spark.range(0, 4000, 1, 2).selectExpr("IF(id = 3999, raise_error('broken'), 'x') AS value")
    with pytest.raises(Exception, match="broken"):
        save(table, topic=topic)
    assert values(broker.kafka, topic) == []


def test_a_table_with_a_batch_id_is_written_once(
    spark: Any, save: Save, topics: Topics, broker: ServerProcess
) -> None:
    topic = topics.create("numbered")
    for batch, value in ((1, "one"), (1, "again"), (2, "two"), (1, "late")):
        save(spark.range(2).selectExpr(f"'{value}' AS value"), topic=topic, applicationId=topic, batchId=batch)
    assert values(broker.kafka, topic) == [b"one", b"one", b"two", b"two"]


class Copying:
    """A streaming query from one topic to another.

    Args:
        spark: the session.
        servers: the broker.
        source, target: topics.
    """

    def __init__(self, spark: Any, servers: str, source: str, target: str) -> None:
        self._spark = spark
        self._servers = servers
        self._source = source
        self._target = target

    def run(self, checkpoint: Path, **options: Any) -> str:
        """Run until drained; returns the id of the query."""
        stream = self._spark.readStream.format("millstream").option("kafka.bootstrap.servers", self._servers)
        query = (
            stream.options(subscribe=self._source, startingOffsets="earliest", maxOffsetsPerTrigger=150)
            .load()
            .select("key", "value")
            .writeStream.format("millstream")
            .option("kafka.bootstrap.servers", self._servers)
            .options(topic=self._target, checkpointLocation=str(checkpoint), **options)
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(_TIMEOUT_S), "the query does not end"
        finally:
            query.stop()
        return str(query.id)


def test_a_stream_goes_on_where_it_was(spark: Any, topics: Topics, broker: ServerProcess, tmp_path: Path) -> None:
    source, target = topics.create("streamed", partitions=2), topics.create("streamed", partitions=2)
    copying = Copying(spark, broker.kafka, source, target)
    topics.write_numbers(source, range(200))
    query_id = copying.run(tmp_path / "checkpoint")
    expected = sorted(b"%d" % n for n in range(200))
    assert values(broker.kafka, target) == expected
    topics.write_numbers(source, range(200, 300), partition=1)
    copying.run(tmp_path / "checkpoint")
    expected = sorted(b"%d" % n for n in range(300))
    assert values(broker.kafka, target) == expected
    assert f"millstream-sink-{query_id}" in {
        group.group_id for group in topics.admin.list_consumer_groups().result().valid
    }

    # As when Spark dies before it notes that the last batch is done.
    newest = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    copying.run(tmp_path / "checkpoint")
    assert values(broker.kafka, target) == expected, "the batch is not published again"

    copying.run(tmp_path / "another checkpoint")
    assert values(broker.kafka, target) == sorted(expected * 2), "another checkpoint is another query"
    with pytest.raises(Exception, match="is that of another query"):
        copying.run(tmp_path / "a third", applicationId=query_id)


def test_a_stream_that_is_seen_at_once(spark: Any, topics: Topics, broker: ServerProcess, tmp_path: Path) -> None:
    source, target = topics.create("at-once"), topics.create("at-once")
    topics.write_numbers(source, range(100))
    Copying(spark, broker.kafka, source, target).run(tmp_path / "checkpoint", delivery="at-least-once")
    assert values(broker.kafka, target) == sorted(b"%d" % n for n in range(100))
