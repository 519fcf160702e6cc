"""A listener: an address, the connections that came in on it, and what their sessions share."""

import asyncio
import ipaddress
import logging
from typing import Final

from millstream.server.config import Address
from millstream.server.connection import FramedConnection, Session
from millstream.server.errors import ListenerFailed
from millstream.sessions.kafka.call import Client, Endpoint, KafkaService
from millstream.sessions.kafka.session import KafkaSession

__all__ = ["KafkaListener"]

_log = logging.getLogger(__name__)
_BACKLOG: Final = 1024
_ANY_ADDRESS: Final = {"", "0.0.0.0", "::"}  # noqa: S104 - compared with, never bound by default
_IDLE_CHECK_S: Final = 30.0
_CLOSE_CHECK_S: Final = 0.005
_REQUEST_BYTES_MIN: Final = 10
"""Bytes of a request header without a client id: API key, version, correlation id, and the length of the id."""


class KafkaListener:
    """Listens for Kafka clients.

    Args:
        address: where.
        service: what all Kafka connections share.
        request_bytes_max: bytes of the largest request.
        advertised: where clients are told to connect, if that is not where it listens.
        idle_ms: ms without a whole request, and with no answer due, after which a connection is closed.
    """

    def __init__(
        self,
        address: Address,
        service: KafkaService,
        *,
        request_bytes_max: int,
        idle_ms: int,
        advertised: Address | None = None,
    ) -> None:
        self.address = address
        self.request_bytes_max = request_bytes_max
        self.request_bytes_min = _REQUEST_BYTES_MIN
        self._service = service
        self._advertised = advertised
        self._idle_s = idle_ms / 1000
        self._connections: set[FramedConnection] = set()
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen; `address` then has the port that was taken. Raises ListenerFailed."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: FramedConnection(self), self.address.host, self.address.port, backlog=_BACKLOG
            )
        except OSError as error:
            raise ListenerFailed(f"cannot listen on {self.address}: {error.strerror or error}") from None
        self.address = Address(self.address.host, self._server.sockets[0].getsockname()[1])
        if not _is_loopback(self.address.host):
            _log.warning(
                "listening address=%s: everyone who reaches it can read and write; there is no authentication",
                self.address,
            )
        self._look_for_idle()

    def session(self, connection: FramedConnection) -> Session:
        """Make the session of a new connection."""
        told = self._advertised
        if told is None:
            # Who listens everywhere tells each client the address by which that client came.
            host = connection.local[0] if self.address.host in _ANY_ADDRESS else self.address.host
            told = Address(host, self.address.port)
        client = Client(connection.peer_host, Endpoint(told.host, told.port), connection.room_bytes)
        return KafkaSession(self._service, client)

    def opened(self, connection: FramedConnection) -> None:
        """Keep track of a connection."""
        self._connections.add(connection)
        _log.info("connection opened peer=%s listener=kafka", connection.peer)

    def closed(self, connection: FramedConnection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        _log.info("connection closed peer=%s listener=kafka", connection.peer)

    def _look_for_idle(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(min(_IDLE_CHECK_S, self._idle_s), self._look_for_idle)
        before_s = loop.time() - self._idle_s
        for connection in list(self._connections):
            if connection.last_request_s >= before_s or connection.waiting:
                continue
            if connection.closing:
                connection.abort()  # since the last look the peer has not taken what was written to it
                continue
            _log.info("connection idle peer=%s", connection.peer)
            connection.close()

    def stop_accepting(self) -> None:
        """Take no new connections and no new requests."""
        if self._server is not None:
            self._server.close()
        if self._timer is not None:
            self._timer.cancel()
        for connection in self._connections:
            connection.stop_serving()

    async def close_connections(self, patience_s: float) -> None:
        """End all connections once their peers have taken what was written to them.

        Args:
            patience_s: seconds after which those that have not are cut off.
        """
        loop = asyncio.get_running_loop()
        for connection in list(self._connections):
            connection.close()
        deadline_s = loop.time() + patience_s
        while self._connections and loop.time() < deadline_s:
            await asyncio.sleep(_CLOSE_CHECK_S)
        for connection in list(self._connections):
            connection.abort()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
