"""A group and a subscription of one name are one position, for one protocol at a time."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any, Final

import pulsar
import pytest
from confluent_kafka import Consumer, KafkaError

from tests.matrix.conftest import Clients
from tests.matrix.iggy import DEFAULT_STREAM, IggyRefused
from tests.matrix.message import Message
from tests.support.server_process import ServerProcess
from tests.support.waiting import eventually

PROTOCOLS: Final = ("kafka", "pulsar", "iggy")
"""Those that have cursors: a client of Kafka 0.7 keeps its own."""
_TIMEOUT_MS: Final = 15_000
_TIMEOUT_S: Final = 15
Unique = Callable[[str], str]
Write = Callable[[str, list[Message]], None]


@pytest.fixture
def topic(clients: Clients, unique: Unique) -> str:
    """A topic of 40 numbered messages, of all writers by turns, several in a batch."""
    name = unique("cursor")
    clients.kafka.create(name)
    writers: tuple[Write, ...] = (
        clients.kafka.write,
        clients.kafka07.write,
        _pulsar_writer(clients),
        clients.iggy.write,
    )
    for start, write in zip(range(0, 40, 10), writers, strict=True):
        write(name, [Message(value=b"%d" % number) for number in range(start, start + 10)])
    return name


def _pulsar_writer(clients: Clients) -> Write:
    return lambda topic, messages: clients.pulsar.write(topic, messages, batch=10)


def _kafka_consumer(server: ServerProcess, topic: str, group: str, protocol: str = "classic") -> Any:
    # The server says how long the sessions of consumer groups (KIP-848) are.
    session = {"session.timeout.ms": 6000} if protocol == "classic" else {}
    consumer = Consumer(
        {
            **session,
            "group.protocol": protocol,
            "bootstrap.servers": server.addresses["any"],
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    return consumer


def _take(protocol: str, clients: Clients, server: ServerProcess, topic: str, group: str, count: int) -> list[int]:
    """Read some messages with a client of a protocol, be done with them, and go away."""
    if protocol == "iggy":
        return [int(value) for value in clients.iggy.consume(topic, group, count)]
    if protocol == "kafka":
        consumer = _kafka_consumer(server, topic, group)
        messages = [_next(consumer) for _ in range(count)]
        consumer.commit(message=messages[-1], asynchronous=False)
        consumer.close()
        return [int(message.value()) for message in messages]
    consumer = _pulsar_consumer(clients, topic, group)
    messages = [consumer.receive(_TIMEOUT_MS) for _ in range(count)]
    for message in messages:
        consumer.acknowledge(message)
    time.sleep(0.3)  # acknowledgements are sent in groups
    consumer.close()
    return [int(message.data()) for message in messages]


def _next(consumer: Any) -> Any:
    deadline_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline_s:
        message = consumer.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            return message
    raise AssertionError("nothing came")


def _pulsar_consumer(clients: Clients, topic: str, group: str) -> Any:
    """A consumer that acknowledges single messages of a batch; without, a batch is done with as a whole."""
    return clients.pulsar.client.subscribe(
        topic, group, initial_position=pulsar.InitialPosition.Earliest, batch_index_ack_enabled=True
    )


@pytest.mark.parametrize("turns", list(permutations(PROTOCOLS)), ids="-".join)
def test_a_service_changes_its_client_and_goes_on_at_the_next_record(
    clients: Clients, matrix_server: ServerProcess, unique: Unique, topic: str, turns: tuple[str, ...]
) -> None:
    group, taken = unique("billing"), []
    for protocol, count in zip((*turns, turns[0]), (7, 8, 9, 16), strict=True):
        taken += _take(protocol, clients, matrix_server, topic, group, count)
    assert taken == list(range(40))


@contextlib.contextmanager
def _attached(protocol: str, clients: Clients, server: ServerProcess, topic: str, group: str) -> Iterator[None]:
    """A client of a protocol that reads under a name."""
    place = {"stream": DEFAULT_STREAM, "topic": topic}
    if protocol == "iggy":
        with contextlib.suppress(IggyRefused):  # it is there already
            clients.iggy.call("create_consumer_group", name=group, **_stream_and_topic(place))
        clients.iggy.call("join_consumer_group", group_id=group, **_stream_and_topic(place))
        yield
        clients.iggy.call("leave_consumer_group", group_id=group, **_stream_and_topic(place))
        return
    if protocol == "kafka":
        consumer = _kafka_consumer(server, topic, group)
        try:
            _next(consumer)
            yield
        finally:
            consumer.close()
        return
    consumer = _pulsar_consumer(clients, topic, group)
    yield
    consumer.close()


def _stream_and_topic(place: dict[str, str]) -> dict[str, str]:
    return {"stream_id": place["stream"], "topic_id": place["topic"]}


def _refused(protocol: str, clients: Clients, server: ServerProcess, topic: str, group: str) -> bool:
    if protocol == "kafka":
        consumer = _kafka_consumer(server, topic, group)
        try:
            message = eventually(lambda: consumer.poll(0.2), _TIMEOUT_S)
            return message.error() is not None and message.error().code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL
        finally:
            consumer.close()
    with pytest.raises((pulsar.ConsumerBusy, IggyRefused)), _attached(protocol, clients, server, topic, group):
        pass
    return True


@pytest.mark.parametrize(("first", "second"), list(permutations(PROTOCOLS, 2)))
def test_the_second_protocol_is_refused_as_long_as_the_first_is_there(
    clients: Clients, matrix_server: ServerProcess, unique: Unique, topic: str, first: str, second: str
) -> None:
    group = unique("held")
    with _attached(first, clients, matrix_server, topic, group):
        assert _refused(second, clients, matrix_server, topic, group)
        shown = _described(matrix_server, group)
        assert [one["topic"] for one in shown["members"][0]["assignment"]] == [topic]
        if first != "kafka":
            assert shown["assignor"] == first
            assert shown["members"][0]["member"].startswith(first)
    with _attached(second, clients, matrix_server, topic, group):
        assert _described(matrix_server, group)["members"]


def test_a_consumer_group_of_today_holds_its_topics_as_well(
    clients: Clients, matrix_server: ServerProcess, unique: Unique, topic: str
) -> None:
    """KIP-848: the server shares them out."""
    group = unique("held")
    consumer = _kafka_consumer(matrix_server, topic, group, "consumer")
    try:
        last = [_next(consumer) for _ in range(10)][-1]
        consumer.commit(last, asynchronous=False)
        assert _refused("pulsar", clients, matrix_server, topic, group)
        shown = _described(matrix_server, group)
        assert (shown["state"], shown["assignor"]) == ("stable", "uniform")
        assert [one["topic"] for one in shown["members"][0]["assignment"]] == [topic]
    finally:
        consumer.close()
    assert _take("pulsar", clients, matrix_server, topic, group, 5) == list(range(10, 15))
    with _attached("pulsar", clients, matrix_server, topic, group):
        refused = _kafka_consumer(matrix_server, topic, group, "consumer")
        with contextlib.closing(refused):
            assert "nconsistent" in str(eventually(lambda: refused.poll(0.2), _TIMEOUT_S).error())
        assert _described(matrix_server, group)["assignor"] == "pulsar"


def test_another_topic_is_another_position(
    clients: Clients, matrix_server: ServerProcess, unique: Unique, topic: str
) -> None:
    group, other = unique("apart"), unique("other")
    clients.kafka.create(other)
    with (
        _attached("kafka", clients, matrix_server, topic, group),
        _attached("pulsar", clients, matrix_server, other, group),
    ):
        pass


def _described(server: ServerProcess, group: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "millstream.cli.main", "group", "describe", group, "--json"]
    result = subprocess.run(
        [*command, "--broker", server.addresses["any"]], capture_output=True, text=True, timeout=30, check=False
    )
    assert result.returncode == 0, result.stderr
    described: dict[str, Any] = json.loads(result.stdout)
    return described
