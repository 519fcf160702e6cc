"""Bytes that are no request: the connection ends, or goes on; nothing else happens, and nobody else notices."""

import random
import struct
from collections.abc import Callable, Iterator

import pytest

from millstream.sessions.kafka.table import HANDLERS
from millstream.wire.kafka.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest
from millstream.wire.kafka.messages.produce import PRODUCE
from tests.conformance.raw.conftest import Connect
from tests.conformance.raw.log_client import LATEST, LogClient, batch_of, produce_request
from tests.conformance.raw.requests_of_every_api import requests_by_key
from tests.conformance.raw.server_memory import growth_below
from tests.support.server_process import ServerProcess

REQUEST_BYTES_MAX = 100 * 1024 * 1024
TLS_HELLO = bytes.fromhex("16030102000100 01fc0303".replace(" ", "")) + bytes(range(200))


@pytest.fixture(autouse=True)
def _others_go_on(client: LogClient, topic: str, broker: ServerProcess) -> Iterator[None]:
    """A connection that was there before works after, and the server is the same one."""
    client.append(topic, b"before")
    pid = broker.process.pid
    yield
    client.append(topic, b"after")
    assert client.values(topic) == [b"before", b"after"]
    assert broker.process.poll() is None
    assert broker.process.pid == pid


@pytest.mark.parametrize(
    "length", [-(2**31), -1, 0, 1, 9, REQUEST_BYTES_MAX + 1, 2**31 - 1], ids=lambda length: str(length)
)
def test_lengths_that_no_request_has(connect: Connect, length: int, broker: ServerProcess) -> None:
    with growth_below(broker.process.pid, 50):
        connection = connect()
        connection.write(struct.pack(">i", length))
        assert connection.closed_by_server()


def test_what_was_answered_before_the_nonsense_arrives(connect: Connect) -> None:
    connection = connect()
    sent = connection.send(METADATA, 12, MetadataRequest(topics=[]))
    connection.write(struct.pack(">i", -1))
    assert connection.receive(METADATA, 12, sent).brokers
    assert connection.closed_by_server()


@pytest.mark.parametrize(
    "hello",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\xff" * 64,
        bytes(64),
        b"\x00\x00\x00\x20" + b"\xff" * 32,
    ],
    ids=["ssh", "ones", "zeros", "framed-ones"],
)
def test_protocols_that_are_not_spoken(connect: Connect, hello: bytes) -> None:
    connection = connect()
    connection.write(hello)
    assert connection.closed_by_server()


@pytest.mark.parametrize(
    ("hello", "answer"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 404"),
        (b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", b"HTTP/1.1 404"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HTTP/1.1 404"),
        (TLS_HELLO, b"\x15\x03\x03\0\2\2\x28"),
    ],
    ids=["http-get", "http-post", "http2", "tls"],
)
def test_other_protocols_are_answered_as_such(connect: Connect, hello: bytes, answer: bytes) -> None:
    connection = connect()
    connection.write(hello)
    assert connection.receive_exactly(len(answer)) == answer


def test_noise(connect: Connect) -> None:
    noise = random.Random("noise")
    for _ in range(100):
        connection = connect()
        body = noise.randbytes(noise.randint(10, 300))
        connection.write(struct.pack(">i", len(body)) + body)
        # A frame of noise may be cut short or be an API that does not exist: no answer can follow.
        assert connection.closed_by_server()
        connection.close()


def test_every_request_cut_short(
    connect: Connect, client: LogClient, topic: str, unique: Callable[[str], str]
) -> None:
    """A frame that ends before its message does is malformed, wherever it is cut."""
    cuts = random.Random("cuts")
    source = unique("raw")
    requests = requests_by_key(source, client.create_topic(source), unique("fresh"))
    for key, handler in HANDLERS.items():
        version = handler.api.versions[-1]
        frame = b"".join(handler.api.encode_request(version, 1, "raw", requests[key]))[4:]
        for size in {*cuts.sample(range(10, len(frame)), min(6, len(frame) - 10)), len(frame) - 1}:
            connection = connect()
            connection.write(struct.pack(">i", size) + frame[:size])
            if handler.api.name != "ApiVersions" or size < len(frame) - 1:
                assert connection.closed_by_server(), (handler.api.name, size, len(frame))
            connection.close()
    assert client.offset(source, LATEST) == 0


def test_counts_that_their_bytes_cannot_hold(connect: Connect, broker: ServerProcess) -> None:
    with growth_below(broker.process.pid, 50):
        header = struct.pack(">hhih3s", METADATA.key, 1, 1, 3, b"raw")
        for count in (2**31 - 1, 2**24, 1000):
            body = header + struct.pack(">i", count) + bytes(20)
            connection = connect()
            connection.write(struct.pack(">i", len(body)) + body)
            assert connection.closed_by_server(), count
        flexible = struct.pack(">hhih3sB", METADATA.key, 12, 1, 3, b"raw", 0)
        for varint in (b"\xff\xff\xff\xff\x0f", b"\xff" * 12, b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"):
            body = flexible + varint + bytes(20)
            connection = connect()
            connection.write(struct.pack(">i", len(body)) + body)
            assert connection.closed_by_server(), varint


def test_a_peer_that_goes_away_in_the_middle(connect: Connect, topic: str) -> None:
    frame = b"".join(PRODUCE.encode_request(9, 1, "raw", produce_request(topic, batch_of(bytes(10_000)))))
    for size in (1, 3, 4, 10, 100, len(frame) - 1):
        connection = connect()
        connection.write(frame[:size])
        connection.close()


def test_a_slow_trickle_takes_nobody_elses_time(connect: Connect, client: LogClient, topic: str) -> None:
    slow = connect()
    source = f"{topic}-slow"
    client.create_topic(source)
    frame = b"".join(PRODUCE.encode_request(9, 1, "raw", produce_request(source, batch_of(b"slow"))))
    for position in range(len(frame)):
        slow.write(frame[position : position + 1])
        if position % 10 == 0:
            assert client.offset(source, LATEST) == 0
    assert slow.receive(PRODUCE, 9, 1).responses[0].partition_responses[0].error_code == 0
    assert client.values(source) == [b"slow"]


def test_a_length_is_not_memory(connect: Connect, broker: ServerProcess) -> None:
    """Many connections that promise 100 MiB and send little of it."""
    with growth_below(broker.process.pid, 150):
        connections = [connect() for _ in range(50)]
        for connection in connections:
            connection.write(struct.pack(">i", REQUEST_BYTES_MAX) + bytes(20_000))
        assert connect().call(METADATA, 12, MetadataRequest(topics=[])).brokers
    for connection in connections:
        connection.close()


def test_large_requests_of_apis_that_have_none(connect: Connect, broker: ServerProcess) -> None:
    with growth_below(broker.process.pid, 120):
        connection = connect()
        header = struct.pack(">hhih3s", METADATA.key, 1, 1, 3, b"raw")
        size = 20 * 1024 * 1024
        connection.write(struct.pack(">i", size) + header + struct.pack(">i", 5_000_000))
        # The server may end it before all has been sent.
        try:
            connection.write(b"\x00\x01x\x00" * (size // 4))
            assert connection.closed_by_server()
        except (BrokenPipeError, ConnectionResetError):
            pass


def test_a_reader_that_does_not_read(
    connect: Connect, client: LogClient, broker: ServerProcess, unique: Callable[[str], str]
) -> None:
    """Answers for a peer that takes none of them are bounded."""
    source = unique("raw")
    client.create_topic(source)
    for _ in range(10):
        client.append(source, bytes(900_000))
    with growth_below(broker.process.pid, 300):
        slow = connect()
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50_000_000)
        request = FetchRequest(topics=[FetchTopic(topic=source, partitions=[wanted])])
        for _ in range(100):  # 900 MB of answers
            slow.send(FETCH, 12, request)
        for _ in range(20):
            assert client.offset(source, LATEST) == 10
