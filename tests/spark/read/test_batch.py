"""Topics as tables: what is read is what a real client has written, by either way of reading."""

import json
from typing import Any

import pytest

from tests.spark.conftest import Read, Topics
from tests.support.sample_records import BASE_MS, Sample, samples
from tests.support.server_process import ServerProcess

_MICROSECONDS = "unix_micros(timestamp) AS micros"


def _rows(table: Any) -> list[Any]:
    columns = [_MICROSECONDS if name == "timestamp" else name for name in table.columns]
    rows: list[Any] = table.selectExpr(*columns).orderBy("topic", "partition", "offset").collect()
    return rows


def _numbers(table: Any) -> list[int]:
    return sorted(int(row.value) for row in table.select("value").collect())


@pytest.mark.parametrize("direct", ["always", "never"])
def test_every_shape_of_record_in_every_codec(read: Read, topics: Topics, direct: str) -> None:
    topic = topics.create("shapes")
    written = samples()
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        topics.write(topic, written, compression_type=codec)
    rows = _rows(read(topic, includeHeaders=True, direct=direct))
    assert [
        Sample(
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            tuple((name, bytes(value)) for name, value in row.headers or ()),
            row.micros // 1000,
        )
        for row in rows
    ] == written * len(codecs)
    assert [row.offset for row in rows] == list(range(len(rows)))
    assert {(row.topic, row.partition, row.timestampType) for row in rows} == {(topic, 0, 0)}
    assert rows[0].headers is None, "no headers are null, as in Spark's Kafka source"


def test_the_columns_are_those_of_sparks_kafka_source(read: Read, topics: Topics) -> None:
    topic = topics.create("columns")
    assert read(topic).schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    with_headers = read(topic, includeHeaders="true").schema["headers"]
    assert with_headers.dataType.simpleString() == "array<struct<key:string,value:binary>>"
    assert _rows(read(topic)) == []


def test_a_choice_of_columns(read: Read, topics: Topics) -> None:
    topic = topics.create("choice")
    topics.write_numbers(topic, range(3))
    assert [tuple(row) for row in read(topic, columns="offset, VALUE").collect()] == [
        (0, bytearray(b"0")),
        (1, bytearray(b"1")),
        (2, bytearray(b"2")),
    ]
    assert [row.offset for row in read(topic, columns="offset").collect()] == [0, 1, 2]


def test_the_time_of_append(read: Read, topics: Topics) -> None:
    topic = topics.create("append-time", message_timestamp_type="LogAppendTime")
    topics.write_numbers(topic, range(3))
    rows = _rows(read(topic))
    assert {row.timestampType for row in rows} == {1}
    assert all(row.micros > BASE_MS * 1000 for row in rows)


@pytest.mark.parametrize("direct", ["always", "never"])
def test_a_range_of_offsets_in_many_segments(read: Read, topics: Topics, direct: str) -> None:
    topic = topics.create("segments", partitions=2, segment_bytes="20000")
    for first in range(0, 3000, 500):
        topics.write_numbers(topic, range(first, first + 500), batch_size=3000)
        topics.write_numbers(topic, range(first, first + 500), partition=1, batch_size=3000)
    start = json.dumps({topic: {"0": 777, "1": -2}})
    end = json.dumps({topic: {"0": 2222, "1": -1}})
    table = read(topic, direct=direct, startingOffsets=start, endingOffsets=end, minPartitions=5)
    assert _numbers(table.where("partition = 0")) == list(range(777, 2222))
    assert _numbers(table.where("partition = 1")) == list(range(3000))
    assert table.rdd.getNumPartitions() >= 5


def test_several_topics(read: Read, topics: Topics) -> None:
    one, two = topics.create("one"), topics.create("two", partitions=3)
    topics.write_numbers(one, range(10))
    topics.write_numbers(two, range(10, 20), partition=2)
    rows = _rows(read(f"{one}, {two}"))
    assert {(row.topic, row.partition, int(row.value)) for row in rows} == {
        *((one, 0, n) for n in range(10)),
        *((two, 2, n) for n in range(10, 20)),
    }


@pytest.mark.parametrize("direct", ["always", "never"])
def test_deleted_records_are_not_read(read: Read, topics: Topics, direct: str) -> None:
    topic = topics.create("deleted")
    topics.write_numbers(topic, range(100))
    topics.delete_before(topic, 42)
    assert _numbers(read(topic, direct=direct)) == list(range(42, 100))


def test_records_that_are_gone_are_an_error_or_left_out(read: Read, topics: Topics) -> None:
    topic = topics.create("lost")
    topics.write_numbers(topic, range(100))
    topics.delete_before(topic, 42)
    start = json.dumps({topic: {"0": 10}})
    with pytest.raises(Exception, match=r"startingOffsets: topic 'lost-.*holds the offsets 42 to 99, 10 is not"):
        read(topic, startingOffsets=start).count()
    assert _numbers(read(topic, startingOffsets=start, failOnDataLoss=False)) == list(range(42, 100))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direct": "sometimes"}, "BadOption: direct is one of auto, always, never, not 'sometimes'"),
        ({"startingOffsets": "latest"}, "BadOption: startingOffsets: a batch cannot begin at the latest offset"),
        ({"subscribe": "no-such-topic"}, "TopicMissing: there is no topic 'no-such-topic' at 127.0.0.1:"),
        ({"kafka.bootstrap.servers": "127.0.0.1:1"}, "BrokerUnreachable: no Kafka broker answers at 127.0.0.1:1"),
    ],
)
def test_errors_reach_the_user_by_name(
    spark: Any, broker: ServerProcess, topics: Topics, options: dict[str, str], message: str
) -> None:
    given = {"kafka.bootstrap.servers": broker.kafka, "subscribe": topics.create("errors"), **options}
    with pytest.raises(Exception) as raised:  # noqa: PT011 - Spark wraps what the source raises
        spark.read.format("millstream").options(**given).load().count()
    assert message in str(raised.value)


def test_a_schema_of_the_users_own_is_refused(spark: Any) -> None:
    reader = spark.read.format("millstream").option("kafka.bootstrap.servers", "127.0.0.1:9092")
    with pytest.raises(Exception, match="choose among them with the option columns"):
        reader.option("subscribe", "a").schema("value string").load().count()


def test_a_partition_that_is_not_named(read: Read, topics: Topics) -> None:
    topic = topics.create("named", partitions=2)
    with pytest.raises(Exception, match=r"startingOffsets must name all partitions of 'named-.*': 0 to 1"):
        read(topic, startingOffsets=json.dumps({topic: {"0": 0}})).count()
