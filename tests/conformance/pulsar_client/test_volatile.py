"""non-persistent:// topics through the C++ client: delivered now, or never."""

import re
from collections.abc import Callable
from typing import Any

import pulsar
import pytest
from pulsar.schema import JsonSchema, Record, String, StringSchema

from tests.conformance.pulsar_client.conftest import (
    TIMEOUT_MS,
    nothing_comes,
    numbered,
    receive,
    subscribe,
    values,
)
from tests.support.pulsar_admin import administer
from tests.support.server_process import ServerProcess


class _Note(Record):  # type: ignore[misc]  # the package has no types
    text = String()


def named(unique: Callable[[str], str]) -> str:
    return f"non-persistent://public/default/{unique('volatile')}"


def test_what_nobody_waits_for_is_gone(client: Any, unique: Callable[[str], str]) -> None:
    topic = named(unique)
    producer = client.create_producer(topic)
    producer.send(b"lost")
    consumer = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    for value in numbered(100):
        producer.send(value)
    messages = receive(consumer, 100)
    assert values(messages) == numbered(100)
    for message in messages:
        consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "s")
    assert nothing_comes(again)


def test_shared_and_fan_out(client: Any, another: Callable[..., Any], unique: Callable[[str], str]) -> None:
    topic = named(unique)
    shared = [
        another().subscribe(topic, "shared", consumer_type=pulsar.ConsumerType.Shared, receiver_queue_size=1000)
        for _ in range(2)
    ]
    alone = another().subscribe(topic, "alone")
    producer = client.create_producer(topic)
    for value in numbered(100):
        producer.send(value)
    halves = [values(receive(consumer, 50)) for consumer in shared]
    assert sorted(halves[0] + halves[1]) == numbered(100)
    assert values(receive(alone, 100)) == numbered(100)
    for consumer in shared:
        assert nothing_comes(consumer)


def test_a_second_exclusive_consumer_is_refused(
    client: Any, another: Callable[..., Any], unique: Callable[[str], str]
) -> None:
    topic = named(unique)
    client.subscribe(topic, "s")
    with pytest.raises(pulsar.ConsumerBusy):
        another().subscribe(topic, "s")


def test_patterns_and_readers(client: Any, unique: Callable[[str], str]) -> None:
    topic = named(unique)
    producer = client.create_producer(topic)
    consumer = client.subscribe(
        re.compile(topic + ".*"), "p", regex_subscription_mode=pulsar.RegexSubscriptionMode.NonPersistentOnly
    )
    reader = client.create_reader(topic, pulsar.MessageId.latest)
    producer.send(b"value")
    assert values(receive(consumer, 1)) == [b"value"]
    assert reader.read_next(TIMEOUT_MS).data() == b"value"
    # Its unsubscribe() ends the process now and then (3 times of 150; pulsar-client 3.13).
    consumer.close()


def test_partitions_that_were_declared(
    client: Any, pulsar_broker: ServerProcess, unique: Callable[[str], str]
) -> None:
    name = unique("volatile-parts")
    topic = f"non-persistent://public/default/{name}"
    administer(pulsar_broker.addresses["any"], "PUT", f"non-persistent/public/default/{name}/partitions", 3)
    assert client.get_topic_partitions(topic) == [f"{topic}-partition-{index}" for index in range(3)]
    consumer = subscribe(client, topic)
    producer = client.create_producer(topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution)
    for number in range(9):
        producer.send(b"%d" % number)
    messages = receive(consumer, 9)
    assert sorted(values(messages)) == [b"%d" % number for number in range(9)]
    assert {message.topic_name() for message in messages} == {f"{topic}-partition-{index}" for index in range(3)}


def test_a_schema_is_kept_and_checked(
    client: Any, another: Callable[..., Any], pulsar_broker: ServerProcess, unique: Callable[[str], str]
) -> None:
    name = unique("volatile-schema")
    topic = f"non-persistent://public/default/{name}"
    producer = client.create_producer(topic, schema=JsonSchema(_Note))
    consumer = subscribe(client, topic, schema=JsonSchema(_Note))
    producer.send(_Note(text="hello"))
    message = receive(consumer, 1)[0]
    assert message.value().text == "hello"
    assert message.schema_version().encode() == bytes(8)
    found = administer(pulsar_broker.addresses["any"], "GET", f"schemas/public/default/{name}/schema")
    assert found["type"] == "JSON"
    with pytest.raises(pulsar.IncompatibleSchema):
        another().create_producer(topic, schema=StringSchema())
    with pytest.raises(pulsar.IncompatibleSchema):
        subscribe(another(), topic, "other", schema=StringSchema())
