"""Rows go to the partitions that Kafka's clients would have chosen."""

import random
import zlib

import numpy as np
import pytest
from confluent_kafka import Producer
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from millstream.spark.errors import UnwritableRow
from millstream.spark.write.columns import rows_of
from millstream.spark.write.hashes import Keys, crc32, murmur2
from millstream.spark.write.partitioners import Partitioner, Spreading, partitions_of
from tests.spark.conftest import Topics
from tests.spark.write.conftest import messages
from tests.spark.write.tables import table
from tests.support.server_process import ServerProcess

_PARTITIONS = 7


def _keys(seed: str, sizes: list[int]) -> list[bytes]:
    noise = random.Random(seed)
    return [noise.randbytes(size) for size in sizes]


def _buffered(keys: list[bytes]) -> Keys:
    sizes = np.array([len(key) for key in keys], dtype=np.int64)
    begins = np.concatenate([[3], 3 + np.cumsum(sizes)])[: len(keys)]
    return Keys(np.frombuffer(b"abc" + b"".join(keys), dtype=np.uint8), begins, sizes)


@pytest.mark.parametrize(
    "sizes",
    [[], [0], [0, 1, 2, 3, 4, 5], [16] * 100, [n % 37 for n in range(300)], [4] * 40 + [1001], [3, 70_001, 70_002]],
    ids=lambda sizes: f"{len(sizes)} up to {max(sizes, default=0)}",
)
def test_hashes_are_those_of_one_key_after_the_other(sizes: list[int]) -> None:
    keys = _keys("hashes", sizes)
    assert murmur2(_buffered(keys)).tolist() == [murmur2_of_kafka_python(key) & 0xFFFFFFFF for key in keys]
    assert crc32(_buffered(keys)).tolist() == [zlib.crc32(key) for key in keys]


@pytest.mark.parametrize(
    "partitioner",
    [one for one in Partitioner if one not in (Partitioner.RANDOM, Partitioner.ROUNDROBIN)],
)
def test_keys_go_where_librdkafka_sends_them(partitioner: Partitioner, broker: ServerProcess, topics: Topics) -> None:
    topic = topics.create("partitioner", partitions=_PARTITIONS)
    # An empty key and a missing one are spread by some partitioners, which cannot be foretold.
    spread = {
        Partitioner.CONSISTENT_RANDOM: (None, b""),
        Partitioner.MURMUR2_RANDOM: (None,),
        Partitioner.FNV1A_RANDOM: (None,),
    }.get(partitioner, ())
    special: list[bytes | None] = [key for key in (None, b"") if key not in spread]
    keys = [*_keys("librdkafka", [1 + n % 23 for n in range(300)]), *special]
    producer = Producer(
        {"bootstrap.servers": broker.kafka, "partitioner": partitioner.value, "linger.ms": 20, "log_level": 0}
    )
    for index, key in enumerate(keys):
        producer.produce(topic, b"%d" % index, key)
    assert producer.flush(30) == 0
    theirs = {
        int(message.value()): partition
        for partition, found in messages(broker.kafka, topic).items()
        for message in found
    }
    rows = rows_of(table(key=keys, value=[b""] * len(keys)), topic_is_given=True, now_ms=0)
    ours = partitions_of(rows, topic, _PARTITIONS, partitioner, Spreading(0, 1000))
    assert dict(enumerate(ours.tolist())) == theirs


def test_rows_without_keys_fill_a_batch_of_each_partition_in_turn() -> None:
    rows = rows_of(table(value=[b"x" * 10] * 100), topic_is_given=True, now_ms=0)
    for partitioner in (Partitioner.MURMUR2_RANDOM, Partitioner.RANDOM, Partitioner.CONSISTENT_RANDOM):
        spreading = Spreading(1, 200)
        first = partitions_of(rows, "t", 4, partitioner, spreading).tolist()
        assert first == [(1 + n // 20) % 4 for n in range(100)]
        assert partitions_of(rows, "t", 4, partitioner, spreading).tolist()[0] == 2, "it goes on"
        assert partitions_of(rows, "u", 4, partitioner, spreading).tolist()[0] == 1, "each topic has turns of its own"


def test_round_robin() -> None:
    rows = rows_of(table(key=[b"same"] * 5, value=[b""] * 5), topic_is_given=True, now_ms=0)
    spreading = Spreading(2, 200)
    assert partitions_of(rows, "t", 3, Partitioner.ROUNDROBIN, spreading).tolist() == [2, 0, 1, 2, 0]
    assert partitions_of(rows, "t", 3, Partitioner.ROUNDROBIN, spreading).tolist() == [1, 2, 0, 1, 2]


def test_the_column_goes_before_the_partitioner() -> None:
    keys = _keys("column", [8] * 6)
    hashed = partitions_of(
        rows_of(table(key=keys, value=keys), topic_is_given=True, now_ms=0),
        "t",
        _PARTITIONS,
        Partitioner.MURMUR2,
        Spreading(0, 100),
    ).tolist()
    given = [3, None, 0, None, 6, None]
    rows = rows_of(table(key=keys, value=keys, partition=given), topic_is_given=True, now_ms=0)
    found = partitions_of(rows, "t", _PARTITIONS, Partitioner.MURMUR2, Spreading(0, 100)).tolist()
    assert found == [other if one is None else one for one, other in zip(given, hashed, strict=True)]


@pytest.mark.parametrize("wrong", [-2, _PARTITIONS])
def test_a_partition_that_there_is_not(wrong: int) -> None:
    rows = rows_of(table(value=[b"1", b"2"], partition=[0, wrong]), topic_is_given=True, now_ms=0)
    with pytest.raises(UnwritableRow, match=f"a row names partition {wrong}, and topic 't' has {_PARTITIONS}"):
        partitions_of(rows, "t", _PARTITIONS, Partitioner.MURMUR2, Spreading(0, 100))
