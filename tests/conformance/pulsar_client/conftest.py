"""The C++ client of Apache Pulsar through its Python binding, and librdkafka for topics that both use."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.server_process import ServerProcess, serving

TIMEOUT_MS = 20_000
QUIET_MS = 300
"""How long nothing must come where nothing may come."""
ANY = "any=127.0.0.1:0"


@pytest.fixture(scope="session")
def pulsar_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with one port for all protocols, shared by the whole run. Nothing in it may go wrong unseen."""
    with serving(str(tmp_path_factory.mktemp("pulsar") / "data"), ANY) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


def connect(server: ServerProcess, **settings: Any) -> Any:
    """A client of a server; it only says what goes wrong."""
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    settings.setdefault("operation_timeout_seconds", 15)
    return pulsar.Client(f"pulsar://{server.addresses['any']}", logger=logger, **settings)


@pytest.fixture
def client(pulsar_broker: ServerProcess) -> Iterator[Any]:
    """A client, closed in the end."""
    one = connect(pulsar_broker)
    yield one
    one.close()


@pytest.fixture
def another(pulsar_broker: ServerProcess) -> Iterator[Callable[..., Any]]:
    """Makes further clients, each with a connection of its own, and closes them in the end."""
    clients: list[Any] = []

    def make(**settings: Any) -> Any:
        clients.append(connect(pulsar_broker, **settings))
        return clients[-1]

    yield make
    for one in clients:
        with contextlib.suppress(pulsar.AlreadyClosed):
            one.close()


def subscribe(client: Any, topic: Any, name: str = "s", **settings: Any) -> Any:
    """Subscribe from the earliest message on, unless said otherwise."""
    settings.setdefault("initial_position", pulsar.InitialPosition.Earliest)
    return client.subscribe(topic, name, **settings)


def publish(client: Any, topic: str, values: list[bytes], *, batch: int = 0, **each: Any) -> list[Any]:
    """Send messages one by one, or in batches of so many; gives their ids."""
    producer = client.create_producer(
        topic,
        batching_enabled=batch > 0,
        batching_max_messages=max(batch, 2),
        batching_max_publish_delay_ms=1000,
    )
    ids: list[Any] = []
    failures: list[Any] = []

    def note(result: Any, message_id: Any) -> None:
        (ids if result == pulsar.Result.Ok else failures).append(message_id if result == pulsar.Result.Ok else result)

    for value in values:
        producer.send_async(value, note, **each)
    producer.flush()
    deadline_s = time.monotonic() + TIMEOUT_MS / 1000
    while len(ids) + len(failures) < len(values) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    producer.close()
    assert failures == []
    assert len(ids) == len(values)
    return ids


def receive(consumer: Any, count: int) -> list[Any]:
    """Receive so many messages."""
    return [consumer.receive(TIMEOUT_MS) for _ in range(count)]


def values(messages: list[Any]) -> list[bytes]:
    """What was sent."""
    return [message.data() for message in messages]


def nothing_comes(consumer: Any, quiet_ms: int = QUIET_MS) -> bool:
    """Whether nothing comes for a while."""
    try:
        message = consumer.receive(quiet_ms)
    except pulsar.Timeout:
        return True
    print("came:", message.data(), message.message_id())
    return False


def drain(consumer: Any, quiet_ms: int = QUIET_MS) -> list[Any]:
    """Receive until nothing comes for a while."""
    messages = []
    while True:
        try:
            messages.append(consumer.receive(quiet_ms))
        except pulsar.Timeout:
            return messages


def numbered(count: int, start: int = 0) -> list[bytes]:
    """Values that tell their order."""
    return [b"%06d" % number for number in range(start, start + count)]


@pytest.fixture
def admin(pulsar_broker: ServerProcess) -> Callable[[str, int], str]:
    """Makes topics of several partitions, through Kafka's protocol; gives their names."""

    def make(name: str, partitions: int) -> str:
        kafka = AdminClient({"bootstrap.servers": pulsar_broker.addresses["any"]})
        kafka.create_topics([NewTopic(name, partitions)])[name].result(TIMEOUT_MS / 1000)
        return name

    return make
