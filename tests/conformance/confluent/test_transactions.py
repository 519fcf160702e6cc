"""librdkafka's transactions: commit, abort, offsets, fencing, time-outs, and servers that are killed between."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.conformance.confluent.conftest import TIMEOUT_S, consuming, read, send
from tests.support.server_process import ServerProcess, start

COMMITTED: dict[str, Any] = {"isolation.level": "read_committed"}
UNCOMMITTED: dict[str, Any] = {"isolation.level": "read_uncommitted"}


def open_producer(server: ServerProcess, transactional_id: str, **config: Any) -> Any:
    producer = Producer(
        {"bootstrap.servers": server.kafka, "transactional.id": transactional_id, "linger.ms": 0, **config}
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def write(producer: Any, topic: str, *values: str, partition: int = 0) -> None:
    """Produce, and wait until all is acknowledged."""
    for value in values:
        producer.produce(topic, value.encode(), partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def values_of(server: ServerProcess, topic: str, count: int, **config: Any) -> list[str]:
    with consuming(server, **config) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [message.value().decode() for message in read(consumer, count)]


def nothing_more(server: ServerProcess, topic: str, offset: int, **config: Any) -> bool:
    with consuming(server, **config) as consumer:
        consumer.assign([TopicPartition(topic, 0, offset)])
        return all(message.error() for message in consumer.consume(1, 0.5))


def test_committed_records_show_and_aborted_ones_do_not(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic = new_topic()
    producer = open_producer(broker, unique("txn"))
    producer.begin_transaction()
    write(producer, topic, "a", "b")
    assert nothing_more(broker, topic, 0, **COMMITTED)
    producer.commit_transaction(TIMEOUT_S)
    producer.begin_transaction()
    write(producer, topic, "gone", "gone too")
    producer.abort_transaction(TIMEOUT_S)
    producer.begin_transaction()
    write(producer, topic, "c")
    producer.commit_transaction(TIMEOUT_S)
    assert values_of(broker, topic, 3, **COMMITTED) == ["a", "b", "c"]


def test_readers_of_what_is_not_committed_see_it_at_once_and_for_good(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str], admin: Any
) -> None:
    topic = new_topic()
    send(broker, [{"topic": topic, "value": b"before"}])
    producer = open_producer(broker, unique("txn"))
    producer.begin_transaction()
    write(producer, topic, "open")
    send(broker, [{"topic": topic, "value": b"behind"}])

    def latest(level: IsolationLevel) -> int:
        place = TopicPartition(topic, 0)
        found = admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=level)
        offset: int = found[place].result(TIMEOUT_S).offset
        return offset

    assert values_of(broker, topic, 3, **UNCOMMITTED) == ["before", "open", "behind"]
    assert values_of(broker, topic, 1, **COMMITTED) == ["before"]
    assert (latest(IsolationLevel.READ_UNCOMMITTED), latest(IsolationLevel.READ_COMMITTED)) == (3, 1)
    producer.abort_transaction(TIMEOUT_S)
    assert values_of(broker, topic, 3, **UNCOMMITTED) == ["before", "open", "behind"]
    assert values_of(broker, topic, 2, **COMMITTED) == ["before", "behind"]
    assert latest(IsolationLevel.READ_COMMITTED) == 3


def test_a_long_aborted_stretch_does_not_hold_a_reader_up(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic = new_topic()
    producer = open_producer(broker, unique("txn"), **{"batch.num.messages": 10})
    for _ in range(3):
        producer.begin_transaction()
        write(producer, topic, *(f"gone {n}" for n in range(2000)))
        producer.abort_transaction(TIMEOUT_S)
    producer.begin_transaction()
    write(producer, topic, "stays")
    producer.commit_transaction(TIMEOUT_S)
    with consuming(broker, **{**COMMITTED, "fetch.message.max.bytes": 20_000}) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [(one.offset(), one.value()) for one in read(consumer, 1)] == [(6000, b"stays")]


def test_several_partitions_and_topics_at_once(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topics = [new_topic(3), new_topic(2)]
    producer = open_producer(broker, unique("txn"))
    for round_ in range(4):
        producer.begin_transaction()
        for topic, count in zip(topics, (3, 2), strict=True):
            for partition in range(count):
                write(producer, topic, f"{round_} {partition}", partition=partition)
        if round_ % 2:
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
    with consuming(broker, **COMMITTED) as consumer:
        places = [(topic, n) for topic, count in zip(topics, (3, 2), strict=True) for n in range(count)]
        consumer.assign([TopicPartition(topic, n, 0) for topic, n in places])
        found = {(one.topic(), one.partition(), one.value()) for one in read(consumer, 10)}
    assert found == {(topic, n, b"%d %d" % (round_, n)) for topic, n in places for round_ in (0, 2)}


def test_offsets_go_with_the_transaction(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str], admin: Any
) -> None:
    source, sink, group = new_topic(), new_topic(), unique("group")
    send(broker, [{"topic": source, "value": b"%d" % n} for n in range(4)])
    producer = open_producer(broker, unique("txn"))

    def committed() -> int:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(source, 0)])
        answer = admin.list_consumer_group_offsets([wanted], require_stable=False)[group].result(TIMEOUT_S)
        offset: int = answer.topic_partitions[0].offset
        return offset

    with consuming(broker, group, **COMMITTED) as consumer:
        consumer.subscribe([source])
        for commit, expected in ((False, -1001), (True, 2)):
            messages = read(consumer, 2)
            producer.begin_transaction()
            write(producer, sink, *(one.value().decode() for one in messages))
            position = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), TIMEOUT_S)
            assert committed() == -1001
            if commit:
                producer.commit_transaction(TIMEOUT_S)
            else:
                producer.abort_transaction(TIMEOUT_S)
                consumer.seek(TopicPartition(source, 0, 0))
            assert committed() == expected
    assert values_of(broker, sink, 2, **COMMITTED) == ["0", "1"]


def test_an_offset_that_is_pending_is_waited_for(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str], admin: Any
) -> None:
    source, group = new_topic(), unique("group")
    send(broker, [{"topic": source, "value": b"%d" % n} for n in range(3)])
    producer = open_producer(broker, unique("txn"))
    with consuming(broker, group, **COMMITTED) as consumer:
        consumer.subscribe([source])
        read(consumer, 3)
        producer.begin_transaction()
        place = TopicPartition(source, 0, 2)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), TIMEOUT_S)
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(source, 0)])
    pending = admin.list_consumer_group_offsets([wanted], require_stable=True)[group].result(TIMEOUT_S)
    assert pending.topic_partitions[0].error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT
    producer.commit_transaction(TIMEOUT_S)
    stable = admin.list_consumer_group_offsets([wanted], require_stable=True)[group].result(TIMEOUT_S)
    assert (stable.topic_partitions[0].error, stable.topic_partitions[0].offset) == (None, 2)


def test_the_next_producer_of_a_name_fences_the_one_before(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic, name = new_topic(), unique("txn")
    zombie = open_producer(broker, name)
    zombie.begin_transaction()
    write(zombie, topic, "of the zombie")
    producer = open_producer(broker, name)
    producer.begin_transaction()
    write(producer, topic, "of its heir")
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(TIMEOUT_S)
    assert refused.value.args[0].fatal()
    assert refused.value.args[0].code() in {KafkaError._FENCED, KafkaError.PRODUCER_FENCED}
    producer.commit_transaction(TIMEOUT_S)
    assert values_of(broker, topic, 1, **COMMITTED) == ["of its heir"]
    assert nothing_more(broker, topic, 2, **COMMITTED)


def test_a_zombie_cannot_write_any_more(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic, name = new_topic(), unique("txn")
    zombie = open_producer(broker, name)
    zombie.begin_transaction()
    write(zombie, topic, "first")
    open_producer(broker, name)
    zombie.produce(topic, b"second", partition=0)
    with pytest.raises((KafkaException, SystemError)):  # librdkafka may raise from within a callback
        zombie.commit_transaction(TIMEOUT_S)
    assert nothing_more(broker, topic, 0, **COMMITTED)
    assert values_of(broker, topic, 1, **UNCOMMITTED) == ["first"]
    assert nothing_more(broker, topic, 1, **UNCOMMITTED)


def test_a_transaction_times_out_and_its_producer_is_fenced(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic = new_topic()
    producer = open_producer(broker, unique("txn"), **{"transaction.timeout.ms": 1000})
    producer.begin_transaction()
    write(producer, topic, "late")
    send(broker, [{"topic": topic, "value": b"behind"}])
    assert values_of(broker, topic, 1, **COMMITTED) == ["behind"]
    with pytest.raises(KafkaException):
        producer.commit_transaction(TIMEOUT_S)


def test_a_timeout_out_of_bounds_is_refused(broker: ServerProcess, unique: Callable[[str], str]) -> None:
    settings = {"bootstrap.servers": broker.kafka, "transactional.id": unique("txn")}
    producer = Producer({**settings, "transaction.timeout.ms": 900_001})
    with pytest.raises(KafkaException) as refused:
        producer.init_transactions(TIMEOUT_S)
    assert refused.value.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[list[ServerProcess]]:
    """A server that the test may kill; the last of the list is the one that runs."""
    servers = [start(str(tmp_path / "data"))]
    yield servers
    if servers[-1].process.poll() is None:
        assert servers[-1].stop() == 0
    assert "Traceback" not in servers[-1].log()


def again(servers: list[ServerProcess]) -> ServerProcess:
    """Kill the server, and start another on its data and its port."""
    servers[-1].kill()
    servers.append(start(servers[-1].data_dir, f"kafka={servers[-1].kafka}"))
    return servers[-1]


def make_topic(server: ServerProcess, name: str) -> str:
    admin: Any = AdminClient({"bootstrap.servers": server.kafka})
    send(server, [{"topic": name, "value": b"0"}])
    assert name in admin.list_topics(timeout=TIMEOUT_S).topics
    return name


def test_a_transaction_outlives_the_server(own_server: list[ServerProcess]) -> None:
    server = own_server[-1]
    topic = make_topic(server, "orders")
    producer = open_producer(server, "t")
    producer.begin_transaction()
    write(producer, topic, "1", "2")
    server = again(own_server)
    assert values_of(server, topic, 1, **COMMITTED) == ["0"]
    assert nothing_more(server, topic, 1, **COMMITTED)
    write(producer, topic, "3")
    producer.commit_transaction(TIMEOUT_S)
    server = again(own_server)
    assert values_of(server, topic, 4, **COMMITTED) == ["0", "1", "2", "3"]


def test_what_a_killed_server_left_open_is_aborted_by_the_next_producer(own_server: list[ServerProcess]) -> None:
    server = own_server[-1]
    topic = make_topic(server, "orders")
    first = open_producer(server, "t")
    first.begin_transaction()
    write(first, topic, "1")
    server = again(own_server)
    second = open_producer(server, "t")
    second.begin_transaction()
    write(second, topic, "2")
    second.commit_transaction(TIMEOUT_S)
    server = again(own_server)
    assert values_of(server, topic, 2, **COMMITTED) == ["0", "2"]
    assert values_of(server, topic, 3, **UNCOMMITTED) == ["0", "1", "2"]


def test_what_nobody_ends_times_out_after_a_restart(own_server: list[ServerProcess]) -> None:
    server = own_server[-1]
    topic = make_topic(server, "orders")
    producer = open_producer(server, "t", **{"transaction.timeout.ms": 3000})
    producer.begin_transaction()
    write(producer, topic, "1")
    server = again(own_server)
    began_s = time.monotonic()
    send(server, [{"topic": topic, "value": b"2"}])
    assert values_of(server, topic, 2, **COMMITTED) == ["0", "2"]
    assert time.monotonic() - began_s < 30
