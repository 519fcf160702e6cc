"""More connections than a server may have files open: those that are there go on, and so do partitions."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.server_process import ServerProcess, start
from tests.support.waiting import eventually

FILES_MAX = 100
PATIENCE_S = 10


@pytest.fixture
def narrow_server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = start(str(tmp_path / "data"), "kafka=127.0.0.1:0 any=127.0.0.1:0", files_max=FILES_MAX)
    yield server
    assert server.stop() == 0
    assert "internal error" not in server.log()
    assert "Traceback" not in server.log()
    assert server.process.stdout is not None
    server.process.stdout.close()


def produce(producer: Producer, topic: str, partition: int = 0) -> None:
    """Write a record, and wait for its acknowledgement."""
    outcomes: list[object] = []
    producer.produce(topic, b"x", partition=partition, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert outcomes == [None]


def connections(address: str, count: int) -> list[socket.socket]:
    host, _, port = address.rpartition(":")
    return [socket.create_connection((host, int(port)), timeout=PATIENCE_S) for _ in range(count)]


def test_a_flood_of_connections_ends_neither_the_listeners_nor_the_partitions(narrow_server: ServerProcess) -> None:
    settings = {"bootstrap.servers": narrow_server.kafka, "log_level": 0}
    producer, admin = Producer(settings), AdminClient(settings)
    admin.create_topics([NewTopic("before", 1)])["before"].result(PATIENCE_S)
    produce(producer, "before")
    with contextlib.ExitStack() as stack:
        for name in ("kafka", "any"):
            for one in connections(narrow_server.addresses[name], FILES_MAX):
                stack.enter_context(one)
        eventually(lambda: "connections refused" in narrow_server.log(), PATIENCE_S)
        admin.create_topics([NewTopic("during", 3)])["during"].result(PATIENCE_S)
        for partition in range(3):
            produce(producer, "during", partition)
    produce(Producer(settings), "before")
    assert narrow_server.log().count("connections refused") <= 2, "a line once in a while"


def test_a_limit_that_is_set(tmp_path: Path) -> None:
    server = start(str(tmp_path / "data"), settings=["max.connections=3"])
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        for one in connections(server.kafka, 4):
            stack.enter_context(one)
        one.settimeout(PATIENCE_S)
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(1) == b""
        eventually(lambda: "there are 3, as many as there may be: see max.connections" in server.log(), PATIENCE_S)
