"""kafka-python's transactions."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from tests.conformance.kafka_python.conftest import TIMEOUT_S, consuming, read, send_values
from tests.support.server_process import ServerProcess


@pytest.fixture
def opened(broker: ServerProcess) -> Iterator[Callable[[str], Any]]:
    """Makes producers that have taken over a transactional id, and closes them."""
    producers: list[Any] = []

    def open_one(name: str) -> Any:
        producers.append(KafkaProducer(bootstrap_servers=broker.kafka, transactional_id=name))
        producers[-1].init_transactions()
        return producers[-1]

    yield open_one
    for producer in producers:
        producer.close(timeout=0)


def write(producer: Any, topic: str, *values: bytes) -> None:
    for value in values:
        producer.send(topic, value, partition=0).get(TIMEOUT_S)


def values(server: ServerProcess, topic: str, count: int, isolation_level: str) -> list[bytes]:
    with consuming(server, isolation_level=isolation_level) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        return [record.value for record in read(consumer, count)]


def test_commit_and_abort(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str], opened: Callable[[str], Any]
) -> None:
    topic = new_topic()
    producer = opened(unique("txn"))
    for n, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        write(producer, topic, b"%d" % n)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    assert values(broker, topic, 2, "read_committed") == [b"0", b"2"]
    assert values(broker, topic, 3, "read_uncommitted") == [b"0", b"1", b"2"]


def test_offsets_go_with_the_transaction(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str], opened: Callable[[str], Any]
) -> None:
    source, sink, group = new_topic(), new_topic(), unique("group")
    send_values(broker, source, [b"a", b"b"])
    producer = opened(unique("txn"))
    place = TopicPartition(source, 0)
    with consuming(broker, source, group_id=group, isolation_level="read_committed") as consumer:
        records = read(consumer, 2)
        for commit, expected in ((False, None), (True, 2)):
            producer.begin_transaction()
            write(producer, sink, *(record.value.upper() for record in records))
            offsets = {place: OffsetAndMetadata(2, "", -1)}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
            assert consumer.committed(place) == expected
    assert values(broker, sink, 2, "read_committed") == [b"A", b"B"]


def test_the_next_producer_of_a_name_fences_the_one_before(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str], opened: Callable[[str], Any]
) -> None:
    topic, name = new_topic(), unique("txn")
    zombie = opened(name)
    zombie.begin_transaction()
    write(zombie, topic, b"of the zombie")
    heir = opened(name)
    heir.begin_transaction()
    write(heir, topic, b"of its heir")
    with pytest.raises(KafkaError):
        zombie.commit_transaction()
    heir.commit_transaction()
    assert values(broker, topic, 1, "read_committed") == [b"of its heir"]
