"""Kafka 0.7 over a bare socket: message sets encoded beforehand, and fetches into one buffer.

Source: the Kafka 0.7 wire format page.
"""

import socket
import struct
from typing import Final
from zlib import crc32

from bench.drivers.pipeline import DriverError, connect

__all__ = ["Kafka07Raw", "message_set"]

_RECEIVE_BYTES: Final = 4 << 20
_ANSWER: Final = struct.Struct(">ih")
_NOBODY: Final = b"nobody-has-this-topic"


def message_set(value: bytes, size_bytes: int) -> bytes:
    """Encode as many messages of magic 1 with the same payload as fit a size."""
    message = struct.pack(">iBBI", len(value) + 6, 1, 0, crc32(value)) + value
    return message * (size_bytes // len(message))


def _request(kind: int, topic: bytes, body: bytes) -> bytes:
    head = struct.pack(">hh", kind, len(topic)) + topic + struct.pack(">i", 0)
    return struct.pack(">i", len(head) + len(body)) + head + body


class Kafka07Raw:
    """A connection that produces to partition 0 of topics and reads from it.

    Args:
        host, port: the server.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket: socket.socket = connect(host, port)
        self._buffer = memoryview(bytearray(_RECEIVE_BYTES))

    def produce(self, topic: str, messages: bytes, count: int) -> None:
        """Produce a set so many times, and return once the server has taken them all.

        There is no answer to a produce; that to an empty fetch behind them tells.
        """
        request = _request(0, topic.encode(), struct.pack(">i", len(messages)) + messages)
        for _ in range(count):
            self._socket.sendall(request)
        self._socket.sendall(_request(1, _NOBODY, struct.pack(">qi", 0, 1)))
        self._receive()

    def fetch(self, topic: str, address: int, max_size: int) -> int:
        """Fetch, and return how many bytes of messages came."""
        self._socket.sendall(_request(1, topic.encode(), struct.pack(">qi", address, max_size)))
        return self._receive() - 2

    def end(self, topic: str) -> int:
        """The address behind the last message."""
        self._socket.sendall(_request(4, topic.encode(), struct.pack(">qi", -1, 1)))
        self._receive()
        (address,) = struct.unpack_from(">q", self._buffer, 10)
        return int(address)

    def _receive(self) -> int:
        """Receive one answer into the buffer, and return its length."""
        have, need = 0, _ANSWER.size
        while have < need:
            count = self._socket.recv_into(self._buffer[have:])
            if not count:
                raise DriverError("the server closed the connection")
            have += count
            if have >= _ANSWER.size:
                length, error = _ANSWER.unpack_from(self._buffer)
                need = length + 4
                if error:
                    raise DriverError(f"the server answered with the error {error}")
        return need - 4

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
