"""Every command of the Iggy binary transport page, with bytes that are written by hand from it alone.

Where its clients (of 2023-09) have a request otherwise, both forms are sent. The answers of which the page says
nothing are those that the clients accept.
"""

import struct
from collections.abc import Callable, Iterator

import pytest

from tests.support.plain_socket import PlainSocket
from tests.support.server_process import ServerProcess, serving

PING, GET_STATS, GET_ME, GET_CLIENT, GET_CLIENTS = 1, 10, 20, 21, 22
POLL_MESSAGES, SEND_MESSAGES, GET_CONSUMER_OFFSET, STORE_CONSUMER_OFFSET = 100, 101, 120, 121
GET_STREAM, GET_STREAMS, CREATE_STREAM, DELETE_STREAM = 200, 201, 202, 203
GET_TOPIC, GET_TOPICS, CREATE_TOPIC, DELETE_TOPIC, CREATE_PARTITIONS, DELETE_PARTITIONS = 300, 301, 302, 303, 402, 403
GET_GROUP, GET_GROUPS, CREATE_GROUP, DELETE_GROUP, JOIN_GROUP, LEAVE_GROUP = 600, 601, 602, 603, 604, 605
OFFSET, TIMESTAMP, FIRST, LAST, NEXT = 1, 2, 3, 4, 5
BALANCED = b"\1\0"


def u32(number: int) -> bytes:
    return struct.pack("<I", number)


def u64(number: int) -> bytes:
    return struct.pack("<Q", number)


def number(value: int) -> bytes:
    """A numeric identifier."""
    return b"\1\4" + u32(value)


def text(value: str) -> bytes:
    """An identifier of text."""
    return bytes((2, len(value))) + value.encode()


def name(value: str) -> bytes:
    return bytes((len(value),)) + value.encode()


def consumer(value: int, kind: int = 1) -> bytes:
    return bytes((kind,)) + u32(value)


def to_partition(value: int) -> bytes:
    return b"\2\4" + u32(value)


def by_key(value: bytes) -> bytes:
    return bytes((3, len(value))) + value


def message(payload: bytes, fill: int = 7) -> bytes:
    """16 + 4 + N bytes."""
    return bytes([fill]) * 16 + u32(len(payload)) + payload


class Connection(PlainSocket):
    """A client that knows nothing but bytes."""

    def command(self, code: int, payload: bytes = b"") -> None:
        self.write(u32(4 + len(payload)) + u32(code) + payload)

    def answer(self) -> tuple[int, bytes]:
        status, length = struct.unpack("<II", self.receive_exactly(8))
        return status, self.receive_exactly(length)

    def ask(self, code: int, payload: bytes = b"") -> bytes:
        self.command(code, payload)
        status, content = self.answer()
        assert status == 0
        return content

    def refused(self, code: int, payload: bytes = b"") -> int:
        self.command(code, payload)
        status, content = self.answer()
        assert content == b""
        return status

    def poll(
        self, where: bytes, strategy: int, value: int = 0, count: int = 10, partition: int = 1, **how: bytes
    ) -> list[bytes]:
        """The payloads that a poll finds."""
        who, commit = how.get("who", consumer(1)), how.get("commit", b"\0")
        return polled(
            self.ask(
                POLL_MESSAGES, who + where + u32(partition) + bytes((strategy,)) + u64(value) + u32(count) + commit
            )
        )


def polled(content: bytes) -> list[bytes]:
    """The payloads of PolledMessages, all of whose fields are looked at."""
    _, _, count = struct.unpack_from("<IQI", content)
    position, payloads = 16, []
    for _ in range(count):
        _, state, _, _, _, headers = struct.unpack_from("<QBQ16sII", content, position)
        assert state == 1
        position += 41 + headers
        (length,) = struct.unpack_from("<I", content, position)
        payloads.append(content[position + 4 : position + 4 + length])
        position += 4 + length
    assert position == len(content)
    return payloads


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a listener for Iggy."""
    with serving(str(tmp_path_factory.mktemp("iggy-raw") / "data"), "iggy=127.0.0.1:0") as process:
        yield process
        assert "internal error" not in process.log()


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Connection]:
    connection = Connection(server.addresses["iggy"])
    yield connection
    connection.close()


@pytest.fixture
def place(client: Connection, unique: Callable[[str], str]) -> bytes:
    """The identifiers of a stream and a topic of two partitions."""
    stream = unique("s")
    client.ask(CREATE_STREAM, text(stream) + name(stream))
    client.ask(CREATE_TOPIC, text(stream) + number(1) + u32(2) + name("t"))
    return text(stream) + number(1)


@pytest.mark.parametrize("identifier", [u32, number], ids=["u32", "identifier"])
def test_streams_and_topics(client: Connection, identifier: Callable[[int], bytes]) -> None:
    assert client.ask(PING) == b""
    assert client.ask(CREATE_STREAM, identifier(70) + name("seventy")) == b""
    assert client.refused(CREATE_STREAM, identifier(70) + name("other")) == 1011
    assert client.refused(CREATE_STREAM, identifier(71) + name("seventy")) == 1012
    expiry = u32(0) if identifier is u32 else b""
    assert client.ask(CREATE_TOPIC, number(70) + identifier(3) + u32(2) + expiry + name("three")) == b""
    for stream, topic in ((number(70), number(3)), (text("seventy"), text("three"))):
        content = client.ask(GET_STREAM, stream)
        assert content[:4] == u32(70)
        assert content[12:16] == u32(1)
        assert content[32:40] == name("seventy")
        found = client.ask(GET_TOPIC, stream + topic)
        assert (found[:4], found[12:16], found[36:42]) == (u32(3), u32(2), name("three"))
        assert len(found) == 42 + 2 * 40
        assert client.ask(GET_TOPICS, stream) == found[:42] == content[40:]
    assert name("seventy") in client.ask(GET_STREAMS)
    assert client.ask(CREATE_PARTITIONS, number(70) + number(3) + u32(3)) == b""
    assert client.ask(DELETE_PARTITIONS, number(70) + number(3) + u32(1)) == b""
    assert client.ask(GET_TOPIC, number(70) + number(3))[12:16] == u32(4)
    assert client.ask(DELETE_TOPIC, number(70) + number(3)) == b""
    assert client.refused(GET_TOPIC, number(70) + number(3)) == 2010
    assert client.refused(GET_TOPIC, number(70) + text("three")) == 2011
    assert client.ask(DELETE_STREAM, number(70)) == b""
    assert (client.refused(GET_STREAM, number(70)), client.refused(GET_STREAM, text("seventy"))) == (1009, 1010)


def test_identifiers_of_every_length(client: Connection) -> None:
    """3 bytes (text of one character) to 257 (of 255)."""
    for length in (1, 2, 254, 255):
        stream = "x" * length
        client.ask(CREATE_STREAM, text(stream) + name(stream))
        assert client.ask(GET_STREAM, text(stream))[32:] == name(stream)
        client.ask(DELETE_STREAM, text(stream))
    for damaged in (b"\3\4" + u32(1), b"\1\3abc", b"\2\0", b"\2\5ab", b"\1"):
        assert client.refused(GET_STREAM, damaged) == 3


def test_messages_in_both_forms(client: Connection, place: bytes) -> None:
    client.ask(SEND_MESSAGES, place + to_partition(1) + message(b"one") + message(b"two"))
    with_headers = bytes(16) + u32(0) + u32(5) + b"three"
    client.ask(SEND_MESSAGES, place + to_partition(1) + with_headers)
    content = client.ask(POLL_MESSAGES, consumer(1) + place + u32(1) + b"\1" + u64(0) + u32(10) + b"\0")
    assert content[:16] == u32(1) + u64(2) + u32(3)
    assert polled(content) == [b"one", b"two", b"three"]
    assert content[33:49] == b"\7" * 16
    for damaged in (b"", message(b""), message(b"cut")[:-1], message(b"one") + b"\0"):
        assert client.refused(SEND_MESSAGES, place + to_partition(1) + damaged) in {4009, 4024, 4025, 4017, 4018}
    assert client.poll(place, OFFSET) == [b"one", b"two", b"three"]


def test_partitioning(client: Connection, place: bytes) -> None:
    for payload in (b"a", b"b", b"c"):
        client.ask(SEND_MESSAGES, place + BALANCED + message(payload))
    assert client.poll(place, FIRST, partition=1) == [b"a", b"c"]
    assert client.poll(place, FIRST, partition=2) == [b"b"]
    for key in (b"k", b"k" * 255):
        client.ask(SEND_MESSAGES, place + by_key(key) + message(b"keyed"))
    found = client.poll(place, FIRST, partition=1) + client.poll(place, FIRST, partition=2)
    assert found.count(b"keyed") == 2
    assert client.refused(SEND_MESSAGES, place + to_partition(3) + message(b"x")) == 3007
    assert client.refused(SEND_MESSAGES, place + b"\4\0" + message(b"x")) == 3
    for damaged in (b"\1\1x", b"\2\3abc", b"\3\0"):
        assert client.refused(SEND_MESSAGES, place + damaged + message(b"x")) == 4028


def test_strategies_and_offsets(client: Connection, place: bytes) -> None:
    for payload in (b"0", b"1", b"2", b"3"):
        client.ask(SEND_MESSAGES, place + to_partition(1) + message(payload))
    assert client.poll(place, OFFSET, 2) == [b"2", b"3"]
    assert client.poll(place, FIRST, count=2) == [b"0", b"1"]
    assert client.poll(place, LAST, count=2) == [b"2", b"3"]
    assert client.poll(place, TIMESTAMP, 2**63) == []
    assert client.poll(place, NEXT, count=3, commit=b"\1") == [b"0", b"1", b"2"]
    assert client.poll(place, NEXT, commit=b"\0") == [b"3"]
    assert client.ask(GET_CONSUMER_OFFSET, consumer(1) + place + u32(1)) == u32(1) + u64(3) + u64(2)
    assert client.ask(GET_CONSUMER_OFFSET, consumer(2) + place + u32(1)) == u32(1) + u64(3) + u64(0)
    client.ask(STORE_CONSUMER_OFFSET, consumer(2) + place + u32(1) + u64(1))
    assert client.ask(GET_CONSUMER_OFFSET, consumer(2) + place + u32(1)) == u32(1) + u64(3) + u64(1)
    assert client.poll(place, NEXT, who=consumer(2)) == [b"2", b"3"]
    assert client.refused(STORE_CONSUMER_OFFSET, consumer(2) + place + u32(1) + u64(4)) == 4100
    poll = place + u32(1) + b"\1" + u64(0)
    assert client.refused(POLL_MESSAGES, consumer(1) + poll + u32(0) + b"\0") == 4009
    assert client.refused(POLL_MESSAGES, consumer(1, kind=3) + poll + u32(1) + b"\0") == 3
    assert client.refused(POLL_MESSAGES, consumer(1) + place + u32(1) + b"\6" + u64(0) + u32(1) + b"\0") == 3
    assert client.refused(POLL_MESSAGES, consumer(1) + place + u32(9) + b"\1" + u64(0) + u32(1) + b"\0") == 3007


def header(key: bytes, kind: int, value: bytes) -> bytes:
    return u32(len(key)) + key + bytes((kind,)) + u32(len(value)) + value


def test_headers(client: Connection, place: bytes) -> None:
    """Of every kind, of any length; the values of all together may have 100 KiB, whatever is around them."""

    def send(*blocks: bytes) -> tuple[int, bytes]:
        messages = b"".join(bytes(16) + u32(len(block)) + block + u32(1) + b"x" for block in blocks)
        client.command(SEND_MESSAGES, place + to_partition(1) + messages)
        return client.answer()

    every = b"".join(header(b"kind-%d" % kind, kind, b"v") for kind in range(1, 16))
    assert send(every) == (0, b"")
    assert every in client.ask(POLL_MESSAGES, consumer(1) + place + u32(1) + b"\3" + u64(0) + u32(1) + b"\0")
    assert send(header(b"k" * 255, 1, b"v" * 255)) == (0, b"")
    many = [header(b"k" * 60, 2, b"v" * 100)] * 1024
    assert send(*many) == (0, b"")
    assert send(*many, header(b"k", 2, b"v"))[0] == 4017
    assert send(b"".join(many) + header(b"k", 2, b"v"))[0] == 4017
    for damaged, status in (
        (header(b"k", 0, b"v"), 3),
        (header(b"k", 16, b"v"), 3),
        (header(b"", 1, b"v"), 4018),
        (header(b"k" * 256, 1, b"v"), 4018),
        (header(b"\xff", 1, b"v"), 4018),
        (header(b"k", 1, b""), 4019),
        (header(b"k", 1, b"v" * 256), 4019),
    ):
        assert send(damaged)[0] == status


def test_groups(client: Connection, place: bytes) -> None:
    for payload in (b"a", b"b"):
        client.ask(SEND_MESSAGES, place + BALANCED + message(payload))
    assert client.refused(JOIN_GROUP, place + u32(9)) == 5000
    assert client.ask(CREATE_GROUP, place + u32(9)) == b""
    assert client.refused(CREATE_GROUP, place + u32(9)) == 5001
    assert client.refused(CREATE_GROUP, place + u32(0)) == 5003
    assert client.ask(JOIN_GROUP, place + u32(9)) == b""
    me = client.ask(GET_ME)
    member = me[:4]
    stream = client.ask(GET_STREAM, place[:-6])[:4]
    assert me[-16:] == u32(1) + stream + u32(1) + u32(9), "groups: stream, topic and group, as clients read them"
    assert client.ask(GET_GROUP, place + u32(9)) == u32(9) + u32(2) + u32(1) + member + u32(2) + u32(1) + u32(2)
    assert client.ask(GET_GROUPS, place) == u32(9) + u32(2) + u32(1)
    found = [payload for _ in range(2) for payload in client.poll(place, NEXT, who=consumer(9, kind=2), commit=b"\1")]
    assert sorted(found) == [b"a", b"b"]
    assert client.ask(LEAVE_GROUP, place + u32(9)) == b""
    assert client.refused(LEAVE_GROUP, place + u32(9)) == 5002
    assert client.ask(DELETE_GROUP, place + u32(9)) == b""
    assert client.refused(GET_GROUP, place + u32(9)) == 5000


def test_the_server_and_its_clients(client: Connection) -> None:
    me = client.ask(GET_ME)
    assert client.ask(GET_CLIENT, me[:4]) == me
    assert me[:-4] in client.ask(GET_CLIENTS)
    assert client.refused(GET_CLIENT, u32(0)) == 101
    assert len(client.ask(GET_STATS)) > 100


def test_what_is_no_command(client: Connection) -> None:
    assert client.refused(999) == 3
    assert client.refused(GET_STREAM) == 3
    assert client.ask(PING, b"more than nothing") == b""


def test_requests_in_one_packet_are_served_in_their_order(client: Connection) -> None:
    requests = [
        (CREATE_STREAM, number(90) + name("ninety")),
        (CREATE_TOPIC, number(90) + number(1) + u32(1) + name("t")),
        (SEND_MESSAGES, number(90) + number(1) + to_partition(1) + message(b"x")),
        (DELETE_TOPIC, number(90) + number(1)),
        (GET_TOPIC, number(90) + number(1)),
    ]
    client._socket.sendall(b"".join(u32(4 + len(payload)) + u32(code) + payload for code, payload in requests))
    assert [client.answer()[0] for _ in requests] == [0, 0, 0, 0, 2010]
