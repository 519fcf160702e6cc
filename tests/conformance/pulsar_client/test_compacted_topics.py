"""Topics with cleanup.policy=compact as Pulsar clients meet them: what they wrote is compacted like all else."""

from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.confluent.test_compaction import Found, read_topic
from tests.conformance.pulsar_client.conftest import ANY, TIMEOUT_MS, connect, receive, subscribe
from tests.conformance.pulsar_client.test_mixed_with_kafka import kafka_send
from tests.support.server_process import ServerProcess, serving
from tests.support.waiting import eventually

Unique = Callable[[str], str]
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "4000",
    "segment.ms": "200",
    "min.cleanable.dirty.ratio": "0.01",
}
KEYS = 10


@pytest.fixture(scope="module")
def cleaning_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    settings = ["log.cleaner.backoff.ms=50", "flush.interval.ms=50"]
    with serving(str(tmp_path_factory.mktemp("cleaning") / "data"), ANY, settings) as server:
        server.addresses["kafka"] = server.addresses["any"]
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture
def cleaned_client(cleaning_broker: ServerProcess) -> Iterator[Any]:
    one = connect(cleaning_broker)
    yield one
    one.close()


def new_topic(server: ServerProcess, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": server.kafka})
    admin.create_topics([NewTopic(name, 1, config=CONFIGS)])[name].result(TIMEOUT_MS / 1000)
    return name


def keyed(found: Found) -> dict[bytes, bytes | None]:
    return {key: value for _, key, value in found}


def left(client: Any, topic: str) -> list[tuple[str, bytes]]:
    """Keys and values of all that a new subscription is given."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        message = reader.read_next(TIMEOUT_MS)
        found.append((message.partition_key(), message.data()))
    reader.close()
    return found


@pytest.mark.parametrize("batching", [False, True], ids=["single", "batches"])
def test_what_pulsar_clients_wrote(
    cleaned_client: Any, cleaning_broker: ServerProcess, unique: Unique, batching: bool
) -> None:
    topic = new_topic(cleaning_broker, unique("compact"))
    producer = cleaned_client.create_producer(
        topic, batching_enabled=batching, batching_max_messages=7, batching_max_publish_delay_ms=20
    )
    for number in range(200):
        producer.send_async(b"%06d" % number + bytes(50), None, partition_key=f"k{number % KEYS}")
    producer.flush()
    expected = {b"k%d" % (n % KEYS): b"%06d" % n + bytes(50) for n in range(200 - KEYS, 200)}
    eventually(lambda: len(read_topic(cleaning_broker, topic)) == KEYS)
    assert keyed(read_topic(cleaning_broker, topic)) == expected
    assert [offset for offset, _, _ in read_topic(cleaning_broker, topic)] == list(range(190, 200))
    assert left(cleaned_client, topic) == [(key.decode(), value) for key, value in expected.items() if value]


def test_what_both_wrote_and_a_subscription_in_the_middle(
    cleaned_client: Any, cleaning_broker: ServerProcess, unique: Unique
) -> None:
    topic = new_topic(cleaning_broker, unique("compact"))
    producer = cleaned_client.create_producer(topic, batching_enabled=False)
    consumer = subscribe(cleaned_client, topic, "middle")
    taken = 0
    for number in range(100):
        producer.send(b"p%05d" % number + bytes(50), partition_key=f"k{number % KEYS}")
        kafka_send(cleaning_broker, topic, [b"q%05d" % number + bytes(50)], key=b"k%d" % (number % KEYS))
        if number < 10:
            for message in receive(consumer, 2):
                consumer.acknowledge(message)
                taken += 1
    consumer.close()
    eventually(lambda: len(read_topic(cleaning_broker, topic)) == KEYS)
    expected = [(f"k{n % KEYS}", b"q%05d" % n + bytes(50)) for n in range(90, 100)]
    assert left(cleaned_client, topic) == expected
    consumer = subscribe(cleaned_client, topic, "middle")
    assert [(one.partition_key(), one.data()) for one in receive(consumer, KEYS)] == expected
    consumer.close()


def test_a_tombstone_of_a_pulsar_client(cleaned_client: Any, cleaning_broker: ServerProcess, unique: Unique) -> None:
    topic = new_topic(cleaning_broker, unique("compact"))
    kafka_send(cleaning_broker, topic, [b"v" * 50] * 40, key=b"a")
    kafka_send(cleaning_broker, topic, [b"v" * 50] * 40, key=b"b")
    producer = cleaned_client.create_producer(topic, batching_enabled=False)
    producer.send(b"", partition_key="a")
    eventually(lambda: [key for _, key, _ in read_topic(cleaning_broker, topic)] == [b"b", b"a"])
