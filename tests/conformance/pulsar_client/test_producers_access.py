"""Who may write beside whom, what is told twice, and producers that their server parts from."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar
import pytest
from confluent_kafka.admin import AdminClient

from tests.conformance.pulsar_client.conftest import (
    ANY,
    TIMEOUT_MS,
    connect,
    drain,
    numbered,
    receive,
    subscribe,
    values,
)
from tests.support.pulsar_admin import administer
from tests.support.server_process import ServerProcess, serving, start
from tests.support.waiting import eventually

Another = Callable[..., Any]
Unique = Callable[[str], str]
Modes = pulsar.ProducerAccessMode
NOWHERE = (-1, -1)


def place(message_id: Any) -> tuple[int, int]:
    """Ledger and entry of a message id."""
    return message_id.ledger_id(), message_id.entry_id()


def test_an_exclusive_producer_is_alone(client: Any, another: Another, unique: Unique) -> None:
    topic = unique("exclusive")
    first = client.create_producer(topic, access_mode=Modes.Exclusive)
    with pytest.raises(pulsar.ProducerFenced):
        another().create_producer(topic, access_mode=Modes.Exclusive)
    with pytest.raises(pulsar.ProducerBusy):
        another().create_producer(topic)
    first.send(b"alone")
    first.close()
    shared = client.create_producer(topic)
    with pytest.raises(pulsar.ProducerFenced):
        another().create_producer(topic, access_mode=Modes.Exclusive)
    shared.send(b"shared")
    assert values(receive(subscribe(client, topic), 2)) == [b"alone", b"shared"]


def test_who_waits_gets_its_turn(client: Any, another: Another, unique: Unique) -> None:
    topic = unique("waits")
    first = client.create_producer(topic, access_mode=Modes.Exclusive)
    first.send(b"first")
    got: list[Any] = []
    waiting = threading.Thread(
        target=lambda: got.append(another().create_producer(topic, access_mode=Modes.WaitForExclusive))
    )
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive(), "it waits"
    first.close()
    waiting.join(TIMEOUT_MS / 1000)
    (second,) = got
    second.send(b"second")
    with pytest.raises(pulsar.ProducerFenced):
        client.create_producer(topic, access_mode=Modes.Exclusive)
    assert values(receive(subscribe(client, topic), 2)) == [b"first", b"second"]


def test_whoever_is_fenced_off_writes_no_more(client: Any, another: Another, unique: Unique) -> None:
    topic = unique("fenced")
    old = client.create_producer(topic, access_mode=Modes.Exclusive, send_timeout_millis=3000)
    old.send(b"old")
    new = another().create_producer(topic, access_mode=Modes.ExclusiveWithFencing)
    new.send(b"new")
    with pytest.raises((pulsar.ProducerFenced, pulsar.AlreadyClosed, pulsar.Timeout)):
        old.send(b"too late")
    assert values(drain(subscribe(client, topic))) == [b"old", b"new"]


def test_a_producer_goes_on_when_its_topic_is_unloaded(
    client: Any, pulsar_broker: ServerProcess, unique: Unique
) -> None:
    """The server closes it again and again under load: it comes back by itself, and nothing is lost or doubled."""
    topic = unique("unloaded")
    producer = client.create_producer(topic, batching_enabled=False, max_pending_messages=10_000)
    results: list[Any] = []
    for number in range(2000):
        producer.send_async(b"%06d" % number, lambda result, _: results.append(result))
        if number % 400 == 200:
            administer(pulsar_broker.addresses["any"], "PUT", f"persistent/public/default/{topic}/unload")
    eventually(lambda: len(results) == 2000)
    assert set(results) == {pulsar.Result.Ok}
    assert producer.is_connected()
    assert values(drain(subscribe(client, topic))) == numbered(2000)


def test_what_is_terminated_takes_nothing_more(client: Any, pulsar_broker: ServerProcess, unique: Unique) -> None:
    topic = unique("terminated")
    client.create_producer(topic).send(b"last")
    administer(pulsar_broker.addresses["any"], "POST", f"persistent/public/default/{topic}/terminate")
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)
    assert values(drain(subscribe(client, topic))) == [b"last"]


@pytest.mark.parametrize("by", ["pulsar", "kafka"])
def test_a_topic_that_is_deleted_in_use_comes_back_empty(
    client: Any, pulsar_broker: ServerProcess, unique: Unique, by: str
) -> None:
    """Its producer connects again, and as topics are made by themselves, to a new one."""
    topic, address = unique("deleted"), pulsar_broker.addresses["any"]
    producer = client.create_producer(topic, batching_enabled=False)
    consumer = subscribe(client, topic)
    producer.send(b"old")
    assert values(receive(consumer, 1)) == [b"old"]
    if by == "pulsar":
        administer(address, "DELETE", f"persistent/public/default/{topic}?force=true")
    else:
        kafka = AdminClient({"bootstrap.servers": address})
        kafka.delete_topics([topic])[topic].result(TIMEOUT_MS / 1000)
    new_id = producer.send(b"new")
    assert new_id.entry_id() == 0
    assert values(receive(subscribe(client, topic, "other"), 1)) == [b"new"]


def test_deduplication(client: Any, another: Another, pulsar_broker: ServerProcess, unique: Unique) -> None:
    address, space = pulsar_broker.addresses["any"], f"public/{unique('once')}"
    administer(address, "PUT", f"namespaces/{space}")
    administer(address, "POST", f"namespaces/{space}/deduplication", True)
    topic = f"persistent://{space}/t"
    producer = client.create_producer(topic, producer_name="p", batching_enabled=False)
    assert producer.last_sequence_id() == -1
    assert place(producer.send(b"0", sequence_id=5))[1] == 0
    assert place(producer.send(b"1", sequence_id=6))[1] == 1
    for sequence_id in (5, 6, 0):
        assert place(producer.send(b"again", sequence_id=sequence_id)) == NOWHERE
    producer.close()
    again = another().create_producer(topic, producer_name="p", batching_enabled=False)
    assert again.last_sequence_id() == 6
    assert place(again.send(b"again", sequence_id=6)) == NOWHERE
    assert place(again.send(b"2"))[1] == 2, "its own numbers go on behind the last"
    other = client.create_producer(topic, producer_name="q", batching_enabled=False)
    assert place(other.send(b"3", sequence_id=6))[1] == 3
    assert values(drain(subscribe(client, topic))) == [b"0", b"1", b"2", b"3"]


def test_deduplication_of_batches_and_chunks(client: Any, pulsar_broker: ServerProcess, unique: Unique) -> None:
    address, space = pulsar_broker.addresses["any"], f"public/{unique('once')}"
    administer(address, "PUT", f"namespaces/{space}")
    administer(address, "POST", f"namespaces/{space}/deduplication", True)
    topic = f"persistent://{space}/t"
    batched = client.create_producer(topic, producer_name="batched", batching_max_publish_delay_ms=100)
    for _ in range(2):
        for number in range(10):
            batched.send_async(b"%d" % number, lambda *_: None, sequence_id=number)
        batched.flush()
    keyed = client.create_producer(
        topic,
        producer_name="keyed",
        batching_type=pulsar.BatchingType.KeyBased,
        batching_max_publish_delay_ms=100,
    )
    for number in range(10, 20):
        keyed.send_async(b"%d" % number, lambda *_: None, partition_key=str(number % 3))
    keyed.flush()
    chunked = client.create_producer(topic, producer_name="chunked", batching_enabled=False, chunking_enabled=True)
    large = bytes(12_000_000)
    for _ in range(2):
        chunked.send(large, sequence_id=1)
    chunked.send(b"end", sequence_id=2)
    received = values(drain(subscribe(client, topic), 500))
    assert received[:10] == [b"%d" % number for number in range(10)]
    assert sorted(received[10:20]) == [b"%d" % number for number in range(10, 20)]
    assert received[20:] == [large, b"end"]


def test_deduplication_outlives_a_crash(tmp_path: Path) -> None:
    """A producer that is killed with its server right after its first messages, and one in the middle of chunks."""
    data_dir = str(tmp_path / "data")
    settings = ["pulsar.deduplication.enable=true"]
    server = start(data_dir, ANY, settings)
    client = connect(server)
    producer = client.create_producer("t", producer_name="p", batching_enabled=False)
    for number in range(3):
        producer.send(b"%d" % number)
    server.kill()
    assert server.process.stdout is not None
    server.process.stdout.close()
    client.shutdown()
    with serving(data_dir, ANY, settings) as again:
        client = connect(again)
        producer = client.create_producer("t", producer_name="p", batching_enabled=False)
        assert producer.last_sequence_id() == 2
        assert place(producer.send(b"again", sequence_id=2)) == NOWHERE
        assert place(producer.send(b"3"))[1] == 3
        assert values(drain(subscribe(client, "t"))) == [b"0", b"1", b"2", b"3"]
        client.close()


def test_a_producer_comes_back_by_itself(tmp_path: Path) -> None:
    """Its server stops and starts: what waited is sent, in order, and an exclusive producer is the same one still."""
    data_dir = str(tmp_path / "data")
    server = start(data_dir, ANY, ["pulsar.deduplication.enable=true"])
    listen = f"any={server.addresses['any']}"
    client = connect(server)
    producer = client.create_producer("t", batching_enabled=False, access_mode=Modes.Exclusive)
    name, results = producer.producer_name(), []
    stop = time.monotonic() + 2
    number = 0
    restarted = False
    while time.monotonic() < stop:
        producer.send_async(b"%06d" % number, lambda result, _: results.append(result))
        number += 1
        time.sleep(0.002)
        if not restarted and time.monotonic() > stop - 1.5:
            restarted = True
            assert server.stop() == 0
            assert server.process.stdout is not None
            server.process.stdout.close()
            server = start(data_dir, listen, ["pulsar.deduplication.enable=true"])
    eventually(lambda: len(results) == number)
    assert set(results) == {pulsar.Result.Ok}
    assert producer.producer_name() == name
    assert values(drain(subscribe(client, "t"))) == numbered(number)
    client.close()
    assert server.stop() == 0
    assert server.process.stdout is not None
    server.process.stdout.close()
    assert "Traceback" not in server.log()
