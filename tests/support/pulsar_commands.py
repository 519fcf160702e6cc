"""One command of Pulsar's binary protocol, and what it is answered."""

import socket
from typing import Any

from google.protobuf.message import Message

from millstream.wire.pulsar.frames import PREFIX_BYTES, command_body, encode_command, measure_frame, read_frame
from millstream.wire.pulsar.pulsar_pb2 import CommandConnect, CommandConnected

__all__ = ["ask_pulsar"]

_TIMEOUT_S = 20


def ask_pulsar(address: str, request: Message) -> Any:
    """Connect, send a command, and return the body of the first answer to it."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), _TIMEOUT_S) as connection:
        greeting = _answer(connection, CommandConnect(client_version="test", protocol_version=19))
        assert isinstance(greeting, CommandConnected)
        return _answer(connection, request)


def _answer(connection: socket.socket, request: Message) -> Any:
    connection.sendall(encode_command(request))
    data = b""
    while not (size := measure_frame(memoryview(data))) or len(data) < size:
        received = connection.recv(65536)
        assert received, "the broker closed the connection"
        data += received
    command, _ = read_frame(memoryview(data)[PREFIX_BYTES:size])
    return command_body(command)
