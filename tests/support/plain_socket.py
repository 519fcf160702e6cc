"""A socket of a client that knows nothing but bytes."""

import socket
import ssl
from typing import Final

__all__ = ["TIMEOUT_S", "PlainSocket"]

TIMEOUT_S: Final = 60.0
_PIECE_BYTES: Final = 1 << 20


class PlainSocket:
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

    def write(self, *data: bytes) -> None:
        """Send bytes, in one piece."""
        self._socket.sendall(b"".join(data))

    def receive_exactly(self, size: int) -> bytes:
        """Receive so many bytes."""
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(min(size - len(data), _PIECE_BYTES))
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
