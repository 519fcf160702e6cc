"""Who gets what: the four kinds of subscriptions."""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

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

Another = Callable[..., Any]
Unique = Callable[[str], str]


@pytest.mark.parametrize("batch", [0, 7])
def test_exclusive_gets_all_in_order(client: Any, unique: Unique, batch: int) -> None:
    topic = unique("exclusive")
    publish(client, topic, numbered(100), batch=batch)
    consumer = subscribe(client, topic)
    messages = receive(consumer, 100)
    assert values(messages) == numbered(100)
    assert nothing_comes(consumer)
    consumer.acknowledge_cumulative(messages[-1])
    consumer.close()
    assert nothing_comes(subscribe(client, topic)), "all of it is acknowledged"


def test_a_second_exclusive_consumer_is_refused_at_once(client: Any, another: Another, unique: Unique) -> None:
    topic = unique("busy")
    first = subscribe(client, topic)
    began_s = time.monotonic()
    for other in (client, another()):
        with pytest.raises(pulsar.ConsumerBusy):
            subscribe(other, topic)
    assert time.monotonic() - began_s < 3
    publish(client, topic, [b"value"])
    assert values(receive(first, 1)) == [b"value"]
    first.close()
    subscribe(another(), topic)


def test_failover_goes_on_where_the_active_consumer_was(another: Another, unique: Unique) -> None:
    topic = unique("failover")
    failover = {"consumer_type": pulsar.ConsumerType.Failover}
    clients = [another(), another()]
    first = subscribe(clients[0], topic, consumer_name="a", **failover)
    publish(clients[0], topic, numbered(10))
    messages = receive(first, 10)
    for message in messages[:4]:
        first.acknowledge(message)
    second = subscribe(clients[1], topic, consumer_name="b", **failover)
    time.sleep(0.3)  # acknowledgements go out in groups
    first.close()
    assert values(receive(second, 6)) == numbered(6, 4)
    publish(clients[0], topic, [b"more"])
    assert values(receive(second, 1)) == [b"more"]


def test_shared_gives_everyone_a_share(client: Any, unique: Unique) -> None:
    topic = unique("shared")
    shared = {"consumer_type": pulsar.ConsumerType.Shared, "receiver_queue_size": 10}
    consumers = [subscribe(client, topic, **shared) for _ in range(3)]
    publish(client, topic, numbered(300))
    got: dict[int, list[bytes]] = defaultdict(list)
    while sum(map(len, got.values())) < 300:
        for index, consumer in enumerate(consumers):
            for _ in range(10):
                try:
                    message = consumer.receive(100)
                except pulsar.Timeout:
                    break
                consumer.acknowledge(message)
                got[index].append(message.data())
    assert sorted(value for some in got.values() for value in some) == numbered(300)
    assert all(len(some) > 50 for some in got.values())


def test_what_a_shared_consumer_held_goes_to_another_when_it_leaves(another: Another, unique: Unique) -> None:
    topic = unique("handed-on")
    shared = {"consumer_type": pulsar.ConsumerType.Shared}
    keeper, leaver = another(), another()
    first = subscribe(leaver, topic, **shared)
    publish(keeper, topic, numbered(20), batch=5)
    messages = receive(first, 20)
    for message in messages[:10]:
        first.acknowledge(message)
    second = subscribe(keeper, topic, **shared)
    time.sleep(0.3)
    leaver.close()
    left = receive(second, 10)
    assert sorted(values(left)) == numbered(10, 10)
    assert {message.redelivery_count() for message in left} == {1}


class Member:
    """A Key_Shared consumer that acknowledges on a thread of its own, and notes what it gets."""

    def __init__(self, client: Any, topic: str, notes: list[tuple[str, int, int]], number: int) -> None:
        self._consumer = subscribe(
            client, topic, consumer_type=pulsar.ConsumerType.KeyShared, consumer_name=f"member-{number}"
        )
        self._notes = notes
        self._number = number
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                message = self._consumer.receive(50)
            except pulsar.Timeout:
                continue
            self._notes.append((message.partition_key(), int(message.data()), self._number))
            self._consumer.acknowledge(message)

    def leave(self) -> None:
        """Stop taking messages; what was received is acknowledged."""
        self._stop.set()
        self._thread.join(TIMEOUT_MS / 1000)
        self._consumer.close()


@pytest.mark.parametrize("batching", [False, True])
def test_key_shared_keeps_the_order_of_each_key(another: Another, unique: Unique, batching: bool) -> None:
    """While members come and go: in the order of first arrival, no key runs backwards, and nothing is missing."""
    topic = unique("key-shared")
    notes: list[tuple[str, int, int]] = []
    members = [Member(another(), topic, notes, number) for number in range(2)]
    producer = another().create_producer(
        topic,
        batching_enabled=batching,
        batching_type=pulsar.BatchingType.KeyBased,
        batching_max_publish_delay_ms=5,
    )
    total = 3000
    for number in range(total):
        producer.send_async(b"%d" % number, None, partition_key=f"key-{number % 17}")
        if number in (1000, 1800):
            members.append(Member(another(), topic, notes, 2 if number == 1000 else 3))
        if number == 1400:
            members.pop(0).leave()
        if number % 50 == 0:
            time.sleep(0.005)
    producer.flush()
    deadline_s = time.monotonic() + TIMEOUT_MS / 1000
    while len({number for _, number, _ in list(notes)}) < total and time.monotonic() < deadline_s:
        time.sleep(0.05)
    for member in members:
        member.leave()
    firsts: dict[str, list[int]] = defaultdict(list)
    seen: set[int] = set()
    for key, number, _ in notes:
        if number not in seen:
            seen.add(number)
            firsts[key].append(number)
    assert len(seen) == total
    assert all(numbers == sorted(numbers) for numbers in firsts.values())
    assert len({member for _, _, member in notes}) == 4


def test_a_subscription_that_is_ended_begins_anew(client: Any, unique: Unique) -> None:
    topic = unique("unsubscribe")
    publish(client, topic, numbered(3))
    consumer = subscribe(client, topic)
    consumer.acknowledge_cumulative(receive(consumer, 3)[-1])
    consumer.unsubscribe()
    again = subscribe(client, topic)
    assert values(receive(again, 3)) == numbered(3)


def test_many_consumers_on_one_connection(client: Any, unique: Unique) -> None:
    topics = [unique("many") for _ in range(10)]
    consumers = [subscribe(client, topic) for topic in topics]
    for topic in topics:
        publish(client, topic, [topic.encode()])
    for topic, consumer in zip(topics, consumers, strict=True):
        assert values(receive(consumer, 1)) == [topic.encode()]


def test_several_topics_a_pattern_and_partitions(client: Any, pulsar_broker: Any, unique: Unique, admin: Any) -> None:
    """One consumer of several topics, one of a pattern, one of a topic of partitions."""
    stem = unique("multi")
    names = [f"{stem}-{letter}" for letter in "abc"]
    for name in names:
        publish(client, name, [name.encode()])
    several = subscribe(client, names, "several")
    assert sorted(values(receive(several, 3))) == sorted(name.encode() for name in names)
    matching = subscribe(client, re.compile(f"persistent://public/default/{stem}-.*"), "pattern")
    assert sorted(values(receive(matching, 3))) == sorted(name.encode() for name in names)
    parted = admin(f"{stem}-parted", 4)
    whole = subscribe(client, parted, "whole")
    producer = client.create_producer(
        parted, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution
    )
    for value in numbered(40):
        producer.send(value)
    messages = receive(whole, 40)
    assert sorted(values(messages)) == numbered(40)
    assert {message.message_id().partition() for message in messages} == {0, 1, 2, 3}
    for message in messages:
        whole.acknowledge(message)
    time.sleep(0.3)
    whole.close()
    assert drain(subscribe(client, parted, "whole")) == []
