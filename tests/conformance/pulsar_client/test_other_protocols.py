"""Topics and subscriptions that Pulsar shares with Kafka."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import pulsar
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.pulsar_client.conftest import (
    TIMEOUT_MS,
    drain,
    nothing_comes,
    numbered,
    publish,
    receive,
    subscribe,
    values,
)
from tests.support.server_process import ServerProcess

Unique = Callable[[str], str]
GROUPED_S = 0.4


def kafka_send(server: ServerProcess, topic: str, messages: Sequence[dict[str, Any]], **config: Any) -> None:
    """Produce with librdkafka, in one batch if nothing else is said."""
    producer = Producer({"bootstrap.servers": server.addresses["any"], "linger.ms": 100, **config})
    for message in messages:
        producer.produce(topic, **message)
    assert producer.flush(TIMEOUT_MS / 1000) == 0


def kafka_read(server: ServerProcess, topic: str, count: int, group: str = "g", *, commit: bool = False) -> list[Any]:
    """Read with librdkafka from where the group is."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.addresses["any"],
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    messages: list[Any] = []
    deadline_s = time.monotonic() + TIMEOUT_MS / 1000
    while len(messages) < count and time.monotonic() < deadline_s:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            messages.append(message)
    if commit and messages:
        consumer.commit(offsets=[TopicPartition(topic, 0, messages[-1].offset() + 1)], asynchronous=False)
    consumer.close()
    assert len(messages) == count
    return messages


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared])
def test_pulsar_reads_what_kafka_wrote(
    client: Any, pulsar_broker: ServerProcess, unique: Unique, admin: Any, compression: str, kind: Any
) -> None:
    topic = admin(unique("from-kafka"), 1)
    messages = [
        {"value": b"%06d" % number, "key": b"k%d" % (number % 3), "headers": [("h", b"%d" % number)]}
        for number in range(50)
    ]
    kafka_send(pulsar_broker, topic, messages, **{"compression.type": compression})
    consumer = subscribe(client, topic, consumer_type=kind)
    received = receive(consumer, 50)
    assert values(received) == numbered(50)
    assert [message.partition_key() for message in received] == [f"k{number % 3}" for number in range(50)]
    assert [message.properties() for message in received] == [{"h": str(number)} for number in range(50)]
    for message in received[:-1]:
        consumer.acknowledge(message)
    time.sleep(GROUPED_S)
    consumer.close()
    consumer = subscribe(client, topic, consumer_type=kind)
    left = drain(consumer)
    assert values(left)[-1] == b"000049"
    for message in left:
        consumer.acknowledge(message)
    time.sleep(GROUPED_S)
    consumer.close()
    assert nothing_comes(subscribe(client, topic, consumer_type=kind))


def test_null_values_and_binary_keys(client: Any, pulsar_broker: ServerProcess, unique: Unique, admin: Any) -> None:
    topic = admin(unique("binary"), 1)
    kafka_send(pulsar_broker, topic, [{"key": b"\xff\x00", "value": None}, {"key": None, "value": b""}])
    consumer = subscribe(client, topic)
    first, second = receive(consumer, 2)
    assert first.data() == b""
    assert second.data() == b""
    assert second.partition_key() == ""


def test_a_batch_of_kafka_larger_than_any_message_of_pulsar(
    client: Any, pulsar_broker: ServerProcess, unique: Unique, admin: Any
) -> None:
    topic = admin(unique("large"), 1)
    big = {"batch.size": 20_000_000, "message.max.bytes": 20_000_000, "compression.type": "zstd"}
    contents = [bytes([number]) * 100_000 for number in range(90)]
    kafka_send(pulsar_broker, topic, [{"value": content} for content in contents], **big)
    consumer = subscribe(client, topic)
    received = receive(consumer, 90)
    assert values(received) == contents
    for message in received[:40]:
        consumer.acknowledge(message)
    time.sleep(GROUPED_S)
    consumer.close()
    consumer = subscribe(client, topic)
    received = drain(consumer, 1000)
    assert 50 <= len(received) < 90
    assert values(received)[-50:] == contents[40:]
    consumer.acknowledge_cumulative(received[-1])
    time.sleep(GROUPED_S)
    consumer.close()
    assert nothing_comes(subscribe(client, topic))
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    read = []
    while reader.has_message_available():
        read.append(reader.read_next(TIMEOUT_MS).data())
    assert read == contents


@pytest.mark.parametrize("batch", [0, 10])
def test_kafka_reads_what_pulsar_wrote(client: Any, pulsar_broker: ServerProcess, unique: Unique, batch: int) -> None:
    topic = unique("to-kafka")
    publish(client, topic, numbered(50), batch=batch, partition_key="key", properties={"a": "1"})
    received = kafka_read(pulsar_broker, topic, 50, unique("group"))
    assert [message.value() for message in received] == numbered(50)
    assert [message.offset() for message in received] == list(range(50))
    assert {message.key() for message in received} == {b"key"}
    assert {json.dumps(message.headers(), default=str) for message in received} == {'[["a", "b\'1\'"]]'}


@pytest.mark.parametrize("writer", ["kafka", "pulsar"])
@pytest.mark.parametrize("cumulative", [False, True])
def test_one_cursor_for_both(
    client: Any, pulsar_broker: ServerProcess, unique: Unique, admin: Any, writer: str, cumulative: bool
) -> None:
    """A service changes its client library in the middle of a batch, there and back, and goes on where it was."""
    topic, group = admin(unique("shared-cursor"), 1), unique("service")
    if writer == "kafka":
        kafka_send(pulsar_broker, topic, [{"value": value} for value in numbered(20)])
    else:
        publish(client, topic, numbered(20), batch=20)
    assert [one.value() for one in kafka_read(pulsar_broker, topic, 7, group, commit=True)] == numbered(7)
    consumer = subscribe(client, topic, group)
    received = receive(consumer, 13)
    assert values(received) == numbered(13, 7)
    if cumulative:
        consumer.acknowledge_cumulative(received[-1])
    else:
        for message in received:
            consumer.acknowledge(message)
    time.sleep(GROUPED_S)
    consumer.close()
    publish(client, topic, [b"more"])
    assert [one.value() for one in kafka_read(pulsar_broker, topic, 1, group)] == [b"more"]
