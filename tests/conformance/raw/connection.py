"""A plain socket that speaks Kafka through the project's own codecs, and can as well speak nonsense."""

import socket
import ssl
import struct
from collections.abc import Sequence
from typing import Any, Final

from millstream.wire.kafka.api import Api

__all__ = ["TIMEOUT_S", "Connection"]

TIMEOUT_S: Final = 60.0
_CLIENT_ID: Final = "raw"


class Connection:
    """A connection to a server. Any wait of more than `TIMEOUT_S` is an error.

    Args:
        address: HOST:PORT.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def wrap(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._socket = context.wrap_socket(self._socket, server_hostname="localhost")

    def call(self, api: Api, version: int, request: object) -> Any:
        """Send a request and return its answer, decoded."""
        return self.receive(api, version, self.send(api, version, request))

    def send(self, api: Api, version: int, request: object) -> int:
        """Send a request; returns its correlation id."""
        self._correlation_id += 1
        self.write(b"".join(api.encode_request(version, self._correlation_id, _CLIENT_ID, request)))
        return self._correlation_id

    def receive(self, api: Api, version: int, correlation_id: int) -> Any:
        """Receive the next answer, which must be the one to this request."""
        answered, response = api.decode_response(version, memoryview(self.receive_frame()))
        assert answered == correlation_id
        return response

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(data)

    def write_slowly(self, pieces: Sequence[bytes]) -> None:
        """Send bytes in pieces, each in a packet of its own."""
        for piece in pieces:
            self._socket.sendall(piece)

    def receive_frame(self) -> bytes:
        """Receive the next answer, without its length."""
        (size,) = struct.unpack(">i", self.receive_exactly(4))
        return self.receive_exactly(size)

    def receive_exactly(self, size: int) -> bytes:
        """Receive so many bytes."""
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(min(size - len(data), 1 << 20))
            assert piece, f"the server closed the connection; {size - len(data)} bytes of an answer are missing"
            data += piece
        return bytes(data)

    def closed_by_server(self) -> bool:
        """Wait until the server closes the connection; False if it sends something instead."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Close it."""
        self._socket.close()
