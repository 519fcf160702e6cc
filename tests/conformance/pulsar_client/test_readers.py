"""Readers, seeking, the last message's id and table views."""

import time
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

Unique = Callable[[str], str]
BATCHES = [0, 5]


def read_all(reader: Any) -> list[bytes]:
    """Read as long as the broker says that there is more."""
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(TIMEOUT_MS).data())
    return found


@pytest.mark.parametrize("batch", BATCHES)
def test_readers_begin_where_they_are_told(client: Any, unique: Unique, batch: int) -> None:
    topic = unique("reader")
    ids = publish(client, topic, numbered(20), batch=batch)
    assert read_all(client.create_reader(topic, pulsar.MessageId.earliest)) == numbered(20)
    latest = client.create_reader(topic, pulsar.MessageId.latest)
    assert read_all(latest) == []
    for index in (0, 6, 9, 12):
        assert read_all(client.create_reader(topic, ids[index])) == numbered(19 - index, index + 1)
        inclusive = client.create_reader(topic, ids[index], start_message_id_inclusive=True)
        assert read_all(inclusive) == numbered(20 - index, index)
    publish(client, topic, [b"new"])
    assert read_all(latest) == [b"new"]


def test_a_reader_at_the_latest_message_inclusive(client: Any, unique: Unique) -> None:
    topic = unique("latest")
    publish(client, topic, numbered(3))
    reader = client.create_reader(topic, pulsar.MessageId.latest, start_message_id_inclusive=True)
    assert read_all(reader) == numbered(1, 2)


def test_an_empty_topic_has_nothing_to_read(client: Any, unique: Unique) -> None:
    topic = unique("empty")
    for start in (pulsar.MessageId.earliest, pulsar.MessageId.latest):
        assert not client.create_reader(topic, start).has_message_available()
    assert subscribe(client, topic).get_last_message_id().entry_id() == -1


@pytest.mark.parametrize("batch", BATCHES)
def test_a_reader_seeks_by_id_and_by_time(client: Any, unique: Unique, batch: int) -> None:
    topic = unique("reader-seek")
    ids = publish(client, topic, numbered(10), batch=batch)
    time.sleep(0.05)
    between_ms = int(time.time() * 1000)
    time.sleep(0.05)
    publish(client, topic, numbered(10, 10), batch=batch)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert read_all(reader) == numbered(20)
    reader.seek(ids[6])
    assert read_all(reader) == numbered(13, 7)
    reader.seek(between_ms)
    assert read_all(reader) == numbered(10, 10)
    reader.seek(pulsar.MessageId.earliest)
    assert read_all(reader) == numbered(20)
    reader.seek(pulsar.MessageId.latest)
    assert read_all(reader) == []


@pytest.mark.parametrize("kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared])
@pytest.mark.parametrize("batch", BATCHES)
def test_a_consumer_seeks(client: Any, unique: Unique, kind: Any, batch: int) -> None:
    topic = unique("seek")
    ids = publish(client, topic, numbered(10), batch=batch)
    time.sleep(0.05)
    between_ms = int(time.time() * 1000)
    time.sleep(0.05)
    publish(client, topic, numbered(10, 10), batch=batch)
    consumer = subscribe(client, topic, consumer_type=kind)
    for message in receive(consumer, 20):
        consumer.acknowledge(message)
    time.sleep(0.3)
    consumer.seek(ids[3])
    assert sorted(values(receive(consumer, 16))) == numbered(16, 4)
    consumer.seek(between_ms)
    assert sorted(values(receive(consumer, 10))) == numbered(10, 10)
    consumer.seek(pulsar.MessageId.latest)
    assert nothing_comes(consumer)
    consumer.seek(pulsar.MessageId.earliest)
    assert sorted(values(receive(consumer, 20))) == numbered(20)
    consumer.close()
    assert sorted(values(drain(subscribe(client, topic, consumer_type=kind)))) == numbered(20)


@pytest.mark.parametrize("batch", BATCHES)
def test_the_last_messages_id(client: Any, unique: Unique, batch: int) -> None:
    topic = unique("last")
    ids = publish(client, topic, numbered(10), batch=batch)
    consumer = subscribe(client, topic)
    assert consumer.get_last_message_id() == ids[-1]


def test_a_table_view_has_the_last_value_of_each_key(client: Any, unique: Unique) -> None:
    topic = unique("table")
    producer = client.create_producer(topic)
    for number in range(30):
        producer.send(b"%d" % number, partition_key=f"key-{number % 4}")
    view = client.create_table_view(topic)
    assert {key: view.get(key) for key in ("key-0", "key-1", "key-2", "key-3")} == {
        "key-0": b"28",
        "key-1": b"29",
        "key-2": b"26",
        "key-3": b"27",
    }
    producer.send(b"new", partition_key="key-1")
    deadline_s = time.monotonic() + TIMEOUT_MS / 1000
    while view.get("key-1") != b"new" and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert view.get("key-1") == b"new"
    view.close()


def test_a_chunked_message_is_one_again(client: Any, unique: Unique) -> None:
    topic = unique("chunked")
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    consumer = subscribe(client, topic)
    large = bytes(range(256)) * 60_000
    producer.send(b"before")
    sent = producer.send(large)
    producer.send(b"behind")
    messages = receive(consumer, 3)
    assert values(messages) == [b"before", large, b"behind"]
    for message in messages:
        consumer.acknowledge(message)
    time.sleep(0.3)
    consumer.seek(sent)
    consumer.close()
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert read_all(reader) == [b"before", large, b"behind"]
