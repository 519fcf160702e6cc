"""Filters: what is passed over, and that the rows are those that Spark would have kept."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from millstream.spark.read import decoder
from millstream.spark.read.pushdown import pushed
from tests.spark.conftest import Topics
from tests.spark.read.readers_bed import pushing_reader, rows_of
from tests.support.sample_records import BASE_MS, Sample
from tests.support.server_process import ServerProcess

_START = datetime.fromtimestamp(BASE_MS / 1000, UTC)
Keeps = Callable[[dict[str, Any]], bool]


def _at(number: int) -> datetime:
    return _START + timedelta(milliseconds=number)


@pytest.fixture(scope="module")
def topic(topics: Topics) -> str:
    """Two partitions of 1000 records in many batches; every tenth has no key, the others one of seven."""
    name = topics.create("pushed", partitions=2)
    for partition in range(2):
        records = [Sample(None if n % 10 == 0 else b"k%d" % (n % 7), b"%d" % n, (), BASE_MS + n) for n in range(1000)]
        topics.write(name, records, partition, batch_num_messages=50, linger_ms=50)
    return name


_FILTERS: dict[str, tuple[Filter, Keeps]] = {
    "offset >=": (GreaterThanOrEqual(("offset",), 900), lambda row: row["offset"] >= 900),
    "offset <": (LessThan(("offset",), 10), lambda row: row["offset"] < 10),
    "offset <=": (LessThanOrEqual(("offset",), 10), lambda row: row["offset"] <= 10),
    "offset =": (EqualTo(("offset",), 123), lambda row: row["offset"] == 123),
    "offset in": (In(("offset",), (5, 700, None)), lambda row: row["offset"] in {5, 700}),
    "offset too far": (GreaterThan(("offset",), 2**40), lambda row: False),
    "partition =": (EqualTo(("partition",), 1), lambda row: row["partition"] == 1),
    "partition in": (In(("partition",), (0, 9)), lambda row: row["partition"] == 0),
    "time >": (GreaterThan(("timestamp",), _at(950)), lambda row: row["timestamp"] > _at(950)),
    "time <=": (LessThanOrEqual(("timestamp",), _at(3)), lambda row: row["timestamp"] <= _at(3)),
    "key =": (EqualTo(("key",), b"k3"), lambda row: row["key"] == b"k3"),
    "key in": (In(("key",), (b"k1", b"nobody")), lambda row: row["key"] == b"k1"),
    "key null": (IsNull(("key",)), lambda row: row["key"] is None),
    "key there": (IsNotNull(("key",)), lambda row: row["key"] is not None),
    "value =": (EqualTo(("value",), b"77"), lambda row: row["value"] == b"77"),
    "type": (EqualTo(("timestampType",), 0), lambda row: True),
    "topic": (StringStartsWith(("topic",), "pushed"), lambda row: True),
    "no such topic": (EqualTo(("topic",), "other"), lambda row: False),
}


@pytest.mark.parametrize("direct", ["always", "never"])
@pytest.mark.parametrize("name", _FILTERS)
def test_the_rows_are_those_that_match(broker: ServerProcess, topic: str, name: str, direct: str) -> None:
    everything = rows_of(pushing_reader(broker.kafka, subscribe=topic, direct=direct))
    assert len(everything) == 2000
    each, keeps = _FILTERS[name]
    reader = pushing_reader(broker.kafka, subscribe=topic, direct=direct)
    assert list(reader.pushFilters([each])) == []
    assert rows_of(reader) == [row for row in everything if keeps(row)]


def test_several_at_once(broker: ServerProcess, topic: str) -> None:
    reader = pushing_reader(broker.kafka, subscribe=topic)
    filters = [
        GreaterThan(("offset",), 100),
        LessThan(("timestamp",), _at(200)),
        EqualTo(("partition",), 1),
        EqualTo(("key",), b"k2"),
    ]
    assert list(reader.pushFilters(filters)) == []
    assert [row["offset"] for row in rows_of(reader)] == [n for n in range(101, 200) if n % 10 and n % 7 == 2]


def test_what_is_left_to_spark() -> None:
    left = [
        Not(EqualTo(("offset",), 5)),
        EqualTo(("headers", "key"), b"x"),
        GreaterThan(("key",), b"k"),
        EqualTo(("offset",), None),
        EqualTo(("timestamp",), datetime(2026, 1, 1)),
        StringStartsWith(("value",), "x"),
        IsNull(("offset",)),
    ]
    taken, rest = pushed([*left, EqualTo(("offset",), 5)])
    assert rest == left
    assert taken.bounds("offset") == (5, 5)
    assert taken.bounds("timestamp") == (None, None)


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The base offsets of the frames whose bodies were looked at."""
    seen: list[int] = []
    body = decoder.Decoder._body

    def note(self: Any, data: bytes, frame: Any) -> memoryview:
        seen.append(frame.header.base_offset)
        return body(self, data, frame)

    monkeypatch.setattr(decoder.Decoder, "_body", note)
    return seen


@pytest.mark.parametrize("direct", ["always", "never"])
def test_frames_of_other_times_are_not_unpacked(
    broker: ServerProcess, topic: str, unpacked: list[int], direct: str
) -> None:
    reader = pushing_reader(broker.kafka, subscribe=topic, direct=direct)
    reader.pushFilters([GreaterThanOrEqual(("timestamp",), _at(900))])
    assert len(rows_of(reader)) == 200
    assert len(unpacked) <= 8
    assert min(unpacked) >= 850


def test_spark_pushes_filters_where_it_is_set_to(spark: Any, broker: ServerProcess, topic: str) -> None:
    def table() -> Any:
        reader = spark.read.format("millstream").option("kafka.bootstrap.servers", broker.kafka)
        return reader.option("subscribe", topic).load()

    condition = "offset >= 990 and partition = 1 and key = X'6b33' and timestamp > '2020-01-01'"
    expected = [n for n in range(990, 1000) if n % 10 and n % 7 == 3]
    assert [row.offset for row in table().where(condition).collect()] == expected
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        filtered = table().where(condition)
        assert [row.offset for row in filtered.collect()] == expected
        assert filtered.rdd.getNumPartitions() == 1, "the other partition is not planned at all"
        assert table().where("offset = 5 or offset = 7").count() == 4, "what is not pushed, Spark does itself"
        assert table().count() == 2000
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
