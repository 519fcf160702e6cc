"""The blocking client against peers that do not behave, and one that goes away."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from millstream.spark import connections
from millstream.spark.client import EARLIEST, LATEST, Client
from millstream.spark.errors import BrokerUnreachable, TopicMissing
from tests.spark.conftest import Topics
from tests.support.server_process import ServerProcess, lasting_listener, serving, start
from tests.support.waiting import eventually

Peer = Callable[[socket.socket], None]


@contextlib.contextmanager
def _peer(behave: Peer) -> Iterator[str]:
    """A server that does something to each connection; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    behave(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _answer(content: bytes) -> Peer:
    def behave(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(content)

    return behave


@pytest.mark.parametrize(
    ("behave", "message"),
    [
        (lambda connection: None, "no Kafka broker answers at"),
        (_answer(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "what answers at .* is no Kafka broker"),
        (_answer(struct.pack(">i", -1)), "what answers at .* is no Kafka broker"),
        (_answer(bytes.fromhex("15 0303 0002 02 0a")), "speaks TLS only; set kafka.security.protocol to SSL or"),
        (_answer(struct.pack(">i", 100) + b"too short"), "no Kafka broker answers at .*closed the connection"),
        (_answer(struct.pack(">iib", 9, 1, 0) + b"\xff" * 4), "gave an answer that makes no sense"),
        (_answer(struct.pack(">iib", 20, 99, 0) + bytes(15)), "answered another request|makes no sense"),
    ],
)
def test_a_peer_that_is_no_broker(behave: Peer, message: str) -> None:
    with (
        _peer(behave) as address,
        Client(address) as client,
        pytest.raises(BrokerUnreachable, match=message) as raised,
    ):
        client.topics(["a"])
    assert "\n" not in str(raised.value)


def test_a_peer_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_ANSWER_TIMEOUT_S", 0.2)
    release = threading.Event()

    def behave(connection: socket.socket) -> None:
        release.wait(10)

    with _peer(behave) as address, Client(address) as client:
        with pytest.raises(BrokerUnreachable, match="timed out"):
            client.topics(["a"])
        release.set()


def test_the_second_server_answers_where_the_first_does_not(broker: ServerProcess, topics: Topics) -> None:
    topic = topics.create("second")
    with Client(f"127.0.0.1:1, {broker.kafka}") as client:
        assert client.topics([topic])[topic].leaders == {0: broker.kafka}
    with Client("127.0.0.1:1,127.0.0.1:2") as client, pytest.raises(BrokerUnreachable, match=r":1 .*; .*:2 "):
        client.topics([topic])


def test_a_connection_that_broke_is_made_anew(tmp_path_factory: pytest.TempPathFactory) -> None:
    data_dir = str(tmp_path_factory.mktemp("restart") / "data")
    listen = lasting_listener()
    with serving(data_dir, listen) as server:
        topic = Topics(server.kafka).create("kept")
        Topics(server.kafka).write_numbers(topic, range(10))
        client = Client(server.kafka)
        described = client.topics([topic])
        assert client.offsets(described, LATEST) == {topic: {0: 10}}
    with serving(data_dir, listen), client:
        assert client.offsets(described, LATEST) == {topic: {0: 10}}
        assert client.offsets(described, EARLIEST) == {topic: {0: 0}}
        assert client.data_dir(server.kafka) == data_dir


def test_a_broker_that_restarts_knows_its_topics_from_its_first_answer_on(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data_dir, listen = str(tmp_path_factory.mktemp("restarts") / "data"), lasting_listener()
    server = start(data_dir, listen)
    topic = Topics(server.kafka).create("known")
    with Client(server.kafka) as client:
        known = client.topics([topic])[topic]
    answers: list[bool] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            with contextlib.suppress(BrokerUnreachable), Client(server.kafka) as client:
                client.fetch(topic, known.topic_id, 0, server.kafka, 0, 1)
                answers.append(client.topics([topic])[topic] == known)

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            for _ in range(3):
                answers.clear()
                eventually(lambda: answers or asking.done())
                assert all(answers)
                server.kill()
                server = start(data_dir, listen)
        finally:
            ended.set()
            server.stop()
        asking.result()


def test_offsets_by_time_and_out_of_range(broker: ServerProcess, topics: Topics) -> None:
    topic = topics.create("times", partitions=2)
    topics.write_numbers(topic, range(10))
    with Client(broker.kafka) as client:
        described = client.topics([topic])
        assert client.offsets(described, 1_700_000_000_004) == {topic: {0: 4, 1: -1}}
        topic_id = described[topic].topic_id
        fetched = client.fetch(topic, topic_id, 0, broker.kafka, 99, 1000)
        assert (fetched.is_out_of_range, fetched.start_offset, fetched.records) == (True, 0, b"")
        with pytest.raises(TopicMissing, match=r"there is no topic 'times-.*-7' at"):
            client.fetch(topic, topic_id, 7, broker.kafka, 0, 1000)
        with pytest.raises(TopicMissing, match=r"there is no topic 'no such topic!' at .* the option subscribe"):
            client.topics(["no such topic!"])
