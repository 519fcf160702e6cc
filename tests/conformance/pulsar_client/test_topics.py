"""Topics: their names old and new, partitions, lists of them, and those that come while somebody looks."""

import re
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from tests.conformance.pulsar_client.conftest import (
    drain,
    nothing_comes,
    numbered,
    publish,
    receive,
    subscribe,
    values,
)
from tests.support.pulsar_admin import administer
from tests.support.server_process import ServerProcess

Another = Callable[..., Any]
Unique = Callable[[str], str]


@pytest.fixture
def namespace(pulsar_broker: ServerProcess, unique: Unique) -> str:
    """A namespace of its own."""
    name = f"public/{unique('topics')}"
    administer(pulsar_broker.addresses["any"], "PUT", f"namespaces/{name}")
    return name


def test_the_ways_to_write_a_name(client: Any, unique: Unique) -> None:
    """All are one topic; with four parts, a cluster stands in the middle, and it means nothing."""
    topic = unique("names")
    forms = [
        topic,
        f"public/default/{topic}",
        f"persistent://public/default/{topic}",
        f"persistent://public/standalone/default/{topic}",
    ]
    for form in forms:
        publish(client, form, [form.encode()])
    for number, form in enumerate(forms):
        consumer = subscribe(client, form, f"s{number}")
        assert values(receive(consumer, 4)) == [one.encode() for one in forms]


@pytest.mark.parametrize("name", ["with space", "with%2Fslash", "ünïcödé", "a" * 200, "dots.and-dashes_and:colons"])
def test_odd_names(client: Any, namespace: str, name: str) -> None:
    topic = f"persistent://{namespace}/{name}"
    publish(client, topic, [b"value"])
    assert values(receive(subscribe(client, topic), 1)) == [b"value"]


def test_partitions_are_topics_too(client: Any, namespace: str, pulsar_broker: ServerProcess) -> None:
    address = pulsar_broker.addresses["any"]
    administer(address, "PUT", f"persistent/{namespace}/t/partitions", 3)
    topic = f"persistent://{namespace}/t"
    assert client.get_topic_partitions(topic) == [f"{topic}-partition-{n}" for n in range(3)]
    for number in range(3):
        publish(client, f"{topic}-partition-{number}", [b"%d" % number])
    assert sorted(values(receive(subscribe(client, topic), 3))) == [b"0", b"1", b"2"]
    assert values(receive(subscribe(client, f"{topic}-partition-1", "one"), 1)) == [b"1"]
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(f"{topic}-partition-3")


def test_partitions_that_are_added_are_found(another: Another, namespace: str, pulsar_broker: ServerProcess) -> None:
    """The client looks for more every second here; by default, every minute."""
    address = pulsar_broker.addresses["any"]
    administer(address, "PUT", f"persistent/{namespace}/t/partitions", 1)
    topic = f"persistent://{namespace}/t"
    consumer = subscribe(another(), topic)
    administer(address, "POST", f"persistent/{namespace}/t/partitions", 4)
    fresh = another()
    publish(fresh, f"{topic}-partition-3", [b"new"])
    assert len(fresh.get_topic_partitions(topic)) == 4
    again = subscribe(fresh, topic, "again")
    assert values(receive(again, 1)) == [b"new"]
    assert nothing_comes(consumer, 100)


def test_a_namespace_makes_its_topics_as_it_likes(client: Any, namespace: str, pulsar_broker: ServerProcess) -> None:
    address = pulsar_broker.addresses["any"]
    path = f"namespaces/{namespace}/autoTopicCreation"
    administer(address, "POST", path, {"allowAutoTopicCreation": False})
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(f"persistent://{namespace}/none")
    with pytest.raises(pulsar.TopicNotFound):
        subscribe(client, f"persistent://{namespace}/none")
    administer(address, "PUT", f"persistent/{namespace}/made")
    assert client.create_producer(f"persistent://{namespace}/made").send(b"x").partition() == -1


def test_a_pattern_of_topics(client: Any, namespace: str, pulsar_broker: ServerProcess) -> None:
    """Plain and partitioned topics that match, and none of the others."""
    address = pulsar_broker.addresses["any"]
    administer(address, "PUT", f"persistent/{namespace}/logs-b/partitions", 2)
    for name in ("logs-a", "logs-b", "metrics"):
        publish(client, f"persistent://{namespace}/{name}", [name.encode()])
    consumer = subscribe(client, re.compile(f"persistent://{namespace}/logs-.*"))
    messages = drain(consumer)
    assert sorted(values(messages)) == [b"logs-a", b"logs-b"]
    everything = subscribe(client, re.compile(f"{namespace}/.*"), "all")
    assert sorted(values(drain(everything))) == [b"logs-a", b"logs-b", b"metrics"]


@pytest.mark.parametrize("mode", ["PersistentOnly", "NonPersistentOnly", "AllTopics"])
def test_a_pattern_over_domains(client: Any, namespace: str, mode: str) -> None:
    """A topic that keeps nothing is there as long as somebody is connected to it."""
    volatile = client.create_producer(f"non-persistent://{namespace}/volatile")
    kept = client.create_producer(f"persistent://{namespace}/kept")
    consumer = subscribe(
        client, re.compile(f"{namespace}/.*"), regex_subscription_mode=getattr(pulsar.RegexSubscriptionMode, mode)
    )
    volatile.send(b"volatile")
    kept.send(b"kept")
    expected = {"PersistentOnly": [b"kept"], "NonPersistentOnly": [b"volatile"], "AllTopics": [b"kept", b"volatile"]}
    assert sorted(values(drain(consumer))) == expected[mode]


def test_several_topics_at_once(client: Any, namespace: str) -> None:
    topics = [f"persistent://{namespace}/t{number}" for number in range(5)]
    for number, topic in enumerate(topics):
        publish(client, topic, [b"%d" % number])
    messages = receive(subscribe(client, topics), 5)
    assert {(message.topic_name(), message.data()) for message in messages} == {
        (topic, b"%d" % number) for number, topic in enumerate(topics)
    }


def test_many_producers_and_consumers_on_one_connection(client: Any, namespace: str) -> None:
    topics = [f"persistent://{namespace}/many-{number}" for number in range(40)]
    consumers = [subscribe(client, topic) for topic in topics]
    producers = [
        client.create_producer(topic, batching_enabled=number % 2 == 0) for number, topic in enumerate(topics)
    ]
    for content in numbered(50):
        for producer in producers:
            producer.send_async(content, lambda *_: None)
    for producer in producers:
        producer.flush()
    for consumer in consumers:
        assert values(receive(consumer, 50)) == numbered(50)
