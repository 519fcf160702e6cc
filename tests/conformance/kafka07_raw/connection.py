"""A plain socket that speaks Kafka 0.7 through the project's own codec, and can as well speak nonsense."""

import socket
import ssl
import struct
import time
from typing import Final

from millstream.wire.kafka07.requests import FetchRequest, OffsetsRequest, ProduceRequest, Request, encode_request
from millstream.wire.kafka07.responses import decode_fetch, decode_offsets

__all__ = ["OldConnection"]

TIMEOUT_S: Final = 60.0


class OldConnection:
    """A connection to a server. Any wait of more than `TIMEOUT_S` is an error.

    Args:
        address: HOST:PORT.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def wrap(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._socket = context.wrap_socket(self._socket, server_hostname="localhost")

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        """Receive the next answer, with its length."""
        prefix = self._receive_exactly(4)
        return prefix + self._receive_exactly(struct.unpack(">i", prefix)[0])

    def _receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(min(size - len(data), 1 << 20))
            assert piece, f"the server closed the connection; {size - len(data)} bytes of an answer are missing"
            data += piece
        return bytes(data)

    def ask(self, request: Request) -> memoryview:
        """Send a request; returns its answer without its length."""
        self.write(encode_request(request))
        return memoryview(self.receive_frame())[4:]

    def produce(self, topic: str, messages: bytes, partition: int = 0) -> None:
        """Produce a message set; nobody tells when it is stored."""
        self.write(encode_request(ProduceRequest(topic, partition, messages)))

    def fetch(self, topic: str, offset: int = 0, max_size: int = 1 << 20, partition: int = 0) -> tuple[int, bytes]:
        """Fetch; returns the error and the bytes."""
        fetched = decode_fetch(self.ask(FetchRequest(topic, partition, offset, max_size)))
        return fetched.error, b"".join(fetched.messages)

    def read_until(self, topic: str, size: int, offset: int = 0, partition: int = 0) -> bytes:
        """Poll until so many bytes are there."""
        deadline_s = time.monotonic() + TIMEOUT_S
        data = b""
        while len(data) < size:
            assert time.monotonic() < deadline_s, f"{len(data)} of {size} bytes appeared"
            error, piece = self.fetch(topic, offset + len(data), partition=partition)
            assert error == 0
            data += piece
        return data

    def offsets(self, topic: str, time_ms: int = -1, max_count: int = 100, partition: int = 0) -> list[int]:
        """Ask for addresses."""
        return decode_offsets(self.ask(OffsetsRequest(topic, partition, time_ms, max_count)))

    def closed_by_server(self) -> bool:
        """Wait until the server closes the connection; False if it sends something instead."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Close it."""
        self._socket.close()
