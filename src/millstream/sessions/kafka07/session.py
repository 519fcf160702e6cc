"""A Kafka 0.7 connection without its socket: one request frame in, its answer out, if it has one."""

import struct
from typing import Final

from millstream.sessions.kafka07.call import Call, Kafka07Shared
from millstream.sessions.kafka07.table import HANDLERS
from millstream.sessions.session import Answer, Peer
from millstream.wire.kafka07.errors import MalformedRequest
from millstream.wire.kafka07.requests import decode_request

__all__ = ["Kafka07Session"]

_LENGTH: Final = struct.Struct(">i")


class Kafka07Session:
    """Serves the requests of one connection.

    Args:
        shared: what all connections share.
        peer: this one.
    """

    prefix_bytes = _LENGTH.size

    def __init__(self, shared: Kafka07Shared, peer: Peer) -> None:
        self._call = Call(shared, peer)
        self._request_bytes_max = shared.broker.settings.request_bytes_max

    def measure(self, buffer: memoryview) -> int:
        """Bytes of the request at the start of a buffer, with its length; 0 if that is not there yet.

        Raises:
            MalformedRequest: no request is that short, or none that long is taken.
        """
        if len(buffer) < _LENGTH.size:
            return 0
        (length,) = _LENGTH.unpack_from(buffer)
        if not 0 < length <= self._request_bytes_max:
            raise MalformedRequest(f"a request of {length} bytes")
        return int(length) + _LENGTH.size

    def handle(self, frame: memoryview) -> Answer:
        """Serve one request.

        Args:
            frame: the request without its length; it may be overwritten once this has returned.

        Returns:
            Its answer. Answers are to be written in the order of the requests.

        Raises:
            WireError: it cannot be read, or be done, and has no answer to say so. The connection is to be closed.
        """
        request = decode_request(frame)
        return HANDLERS[type(request)].handle(self._call, request)

    def served(self) -> None:
        """Nothing is put off here."""

    def resume(self) -> None:
        """Nothing is kept back here for a slow reader: it is sent only what it asked for."""

    def finish(self) -> None:
        """Nothing here waits for more data."""

    def close(self) -> None:
        """Nothing here waits."""
