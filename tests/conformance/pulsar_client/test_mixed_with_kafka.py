"""Topics that producers of both protocols write to, and names and partitions as both see them."""

import time
from collections.abc import Callable
from typing import Any

import pulsar
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from tests.conformance.pulsar_client.conftest import (
    TIMEOUT_MS,
    drain,
    numbered,
    publish,
    receive,
    subscribe,
    values,
)
from tests.support.pulsar_admin import administer
from tests.support.server_process import ServerProcess

Unique = Callable[[str], str]


def kafka_send(server: ServerProcess, topic: str, contents: list[bytes], **each: Any) -> list[tuple[int, int]]:
    """Produce with librdkafka; gives partition and offset of each."""
    producer = Producer({"bootstrap.servers": server.addresses["any"]})
    places: list[tuple[int, int]] = []
    for content in contents:
        producer.produce(
            topic, content, on_delivery=lambda _, one: places.append((one.partition(), one.offset())), **each
        )
    assert producer.flush(TIMEOUT_MS / 1000) == 0
    return places


def kafka_read(server: ServerProcess, topic: str, count: int) -> list[Any]:
    """Read everything with librdkafka."""
    settings = {"group.id": f"of-{topic}", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": server.addresses["any"], **settings})
    consumer.subscribe([topic])
    messages: list[Any] = []
    deadline_s = time.monotonic() + TIMEOUT_MS / 1000
    while len(messages) < count and time.monotonic() < deadline_s:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            messages.append(message)
    consumer.close()
    return messages


def test_producers_of_both_on_one_topic(client: Any, pulsar_broker: ServerProcess, unique: Unique) -> None:
    """One log, dense offsets, and each producer is told where its message is."""
    topic = unique("both")
    producer = client.create_producer(topic, batching_enabled=False)
    places: list[int] = []
    for number in range(10):
        places.append(producer.send(b"p%d" % number).entry_id())
        ((_, offset),) = kafka_send(pulsar_broker, topic, [b"k%d" % number])
        places.append(offset)
    assert places == list(range(20))
    expected = [text for n in range(10) for text in (b"p%d" % n, b"k%d" % n)]
    assert values(receive(subscribe(client, topic), 20)) == expected
    assert [message.value() for message in kafka_read(pulsar_broker, topic, 20)] == expected


@pytest.mark.parametrize("compression", ["LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_kafka_reads_what_was_compressed(
    client: Any, pulsar_broker: ServerProcess, unique: Unique, compression: str
) -> None:
    topic = unique("compressed")
    producer = client.create_producer(topic, compression_type=getattr(pulsar.CompressionType, compression))
    contents = [b"x" * 500 + b"%d" % n for n in range(100)]
    for number, content in enumerate(contents):
        producer.send_async(
            content, lambda *_: None, partition_key=f"k{number}", properties={"n": str(number)}, event_timestamp=7
        )
    producer.flush()
    messages = kafka_read(pulsar_broker, topic, 100)
    assert [message.value() for message in messages] == contents
    assert [message.key() for message in messages] == [b"k%d" % n for n in range(100)]
    assert [dict(message.headers())["n"] for message in messages] == [b"%d" % n for n in range(100)]


def test_kafka_reads_what_was_chunked(client: Any, pulsar_broker: ServerProcess, unique: Unique) -> None:
    """A chunk is a record for Kafka: it is all there, piece by piece, and what follows keeps its place."""
    topic = unique("chunked")
    producer = client.create_producer(topic, batching_enabled=False, chunking_enabled=True)
    large = bytes(range(256)) * 30_000
    producer.send(large)
    producer.send(b"small")
    messages = kafka_read(pulsar_broker, topic, 3)
    assert b"".join(message.value() for message in messages[:-1]) == large
    assert messages[-1].value() == b"small"


def test_partitions_made_by_pulsar(client: Any, pulsar_broker: ServerProcess, unique: Unique) -> None:
    topic, address = unique("made-by-pulsar"), pulsar_broker.addresses["any"]
    administer(address, "PUT", f"persistent/public/default/{topic}/partitions", 3)
    places = kafka_send(pulsar_broker, topic, numbered(9), key=b"k")
    consumer = subscribe(client, topic)
    messages = receive(consumer, 9)
    assert {message.message_id().partition() for message in messages} == {partition for partition, _ in places}
    assert values(messages) == numbered(9)
    publish(client, f"{topic}-partition-2", [b"two"])
    assert [(one.partition(), one.value()) for one in kafka_read(pulsar_broker, topic, 10)].count((2, b"two")) == 1


def test_one_partition_made_as_partitioned_is_a_partition(
    client: Any, pulsar_broker: ServerProcess, unique: Unique
) -> None:
    topic, address = unique("single"), pulsar_broker.addresses["any"]
    administer(address, "PUT", f"persistent/public/default/{topic}/partitions", 1)
    assert client.get_topic_partitions(topic) == [f"persistent://public/default/{topic}-partition-0"]
    assert client.create_producer(topic).send(b"pulsar").partition() == 0
    assert kafka_send(pulsar_broker, topic, [b"kafka"]) == [(0, 1)]
    assert values(receive(subscribe(client, topic), 2)) == [b"pulsar", b"kafka"]


@pytest.mark.parametrize("tenant", ["public", "other"])
def test_names_of_other_namespaces(client: Any, pulsar_broker: ServerProcess, unique: Unique, tenant: str) -> None:
    """Kafka sees tenant and namespace in front of the name, but for `public` and `default`."""
    address, space = pulsar_broker.addresses["any"], unique("space")
    if tenant != "public":
        administer(address, "PUT", f"tenants/{tenant}", {"allowedClusters": ["standalone"]})
    administer(address, "PUT", f"namespaces/{tenant}/{space}")
    client.create_producer(f"persistent://{tenant}/{space}/t").send(b"pulsar")
    name = f"{space}.t" if tenant == "public" else f"{tenant}.{space}.t"
    assert name in AdminClient({"bootstrap.servers": address}).list_topics(timeout=20).topics
    kafka_send(pulsar_broker, name, [b"kafka"])
    assert values(drain(subscribe(client, f"{tenant}/{space}/t"))) == [b"pulsar", b"kafka"]
