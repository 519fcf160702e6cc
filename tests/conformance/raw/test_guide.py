"""What the Kafka protocol guide says of connections, with bytes that are written by hand from it alone."""

import struct
from collections.abc import Iterator

import pytest
from crc32c import crc32c

from tests.support.plain_socket import PlainSocket
from tests.support.server_process import ServerProcess, serving

PRODUCE, METADATA, OFFSET_COMMIT, OFFSET_FETCH = 0, 3, 8, 9
SASL_HANDSHAKE, CREATE_TOPICS, DELETE_TOPICS, SASL_AUTHENTICATE, CREATE_PARTITIONS = 17, 19, 20, 36, 37
NULL_STRING = b"\xff\xff"


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def sized(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def array(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def request(key: int, version: int, correlation_id: int, body: bytes) -> bytes:
    return sized(struct.pack(">hhi", key, version, correlation_id) + string("by hand") + body)


def create_topics(name: str) -> bytes:
    return array(string(name) + struct.pack(">ih", 1, 1) + array() + array()) + struct.pack(">ib", 5000, 0)


def record_batch(value: bytes) -> bytes:
    record = b"\0\0\0\x01" + bytes([2 * len(value)]) + value + b"\0"  # a null key, no headers
    records = bytes([2 * len(record)]) + record
    body = struct.pack(">hiqqqhii", 0, 0, 1000, 1000, -1, -1, -1, 1) + records
    return struct.pack(">qiibI", 0, len(body) + 9, 0, 2, crc32c(body)) + body


def produce(name: str, partition: int = 0) -> bytes:
    data = struct.pack(">i", partition) + sized(record_batch(b"x"))
    return NULL_STRING + struct.pack(">hi", -1, 5000) + array(string(name) + array(data))


def produced(name: str, partition: int, error: int, base_offset: int) -> bytes:
    return array(string(name) + array(struct.pack(">ihqq", partition, error, base_offset, -1))) + bytes(4)


class Socket(PlainSocket):
    """A connection of a client that knows nothing but bytes."""

    def answer(self, correlation_id: int) -> bytes:
        content = self.token()
        assert content[:4] == struct.pack(">i", correlation_id)
        return content[4:]

    def token(self) -> bytes:
        (size,) = struct.unpack(">i", self.receive_exactly(4))
        return self.receive_exactly(size)


@pytest.fixture
def client(broker: ServerProcess) -> Iterator[Socket]:
    connection = Socket(broker.kafka)
    yield connection
    connection.close()


def test_requests_are_processed_in_the_order_they_are_sent(client: Socket) -> None:
    """Each in the same packet as those that it counts on."""
    client.write(
        request(CREATE_TOPICS, 2, 1, create_topics("in-order")),
        request(PRODUCE, 3, 2, produce("in-order")),
        request(CREATE_PARTITIONS, 0, 3, array(string("in-order") + b"\0\0\0\2\xff\xff\xff\xff") + b"\0\0\x13\x88\0"),
        request(PRODUCE, 3, 4, produce("in-order", 1)),
        request(DELETE_TOPICS, 1, 5, array(string("in-order")) + b"\0\0\x13\x88"),
        request(PRODUCE, 3, 6, produce("in-order")),
    )
    assert client.answer(1) == bytes(4) + array(string("in-order") + b"\0\0" + NULL_STRING)
    assert client.answer(2) == produced("in-order", 0, 0, 0)
    assert client.answer(3) == bytes(4) + array(string("in-order") + b"\0\0" + NULL_STRING)
    assert client.answer(4) == produced("in-order", 1, 0, 0)
    assert client.answer(5) == bytes(4) + array(string("in-order") + b"\0\0")
    assert client.answer(6) == produced("in-order", 0, 3, -1)


def test_a_topic_that_metadata_makes_is_there_for_what_follows(client: Socket) -> None:
    client.write(
        request(METADATA, 1, 1, array(string("by-metadata"))), request(PRODUCE, 3, 2, produce("by-metadata"))
    )
    client.answer(1)
    assert client.answer(2) == produced("by-metadata", 0, 0, 0)


def test_a_commit_is_seen_by_the_fetch_behind_it(client: Socket) -> None:
    client.write(request(CREATE_TOPICS, 2, 1, create_topics("committed")))
    client.answer(1)
    committed = array(string("committed") + array(struct.pack(">iq", 0, 5) + string("kept")))
    client.write(
        request(OFFSET_COMMIT, 2, 2, string("g") + b"\xff\xff\xff\xff" + string("") + b"\xff" * 8 + committed),
        request(OFFSET_FETCH, 1, 3, string("g") + array(string("committed") + array(bytes(4)))),
    )
    assert client.answer(2) == array(string("committed") + array(bytes(6)))
    assert client.answer(3) == array(string("committed") + array(struct.pack(">iq", 0, 5) + string("kept") + b"\0\0"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that wants to know who its clients are."""
    folder = tmp_path_factory.mktemp("guide")
    users = folder / "users"
    users.write_text("ada:secret\n")
    settings = ["sasl.enabled.mechanisms=PLAIN", f"sasl.users.file={users}"]
    with serving(str(folder / "data"), settings=settings) as server:
        yield server


GOOD, BAD = b"\0ada\0secret", b"\0ada\0other"
MECHANISMS = array(string("PLAIN"))


@pytest.mark.parametrize("version", [0, 1])
def test_a_mechanism_that_is_not_enabled(guarded: ServerProcess, version: int) -> None:
    """The server responds with the list of supported mechanisms and closes the client connection."""
    client = Socket(guarded.kafka)
    client.write(request(SASL_HANDSHAKE, version, 1, string("GSSAPI")))
    assert client.answer(1) == b"\0\x21" + MECHANISMS
    assert client.closed_by_server()
    client.close()


def test_tokens_in_requests(guarded: ServerProcess) -> None:
    """The error code in the final message tells how it went; if it did not go well, the connection is closed."""
    client = Socket(guarded.kafka)
    client.write(
        request(SASL_HANDSHAKE, 1, 1, string("PLAIN")),
        request(SASL_AUTHENTICATE, 0, 2, sized(GOOD)),
        request(METADATA, 1, 3, array()),
    )
    assert client.answer(1) == b"\0\0" + MECHANISMS
    assert client.answer(2) == b"\0\0" + string("") + sized(b"")
    assert len(client.answer(3)) > 8
    client.close()
    client = Socket(guarded.kafka)
    client.write(request(SASL_HANDSHAKE, 1, 1, string("PLAIN")), request(SASL_AUTHENTICATE, 0, 2, sized(BAD)))
    client.answer(1)
    assert client.answer(2)[:2] == b"\0\x3a"
    assert client.closed_by_server()
    client.close()


def test_opaque_tokens(guarded: ServerProcess) -> None:
    """After version 0, tokens come without wrapping the messages with Kafka protocol headers."""
    client = Socket(guarded.kafka)
    client.write(request(SASL_HANDSHAKE, 0, 1, string("PLAIN")), sized(GOOD), request(METADATA, 1, 2, array()))
    assert client.answer(1) == b"\0\0" + MECHANISMS
    assert client.token() == b""
    assert len(client.answer(2)) > 8
    client.close()
    client = Socket(guarded.kafka)
    client.write(request(SASL_HANDSHAKE, 0, 1, string("PLAIN")), sized(BAD))
    client.answer(1)
    assert client.closed_by_server()
    client.close()


def test_a_first_packet_that_is_no_request(guarded: ServerProcess) -> None:
    """It would be a token of GSSAPI, as clients of 0.9.0 send it; that mechanism is not enabled here."""
    client = Socket(guarded.kafka)
    client.write(sized(b"\x60\x82\x01\x00" + b"t" * 60))
    assert client.closed_by_server()
    client.close()
