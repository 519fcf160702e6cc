"""What clients of Kafka 0.7 rely on beyond single answers."""

import socket

import pytest

from millstream.wire.compression import Codec
from millstream.wire.kafka07.messages import encode_wrapper, payloads
from millstream.wire.kafka07.requests import FetchRequest, MultiFetchRequest, encode_request
from tests.conformance.kafka07_raw.conftest import Connect
from tests.support.server_process import ServerProcess
from tests.unit.wire.kafka07.sets import message_set, wrapper


def test_produce_and_close_at_once(old_server: ServerProcess, connect: Connect) -> None:
    """Several clients close right after writing: all that they wrote counts, the making of the topic included."""
    body = b""
    for number in range(20):
        writer = connect(old_server)
        for part in range(50):
            piece = message_set(b"%d %d" % (number, part) * 50)
            writer.produce("closing", piece)
            body += piece
        writer.close()
        assert connect(old_server).read_until("closing", len(body)) == body


def test_pipelined_requests(old_server: ServerProcess, connect: Connect) -> None:
    connection = connect(old_server)
    pieces = [message_set(b"%d" % number) for number in range(100)]
    for number, piece in enumerate(pieces):
        connection.produce("pipelined", piece)
        connection.write(encode_request(FetchRequest("pipelined", 0, 0, 10**6)))
        connection.write(encode_request(FetchRequest("pipelined", 5, number, 1)))
    for number in range(100):
        # The first answer waits until the addresses of the topic are known, and then tells of later messages too.
        assert connection.receive_frame()[4:].startswith(b"\0\0" + b"".join(pieces[: number + 1]))
        assert connection.receive_frame() == bytes.fromhex("00000002 0003")


def test_requests_in_every_piece_size(old_server: ServerProcess, connect: Connect) -> None:
    connection = connect(old_server)
    connection.produce("pieces", message_set(b"x"))
    request = encode_request(MultiFetchRequest([FetchRequest("pieces", 0, 0, 100)] * 2))
    for size in range(1, len(request)):
        for start in range(0, len(request), size):
            connection.write(request[start : start + size])
        assert connection.receive_frame()[4:] == b"\0\0" + (b"\0\0\0\x0c\0\0" + message_set(b"x")) * 2


def test_a_client_that_fetches_60_bytes_at_a_time(old_server: ServerProcess, connect: Connect) -> None:
    """It keeps whole messages, and asks again from the first that was cut; compressed ones are larger than that."""
    connection = connect(old_server)
    body = message_set(*(b"message %d" % n for n in range(50)), magic=1) + wrapper([b"a", b"b"]) + message_set(b"end")
    connection.produce("sixty", body)
    position, size, found = 0, 60, list[bytes]()
    while position < len(body):
        error, data = connection.fetch("sixty", position, size)
        assert error == 0
        assert data == body[position : position + size]
        whole = 0
        while len(data) - whole >= 4 and len(data) - whole >= 4 + int.from_bytes(data[whole : whole + 4], "big"):
            whole += 4 + int.from_bytes(data[whole : whole + 4], "big")
        found += [bytes(payload) for payload in payloads(memoryview(data[:whole]))]
        size = 60 if whole else size * 2
        position += whole
    assert found == [*(b"message %d" % n for n in range(50)), b"a", b"b", b"end"]


def test_messages_that_are_too_large(old_server: ServerProcess, connect: Connect) -> None:
    connection = connect(old_server)
    small = message_set(b"small")
    connection.produce("large", message_set(b"x" * 1_000_001) + small)
    connection.produce("large", message_set(b"x" * 3_000_000))
    connection.produce("large", small)
    assert connection.read_until("large", 2 * len(small)) == small * 2
    assert "messages dropped" in old_server.log()


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param("00000000", id="a length of 0"),
        pytest.param("ffffffff", id="a negative length"),
        pytest.param("06400001", id="longer than 100 MiB"),
        pytest.param("00000001 00", id="half a type"),
        pytest.param("00000002 0005", id="no such type"),
        pytest.param("0000000f 0000 0001 61 00000000 7fffffff 0000", id="a set longer than its request"),
        pytest.param("00000004 0002 7fff", id="fetches that are not there"),
    ],
)
def test_what_closes_the_connection(old_server: ServerProcess, connect: Connect, frame: str) -> None:
    connection = connect(old_server)
    connection.write(bytes.fromhex(frame))
    assert connection.closed_by_server()


def test_a_damaged_set_closes_and_what_was_before_stays(old_server: ServerProcess, connect: Connect) -> None:
    connection = connect(old_server)
    good = message_set(b"good")
    connection.produce("damaged", good)
    connection.produce("damaged", good[:-1] + b"?")
    connection.produce("damaged", good)
    assert connection.closed_by_server()
    assert connect(old_server).read_until("damaged", len(good)) == good
    assert connect(old_server).fetch("damaged", len(good)) == (0, b"")


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_a_bomb(old_server: ServerProcess, connect: Connect, codec: Codec) -> None:
    size = 300 * 1024 * 1024 if codec is Codec.GZIP else 20 * 1024 * 1024
    bomb = encode_wrapper([message_set(bytes(size))], codec)
    connection = connect(old_server)
    connection.produce("bomb", bomb * 16 if codec is Codec.SNAPPY else bomb)
    assert connection.closed_by_server()
    assert connect(old_server).fetch("bomb") == (0, b"")


def test_recognised_on_a_shared_port(any_server: ServerProcess, connect: Connect) -> None:
    body = message_set(b"hello")
    writer = connect(any_server)
    writer.produce("recognised", body)
    assert writer.read_until("recognised", len(body)) == body
    assert connect(any_server).fetch("recognised") == (0, body)
    assert connect(any_server).offsets("recognised") == [len(body), 0]


def test_a_client_that_goes_without_reading(old_server: ServerProcess, connect: Connect) -> None:
    body = message_set(b"x" * 900_000)
    connection = connect(old_server)
    connection.produce("unread", body)
    connection.read_until("unread", len(body))
    for _ in range(50):
        connection.write(encode_request(FetchRequest("unread", 0, 0, 1 << 20)))
    connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
    assert connect(old_server).read_until("unread", len(body)) == body
