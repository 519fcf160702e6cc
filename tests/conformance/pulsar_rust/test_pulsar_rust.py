"""What the Rust client writes and reads, alone and beside the C++ client and Kafka's."""

from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest
from confluent_kafka import Producer

from tests.conformance.pulsar_rust.conftest import Scenario
from tests.support.server_process import ServerProcess

Unique = Callable[[str], str]
TIMEOUT_MS = 20_000
VALUES = [f"värde-{number}" for number in range(40)]
PROPERTIES = {"a": "1", "b": "ü"}


@pytest.fixture
def other(rust_server: ServerProcess) -> Iterator[Any]:
    """The C++ client."""
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(f"pulsar://{rust_server.addresses['any']}", logger=logger)
    yield client
    client.close()


def test_round_trip(scenario: Scenario, unique: Unique) -> None:
    topic = unique("rust")
    scenario("produce", topic=topic, values=VALUES, properties=PROPERTIES)
    assert scenario("consume", topic=topic, count=40, acknowledge=15) == [[value, PROPERTIES] for value in VALUES]
    left = scenario("consume", topic=topic, count=25, acknowledge=25)
    assert [value for value, _ in left] == VALUES[15:]


def test_a_message_that_is_sent_back(scenario: Scenario, unique: Unique) -> None:
    topic = unique("rust-nack")
    scenario("produce", topic=topic, values=["only"], properties={})
    assert scenario("negative", topic=topic) == [["only"], ["only"]]


def test_the_other_client_reads_it(scenario: Scenario, unique: Unique, other: Any) -> None:
    topic = unique("rust-out")
    scenario("produce", topic=topic, values=VALUES, properties=PROPERTIES)
    consumer = other.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    messages = [consumer.receive(TIMEOUT_MS) for _ in VALUES]
    assert [message.data().decode() for message in messages] == VALUES
    assert [message.properties() for message in messages] == [PROPERTIES] * len(VALUES)


@pytest.mark.parametrize("batching", [False, True])
def test_it_reads_what_the_other_client_wrote(scenario: Scenario, unique: Unique, other: Any, batching: bool) -> None:
    """Not what was compressed: this build of it has no codecs."""
    topic = unique("rust-in")
    producer = other.create_producer(topic, batching_enabled=batching)
    for value in VALUES:
        producer.send_async(value.encode(), lambda *_: None, properties=PROPERTIES)
    producer.flush()
    found = scenario("consume", topic=topic, count=40, acknowledge=40)
    assert found == [[value, PROPERTIES] for value in VALUES]


def test_it_reads_what_kafka_wrote(scenario: Scenario, unique: Unique, rust_server: ServerProcess) -> None:
    topic = unique("rust-kafka")
    producer = Producer({"bootstrap.servers": rust_server.addresses["any"], "compression.type": "zstd"})
    for value in VALUES:
        producer.produce(topic, value, headers=[("a", b"1")])
    assert producer.flush(TIMEOUT_MS / 1000) == 0
    found = scenario("consume", topic=topic, count=40, acknowledge=40)
    assert found == [[value, {"a": "1"}] for value in VALUES]
