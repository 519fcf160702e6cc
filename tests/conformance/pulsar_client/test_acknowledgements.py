"""What was acknowledged does not come again, and what was not does, with the right count."""

import datetime
import time
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

Another = Callable[..., Any]
Unique = Callable[[str], str]
SINGLE = [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Failover]
POOLED = [pulsar.ConsumerType.Shared, pulsar.ConsumerType.KeyShared]
GROUPED_S = 0.4
"""Acknowledgements go out in groups every 100 ms."""


@pytest.mark.parametrize("kind", SINGLE + POOLED)
def test_single_acknowledgements_leave_holes_that_last(client: Any, unique: Unique, kind: Any) -> None:
    topic = unique("holes")
    publish(client, topic, numbered(30))
    consumer = subscribe(client, topic, consumer_type=kind)
    for message in receive(consumer, 30):
        if int(message.data()) % 3:
            consumer.acknowledge(message)
    time.sleep(GROUPED_S)
    consumer.close()
    again = subscribe(client, topic, consumer_type=kind)
    assert sorted(values(drain(again))) == [b"%06d" % number for number in range(0, 30, 3)]


def test_a_batch_that_is_acknowledged_in_part_comes_again_as_a_whole_without_index_acknowledgement(
    client: Any, unique: Unique
) -> None:
    topic = unique("whole-batch")
    publish(client, topic, numbered(10), batch=5)
    consumer = subscribe(client, topic)
    for message in receive(consumer, 8):
        consumer.acknowledge(message)
    time.sleep(GROUPED_S)
    consumer.close()
    assert values(receive(subscribe(client, topic), 5)) == numbered(5, 5)


@pytest.mark.parametrize("kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared])
def test_messages_of_a_batch_are_acknowledged_one_by_one(client: Any, unique: Unique, kind: Any) -> None:
    topic = unique("index")
    publish(client, topic, numbered(10), batch=5)
    by_index = {"consumer_type": kind, "batch_index_ack_enabled": True}
    consumer = subscribe(client, topic, **by_index)
    ids = {}
    for message in receive(consumer, 10):
        ids[message.data()] = message.message_id()
        if int(message.data()) in (1, 3, 5, 6):
            consumer.acknowledge(message)
    time.sleep(GROUPED_S)
    consumer.close()
    again = subscribe(client, topic, **by_index)
    left = receive(again, 6)
    assert nothing_comes(again)
    assert [int(message.data()) for message in left] == [0, 2, 4, 7, 8, 9]
    assert [message.message_id() for message in left] == [ids[message.data()] for message in left]
    for message in left:
        again.acknowledge(message)
    time.sleep(GROUPED_S)
    again.close()
    assert nothing_comes(subscribe(client, topic, **by_index))


def test_cumulative_acknowledgement_in_the_middle_of_a_batch(client: Any, unique: Unique) -> None:
    """Without index acknowledgement it is one of the batch before; before the first batch it is one of nothing."""
    topic = unique("cumulative")
    publish(client, topic, numbered(15), batch=5)
    consumer = subscribe(client, topic)
    messages = receive(consumer, 15)
    consumer.acknowledge_cumulative(messages[2])
    time.sleep(GROUPED_S)
    consumer.close()
    consumer = subscribe(client, topic)
    messages = receive(consumer, 15)
    assert values(messages) == numbered(15)
    consumer.acknowledge_cumulative(messages[7])
    time.sleep(GROUPED_S)
    consumer.close()
    consumer = subscribe(client, topic)
    assert values(drain(consumer)) == numbered(10, 5)


def test_cumulative_acknowledgement_by_index(client: Any, unique: Unique) -> None:
    topic = unique("cumulative-index")
    publish(client, topic, numbered(10), batch=5)
    consumer = subscribe(client, topic, batch_index_ack_enabled=True)
    consumer.acknowledge_cumulative(receive(consumer, 10)[6])
    time.sleep(GROUPED_S)
    consumer.close()
    assert values(drain(subscribe(client, topic, batch_index_ack_enabled=True))) == numbered(3, 7)


@pytest.mark.parametrize("kind", POOLED)
def test_a_negative_acknowledgement_counts(client: Any, unique: Unique, kind: Any) -> None:
    topic = unique("nack")
    publish(client, topic, numbered(3))
    consumer = subscribe(client, topic, consumer_type=kind, negative_ack_redelivery_delay_ms=100)
    for message in receive(consumer, 3):
        if message.data() == b"000001":
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)
    for count in (1, 2, 3):
        (message,) = receive(consumer, 1)
        assert (message.data(), message.redelivery_count()) == (b"000001", count)
        consumer.negative_acknowledge(message)
    consumer.acknowledge(receive(consumer, 1)[0])
    assert nothing_comes(consumer)


def test_what_is_not_acknowledged_in_time_comes_again(client: Any, unique: Unique) -> None:
    topic = unique("timeout")
    publish(client, topic, numbered(4), batch=2)
    consumer = subscribe(client, topic, consumer_type=pulsar.ConsumerType.Shared, unacked_messages_timeout_ms=10_000)
    for message in receive(consumer, 4)[:2]:
        consumer.acknowledge(message)
    left = receive(consumer, 2)
    assert values(left) == numbered(2, 2)
    assert {message.redelivery_count() for message in left} == {1}


def test_redelivering_everything(client: Any, unique: Unique) -> None:
    topic = unique("redeliver")
    publish(client, topic, numbered(10))
    for name, kind in (("a", pulsar.ConsumerType.Exclusive), ("b", pulsar.ConsumerType.Shared)):
        consumer = subscribe(client, topic, name, consumer_type=kind)
        messages = receive(consumer, 10)
        for message in messages[:5]:
            consumer.acknowledge(message)
        time.sleep(GROUPED_S)
        consumer.redeliver_unacknowledged_messages()
        assert sorted(values(receive(consumer, 5))) == numbered(5, 5)
        assert nothing_comes(consumer)


@pytest.mark.parametrize("batch", [0, 3])
def test_dead_letters(client: Any, unique: Unique, batch: int) -> None:
    topic = unique("dead")
    publish(client, topic, numbered(3), batch=batch)
    consumer = subscribe(
        client,
        topic,
        consumer_type=pulsar.ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(2, f"{topic}-dlq", "dlq-sub"),
    )
    attempts = 0
    dead = subscribe(client, f"{topic}-dlq", "dlq-sub")
    while True:
        messages = drain(consumer, 1500)
        if not messages:
            break
        for message in messages:
            if message.data() == b"000000":
                attempts += 1
                consumer.negative_acknowledge(message)
            else:
                consumer.acknowledge(message)
    assert attempts == 3
    (message,) = receive(dead, 1)
    assert message.data() == b"000000"
    assert topic in message.properties()["REAL_TOPIC"]
    consumer.close()
    assert nothing_comes(subscribe(client, topic, consumer_type=pulsar.ConsumerType.Shared))


def test_delayed_messages(client: Any, unique: Unique) -> None:
    topic = unique("delayed")
    shared = subscribe(client, topic, "shared", consumer_type=pulsar.ConsumerType.Shared)
    single = subscribe(client, topic, "single")
    producer = client.create_producer(topic)
    began_s = time.monotonic()
    producer.send(b"later", deliver_after=datetime.timedelta(seconds=1))
    producer.send(b"now")
    assert values(receive(shared, 1)) == [b"now"]
    assert values(receive(single, 2)) == [b"later", b"now"]
    assert time.monotonic() - began_s < 1
    assert values(receive(shared, 1)) == [b"later"]
    assert 0.9 < time.monotonic() - began_s < 3


def test_a_slow_consumer_holds_back_nobody_but_itself(client: Any, another: Another, unique: Unique) -> None:
    topic = unique("slow")
    slow = subscribe(another(), topic, "slow", receiver_queue_size=1)
    fast = subscribe(client, topic, "fast")
    publish(client, topic, [bytes(100_000)] * 200)
    assert len(receive(fast, 200)) == 200
    assert len(receive(slow, 200)) == 200


def test_a_receiver_queue_of_nothing(client: Any, unique: Unique) -> None:
    topic = unique("zero")
    publish(client, topic, numbered(5))
    consumer = subscribe(client, topic, receiver_queue_size=0)
    assert values([consumer.receive() for _ in range(5)]) == numbered(5)
