"""non-persistent:// topics through the C++ client: delivered now, or never."""

import re
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from tests.conformance.pulsar_client.conftest import TIMEOUT_MS, nothing_comes, numbered, receive, values


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
    consumer.unsubscribe()
