"""A plain socket that speaks Kafka through the project's own codecs, and can as well speak nonsense."""

import struct
from collections.abc import Sequence
from typing import Any, Final

from millstream.wire.kafka.api import Api
from tests.support.plain_socket import TIMEOUT_S, PlainSocket

__all__ = ["TIMEOUT_S", "Connection"]

_CLIENT_ID: Final = "raw"


class Connection(PlainSocket):
    """A connection to a server. Any wait of more than `TIMEOUT_S` is an error.

    Args:
        address: HOST:PORT.
    """

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._correlation_id = 0

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

    def write_slowly(self, pieces: Sequence[bytes]) -> None:
        """Send bytes in pieces, each in a packet of its own."""
        for piece in pieces:
            self._socket.sendall(piece)

    def receive_frame(self) -> bytes:
        """Receive the next answer, without its length."""
        (size,) = struct.unpack(">i", self.receive_exactly(4))
        return self.receive_exactly(size)
