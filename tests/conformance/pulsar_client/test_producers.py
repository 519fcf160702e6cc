"""Producers of the C++ client: names, batches, compression, keys, chunks, and what is refused."""

import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.conformance.pulsar_client.conftest import (
    TIMEOUT_MS,
    nothing_comes,
    numbered,
    publish,
    receive,
    subscribe,
    values,
)

Another = Callable[..., Any]
Unique = Callable[[str], str]
COMPRESSIONS = [
    pulsar.CompressionType.NONE,
    pulsar.CompressionType.LZ4,
    pulsar.CompressionType.ZLib,
    pulsar.CompressionType.ZSTD,
    pulsar.CompressionType.SNAPPY,
]
MESSAGE_BYTES_MAX = 5 * 1024 * 1024


@pytest.mark.parametrize("batch", [0, 100], ids=["single", "batched"])
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=str)
def test_compression(client: Any, unique: Unique, compression: Any, batch: int) -> None:
    """What is compressed comes back; the server takes it as it is."""
    topic = unique("compressed")
    contents = [b"abc" * 1000 + b"%d" % n for n in range(250)]
    producer = client.create_producer(
        topic, compression_type=compression, batching_enabled=batch > 0, batching_max_messages=100
    )
    for content in contents:
        producer.send_async(content, lambda *_: None)
    producer.flush()
    assert producer.last_sequence_id() == 249
    assert values(receive(subscribe(client, topic), 250)) == contents


@pytest.mark.parametrize("batch", [0, 10])
def test_everything_that_a_message_carries(client: Any, unique: Unique, batch: int) -> None:
    topic = unique("carried")
    producer = client.create_producer(topic, producer_name="carrier", batching_enabled=batch > 0)
    sent_id = producer.send(
        b"content",
        properties={"a": "1", "ü": "ß", "empty": ""},
        partition_key="key",
        ordering_key="order",
        sequence_id=77,
        event_timestamp=1_600_000_000_123,
    )
    assert producer.last_sequence_id() == 77
    nothing = producer.send(None)
    first, second = receive(subscribe(client, topic), 2)
    assert first.data() == b"content"
    assert first.properties() == {"a": "1", "ü": "ß", "empty": ""}
    assert (first.partition_key(), first.ordering_key()) == ("key", "order")
    assert first.event_timestamp() == 1_600_000_000_123
    assert first.producer_name() == "carrier"
    assert first.topic_name() == f"persistent://public/default/{topic}"
    assert first.message_id().entry_id() == sent_id.entry_id()
    assert first.message_id().partition() == -1
    assert second.data() == b""
    assert second.message_id() == nothing


def test_names(client: Any, another: Another, unique: Unique) -> None:
    topic = unique("names")
    given = {client.create_producer(topic).producer_name() for _ in range(20)}
    assert len(given) == 20
    mine = client.create_producer(topic, producer_name="mine")
    assert mine.producer_name() == "mine"
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic, producer_name="mine")
    with pytest.raises(pulsar.ProducerBusy):
        another().create_producer(topic, producer_name="mine")
    mine.close()
    assert another().create_producer(topic, producer_name="mine").producer_name() == "mine"


def test_a_client_that_goes_leaves_its_names(client: Any, another: Another, unique: Unique) -> None:
    topic, first = unique("gone"), another()
    first.create_producer(topic, producer_name="mine")
    first.shutdown()
    assert client.create_producer(topic, producer_name="mine").send(b"x").entry_id() == 0


def test_receipts_come_in_order(client: Any, unique: Unique) -> None:
    topic = unique("order")
    producer = client.create_producer(topic, batching_enabled=False, max_pending_messages=5000)
    order: list[tuple[int, Any]] = []
    done = threading.Event()

    def note(number: int) -> Callable[[Any, Any], None]:
        def callback(result: Any, message_id: Any) -> None:
            order.append((number, message_id.entry_id() if result == pulsar.Result.Ok else result))
            if len(order) == 3000:
                done.set()

        return callback

    for number in range(3000):
        producer.send_async(b"%d" % number, note(number))
    assert done.wait(TIMEOUT_MS / 1000)
    assert order == [(number, number) for number in range(3000)]


def test_a_batch_is_many_messages(client: Any, unique: Unique) -> None:
    topic = unique("batches")
    ids = publish(client, topic, numbered(100), batch=10)
    assert [(one.entry_id(), one.batch_index()) for one in ids] == [(n - n % 10, n % 10) for n in range(100)]
    messages = receive(subscribe(client, topic), 100)
    assert [message.message_id() for message in messages] == ids


@pytest.mark.parametrize("ordering", [False, True], ids=["keys", "ordering keys"])
def test_key_based_batches(client: Any, unique: Unique, ordering: bool) -> None:
    """A batch for each key, which is the unit that Key_Shared hands out."""
    topic = unique("keyed")
    consumers = [subscribe(client, topic, consumer_type=pulsar.ConsumerType.KeyShared) for _ in range(3)]
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_type=pulsar.BatchingType.KeyBased,
        batching_max_messages=500,
        batching_max_publish_delay_ms=50,
    )
    for number in range(300):
        key = f"k{number % 7}"
        keys = {"partition_key": "same", "ordering_key": key} if ordering else {"partition_key": key}
        producer.send_async(b"%d" % number, lambda *_: None, **keys)
    producer.flush()
    seen: dict[int, dict[int, list[int]]] = {}
    for place, consumer in enumerate(consumers):
        while not nothing_is_left(consumer, seen.setdefault(place, {})):
            pass
    assert sum(len(found) for keys_of in seen.values() for found in keys_of.values()) == 300
    for key_number in range(7):
        owners = [keys_of[key_number] for keys_of in seen.values() if key_number in keys_of]
        assert owners == [list(range(key_number, 300, 7))], "each key at one consumer, in order"


def nothing_is_left(consumer: Any, seen: dict[int, list[int]]) -> bool:
    try:
        message = consumer.receive(200)
    except pulsar.Timeout:
        return True
    number = int(message.data())
    seen.setdefault(number % 7, []).append(number)
    consumer.acknowledge(message)
    return False


def test_chunks(client: Any, unique: Unique) -> None:
    topic = unique("chunks")
    consumer = subscribe(client, topic)
    producer = client.create_producer(topic, batching_enabled=False, chunking_enabled=True)
    large = bytes(range(256)) * 50_000
    message_id = producer.send(large)
    assert isinstance(message_id.ledger_id(), int)
    producer.send(b"small")
    messages = receive(consumer, 2)
    assert values(messages) == [large, b"small"]
    consumer.acknowledge_cumulative(messages[-1])
    consumer.close()
    assert nothing_comes(subscribe(client, topic))


def test_the_largest_message(client: Any, unique: Unique) -> None:
    topic = unique("large")
    producer = client.create_producer(topic, batching_enabled=False)
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(bytes(MESSAGE_BYTES_MAX + 1))
    content = bytes(MESSAGE_BYTES_MAX - 1000)
    producer.send(content)
    assert values(receive(subscribe(client, topic), 1)) == [content]


def test_what_is_encrypted_stays_so(client: Any, unique: Unique, tmp_path: Path) -> None:
    """The server has no key, and needs none: it stores and delivers what it cannot read."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes the keys, is not installed")
    public, private = tmp_path / "public.pem", tmp_path / "private.pem"
    subprocess.run([openssl, "genrsa", "-out", private, "2048"], check=True, capture_output=True)
    subprocess.run([openssl, "rsa", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
    reader = pulsar.CryptoKeyReader(str(public), str(private))
    topic = unique("encrypted")
    for batching in (False, True):
        producer = client.create_producer(
            topic, batching_enabled=batching, encryption_key="k", crypto_key_reader=reader
        )
        producer.send(b"secret")
    assert values(receive(subscribe(client, topic, crypto_key_reader=reader), 2)) == [b"secret"] * 2


def test_a_wrong_topic_is_told_at_once(client: Any, unique: Unique) -> None:
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(f"persistent://nobody/default/{unique('x')}")
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(f"persistent://public/nowhere/{unique('x')}")
    with pytest.raises(pulsar.InvalidTopicName):
        client.create_producer("persistent://public")


@pytest.mark.parametrize("router", ["round robin", "single", "custom"])
def test_partitions(client: Any, unique: Unique, admin: Any, router: str) -> None:
    topic = admin(unique("partitioned"), 4)
    modes = pulsar.PartitionsRoutingMode
    settings: dict[str, Any] = {
        "round robin": {"message_routing_mode": modes.RoundRobinDistribution},
        "single": {"message_routing_mode": modes.UseSinglePartition},
        "custom": {
            "message_routing_mode": modes.CustomPartition,
            "message_router": lambda message, count: len(message.data()) % count,
        },
    }[router]
    assert client.get_topic_partitions(topic) == [
        f"persistent://public/default/{topic}-partition-{n}" for n in range(4)
    ]
    producer = client.create_producer(topic, batching_enabled=False, **settings)
    places = [producer.send(b"x" * n).partition() for n in range(8)]
    if router == "round robin":
        assert sorted(places) == sorted([*range(4), *range(4)])
    elif router == "single":
        assert len(set(places)) == 1
    else:
        assert places == [n % 4 for n in range(8)]
    messages = receive(subscribe(client, topic), 8)
    assert sorted(len(message.data()) for message in messages) == list(range(8))
    assert sorted(message.message_id().partition() for message in messages) == sorted(places)


def test_the_same_key_goes_to_the_same_partition(client: Any, unique: Unique, admin: Any) -> None:
    topic = admin(unique("hashed"), 4)
    producer = client.create_producer(topic)
    places: dict[str, set[int]] = {}
    for number in range(60):
        key = f"key-{number % 12}"
        places.setdefault(key, set()).add(producer.send(b"", partition_key=key).partition())
    assert {len(found) for found in places.values()} == {1}
    assert len(set.union(*places.values())) > 1
