"""Bytes that are no command, and commands that nobody should send: they cost their own connection at most."""

import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from millstream.wire.pulsar.frames import encode_command
from millstream.wire.pulsar.pulsar_pb2 import (
    BaseCommand,
    CommandCloseProducer,
    CommandConnect,
    CommandFlow,
    CommandLookupTopic,
    CommandProducer,
    CommandSend,
    CommandSuccess,
    ServerError,
)
from tests.conformance.pulsar_raw.conftest import Connect
from tests.conformance.pulsar_raw.connection import entry, frame
from tests.conformance.raw.server_memory import growth_below
from tests.support.server_process import ServerProcess

FRAME_BYTES_MAX = 5 * 1024 * 1024 + 10 * 1024
CONNECT = encode_command(CommandConnect(client_version="raw", protocol_version=21))
ALL_BUT_CONNECT = [number for number in BaseCommand.Type.values() if number != BaseCommand.CONNECT]


@pytest.fixture(autouse=True)
def _others_go_on(connect: Connect, topic: str, raw_server: ServerProcess) -> Iterator[None]:
    """A connection that was there before works after, and the server is the same one."""
    witness = connect()
    witness.produce(f"{topic}-witness")
    witness.send(entry(b"before"))
    yield
    witness.send(entry(b"after", 1), 1)
    assert witness.values(f"{topic}-witness", 2) == [b"before", b"after"]
    assert raw_server.process.poll() is None


def refusals(server: ServerProcess) -> int:
    """How many connections the server has refused, by its log."""
    return server.log().count("connection refused")


@pytest.mark.parametrize("size", [FRAME_BYTES_MAX + 1, 2**31 - 1, 2**31, 2**32 - 1], ids=str)
@pytest.mark.parametrize("version", [None, 21], ids=["first", "connected"])
def test_a_frame_that_is_too_long(
    connect: Connect, raw_server: ServerProcess, version: int | None, size: int
) -> None:
    before = refusals(raw_server)
    with growth_below(raw_server.process.pid, 50):
        connection = connect(version)
        connection.write(struct.pack(">I", size))
        assert connection.closed_by_server()
    assert refusals(raw_server) == before + 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\0",
        b"\0\0\0\1",
        b"\xff\xff\xff\xff",
        b"\0\0\0\5\xff\xff\xff\xff\xff",
        b"\0\0\0\2\x08\x06",
        b"\0\0\0\3\x08\xe7\x07",
        b"\0\0\0\4\x08\x06\x32\x00",
        b"\0\0\0\2\x10\x01",
        b"\0\0\0\7\x08\x02\x12\x03\x0a\x01\xff",
    ],
    ids=[
        "nothing", "half a size", "no command", "short", "long", "no protobuf", "no body", "unknown command",
        "empty send", "no type", "no UTF-8",
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [None, 21], ids=["first", "connected"])
def test_a_frame_that_is_no_command(
    connect: Connect, raw_server: ServerProcess, version: int | None, body: bytes
) -> None:
    before = refusals(raw_server)
    connection = connect(version)
    connection.write(struct.pack(">I", len(body)) + body)
    assert connection.closed_by_server()
    assert refusals(raw_server) == before + 1, "one line in the log"


@pytest.mark.parametrize(
    "hello",
    [
        b"\xff" * 64,
        b"\x00\x00\x00\x20" + b"\xff" * 32,
    ],
    ids=["ones", "framed ones"],
)
def test_what_is_of_no_protocol(connect: Connect, hello: bytes) -> None:
    connection = connect(None)
    connection.write(hello)
    assert connection.closed_by_server()


@pytest.mark.parametrize("number", ALL_BUT_CONNECT, ids=lambda number: BaseCommand.Type.Name(number).lower())
def test_every_command_before_connect_is_refused(connect: Connect, number: int) -> None:
    fields: Any = BaseCommand.DESCRIPTOR.fields_by_number
    field = fields.get(number)
    head = bytearray(b"\x08" + bytes([number]))
    if field is not None and field.message_type is not None:
        body = filled(GetMessageClass(field.message_type)()).SerializeToString()
        head += varint(number << 3 | 2) + varint(len(body)) + body
    connection = connect(None)
    connection.write(struct.pack(">II", 4 + len(head), len(head)) + head)
    assert connection.closed_by_server()


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def filled(message: Message) -> Message:
    """A message with all that it must have."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required:
            continue
        if field.message_type is not None:
            getattr(message, field.name).SetInParent()
            filled(getattr(message, field.name))
        elif field.enum_type is not None:
            setattr(message, field.name, field.enum_type.values[0].number)
        else:
            setattr(message, field.name, {field.TYPE_STRING: "x", field.TYPE_BYTES: b"x"}.get(field.type, 1))
    return message


def test_connecting_twice(connect: Connect) -> None:
    connection = connect()
    connection.write(CONNECT)
    assert connection.closed_by_server()


def test_what_was_answered_before_the_nonsense_arrives(connect: Connect) -> None:
    connection = connect(None)
    connection.write(CONNECT + frame(CommandCloseProducer(producer_id=1, request_id=7)) + b"\xff" * 8)
    connection.take()
    assert connection.receive(CommandSuccess).request_id == 7
    assert connection.closed_by_server()


def test_sending_without_a_producer(connect: Connect, topic: str) -> None:
    connection = connect()
    connection.tell(CommandSend(producer_id=1, sequence_id=0), entry())
    assert connection.closed_by_server()
    connection = connect()
    connection.produce(topic)
    connection.ask(CommandCloseProducer(producer_id=1, request_id=9), CommandSuccess)
    connection.tell(CommandSend(producer_id=1, sequence_id=0), entry())
    assert connection.closed_by_server()


def test_every_frame_cut_short_and_every_byte_of_it_flipped(connect: Connect, topic: str) -> None:
    """Cut anywhere, with the sizes made to fit, or damaged anywhere: an answer, or the end of that connection."""
    random_bits = random.Random("flips")
    command = CommandProducer(topic=topic, producer_id=1, request_id=1, producer_name="name", encrypted=False)
    whole = frame(command)[8:]
    for size in range(len(whole)):
        connection = connect()
        connection.write(struct.pack(">II", 4 + size, size) + whole[:size])
        assert connection.closed_by_server(), size
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << random_bits.randrange(8)
        connection = connect()
        connection.write(struct.pack(">II", 4 + len(damaged), len(damaged)) + damaged)
        connection.write(frame(CommandLookupTopic(topic=topic, request_id=2)))
        try:
            connection.take()
        except (AssertionError, ConnectionResetError):
            continue


def test_a_command_byte_by_byte(connect: Connect, topic: str) -> None:
    connection = connect(None)
    produce = frame(CommandProducer(topic=topic, producer_id=1, request_id=1))
    sends = frame(CommandSend(producer_id=1, sequence_id=0), entry(b"slow"))
    for command in (CONNECT, produce, sends):
        for byte in command:
            connection.write(bytes([byte]))
        connection.take()
    assert connect().values(topic, 1) == [b"slow"]


def test_a_connection_that_dies_in_the_middle(connect: Connect, topic: str) -> None:
    """Wherever it ends, what was whole before is there, and the rest is not."""
    first = frame(CommandProducer(topic=topic, producer_id=1, request_id=1, producer_name="mine"))
    second = frame(CommandSend(producer_id=1, sequence_id=0), entry(b"x" * 50))
    whole = CONNECT + first + second
    for size in (1, 4, 7, len(CONNECT), len(CONNECT) + 5, len(CONNECT + first), len(whole) - 40, len(whole) - 1):
        connection = connect(None)
        connection.write(whole[:size])
        connection.close()
    survivor = connect()
    survivor.produce(topic, producer_name="mine")
    survivor.send(entry(b"only"))
    assert survivor.values(topic, 1) == [b"only"]


def test_a_length_is_not_memory(connect: Connect, raw_server: ServerProcess) -> None:
    with growth_below(raw_server.process.pid, 100):
        connections = [connect() for _ in range(60)]
        for connection in connections:
            connection.write(struct.pack(">I", FRAME_BYTES_MAX) + bytes(10_000))
        assert connect().alive()


def test_lists_are_not_memory(connect: Connect, raw_server: ServerProcess, topic: str) -> None:
    """Empty elements of a list take two bytes on the wire, and much more when they are read."""
    with growth_below(raw_server.process.pid, 150):
        connection = connect()
        command = CommandProducer(topic=topic, producer_id=1, request_id=1).SerializeToString()
        command += b"\x32\x00" * 2_000_000  # metadata
        head = b"\x08\x05\x2a" + varint(len(command)) + command
        connection.write(struct.pack(">II", 4 + len(head), len(head)) + head)
        assert connection.closed_by_server()


def test_numbers_at_their_ends(connect: Connect, topic: str) -> None:
    connection = connect()
    largest = 2**64 - 1
    connection.ask(CommandCloseProducer(producer_id=largest, request_id=largest), CommandSuccess)
    connection.tell(CommandFlow(consumer_id=largest, messagePermits=2**32 - 1))
    assert connection.produce(topic, largest, epoch=largest).producer_name
    receipt = connection.send(entry(b"value", largest), largest, largest, highest_sequence_id=largest)
    assert (receipt.producer_id, receipt.sequence_id) == (largest, largest)
    refused = connection.send_refused(entry(publish_time=2**63), 1, largest)
    assert refused.error == ServerError.NotAllowedError
