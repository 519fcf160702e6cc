"""What the ledger says is what was written last, however large, and whatever else its group has."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from millstream.spark.errors import WriteRefused
from millstream.spark.write.cluster import Cluster
from millstream.spark.write.ledger import Entry, Ledger, Part, State
from millstream.spark.write.transactions import Slot, Transaction
from tests.spark.conftest import Topics
from tests.spark.write.conftest import options_for
from tests.support.server_process import ServerProcess


@pytest.fixture
def cluster(broker: ServerProcess) -> Iterator[Cluster]:
    with Cluster(options_for(broker.kafka)) as made:
        yield made


@pytest.fixture
def topic(topics: Topics) -> str:
    return topics.create("ledger", partitions=3)


def _part(partition: int, producer_id: int = 1) -> Part:
    return Part(Transaction(Slot(partition, 0), producer_id, 0), rows=10, digest=0xFFFFFFFF)


def test_an_entry_comes_back(cluster: Cluster, topic: str) -> None:
    ledger = cluster.ledger(f"comes back {topic}")
    assert ledger.read() is None
    intent = Entry(State.INTENT, 0, "query", (topic, 1), 17, (_part(0), _part(3)))
    ledger.write(intent, {(topic, 1): 17, (topic, 2): 5})
    assert ledger.read() == intent
    assert intent.intends(0)
    assert not intent.covers(0)
    done = Entry(State.DONE, 0, "query", (topic, 1), 17)
    ledger.write(done, {})
    assert ledger.read() == done
    assert done.covers(0)
    assert not done.covers(1)


def test_an_intent_of_thousands_of_tasks(cluster: Cluster, topic: str) -> None:
    ledger = cluster.ledger(f"large {topic}")
    noise = random.Random("ledger")
    parts = tuple(
        Part(
            Transaction(Slot(n * 2, n % 4), noise.randrange(2**40), noise.randrange(2**15)),
            noise.randrange(2**33),
            noise.randrange(2**32),
        )
        for n in range(3000)
    )
    entry = Entry(State.INTENT, 2**40, "query", (topic, 0), 1, parts)
    ledger.write(entry, {(topic, 0): 1})
    assert ledger.read() == entry
    assert entry.part_of(2 * 2999) == parts[2999]
    assert entry.part_of(1) is None
    # The first part of the next intent counts at once, and with it no part of the one before.
    smaller = replace(entry, batch_id=2**40 + 1, parts=parts[:1])
    ledger.write(smaller, {})
    assert ledger.read() == smaller


def test_parts_of_another_batch_are_not_taken(cluster: Cluster, topic: str, topics: Topics) -> None:
    name = f"torn {topic}"
    ledger = cluster.ledger(name)
    entry = Entry(State.INTENT, 1, None, (topic, 0), 1, tuple(_part(n, n * 2**33) for n in range(600)))
    ledger.write(entry, {(topic, 0): 1})
    # As when it is written by hand: what goes on elsewhere is of another batch.
    Ledger(cluster.coordinators, f"{name}.1").write(replace(entry, batch_id=2, parts=()), {})
    with pytest.raises(WriteRefused, match=r"ledger of the sink is damaged: group millstream-sink-torn .*\.1"):
        ledger.read()


def test_the_latest_batch_counts_whatever_partition_it_stands_at(cluster: Cluster, topic: str) -> None:
    ledger = cluster.ledger(f"latest {topic}")
    for batch, partition in ((0, 2), (1, 0), (10, 1), (9, 2)):
        ledger.write(Entry(State.DONE, batch, "q", (topic, partition), 5 * batch), {})
    found = ledger.read()
    assert found is not None
    assert (found.batch_id, found.place, found.offset) == (10, (topic, 1), 50)


def test_the_group_shows_how_far_the_sink_has_written(cluster: Cluster, topic: str, topics: Topics) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions

    ledger = cluster.ledger(f"shown {topic}")
    ledger.write(Entry(State.DONE, 4, "q", (topic, 0), 11), {(topic, 0): 11, (topic, 2): 23})
    request = ConsumerGroupTopicPartitions(f"millstream-sink-shown {topic}")
    [answer] = topics.admin.list_consumer_group_offsets([request]).values()
    shown = {each.partition: each.offset for each in answer.result().topic_partitions}
    assert shown == {0: 11, 2: 23}


def test_an_entry_of_a_later_version(cluster: Cluster, topic: str, topics: Topics) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    group = f"millstream-sink-version {topic}"
    place = TopicPartition(topic, 0, 1, "millstream-sink/9 what it may be")
    [changed] = topics.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [place])]).values()
    changed.result()
    with pytest.raises(WriteRefused, match="of another version of Millstream: 'millstream-sink/9'"):
        cluster.ledger(f"version {topic}").read()
