"""A listener: an address, and the connections that came in on it."""

import asyncio
import ipaddress
import logging
from collections.abc import Callable
from typing import Final, Protocol

from millstream.server.config import Address
from millstream.server.errors import ListenerFailed
from millstream.server.places import Places
from millstream.sessions.session import Endpoint

__all__ = ["Connection", "Listener"]

_log = logging.getLogger(__name__)
_BACKLOG: Final = 1024
_IDLE_CHECK_S: Final = 30.0
_CLOSE_CHECK_S: Final = 0.005


class Connection(Protocol):
    """What a listener wants of each of its connections, whatever protocol it speaks."""

    address: str
    """The peer, for logs."""
    last_request_s: float
    """When the last request came, in the loop's time."""

    @property
    def closing(self) -> bool:
        """Whether it ends once the peer has taken what was written to it."""

    @property
    def waiting(self) -> int:
        """Answers that the peer waits for."""

    def stop_serving(self) -> None:
        """Serve no further requests; answers still go out."""

    def close(self) -> None:
        """Write what has been written so far, and end the connection."""

    def abort(self) -> None:
        """End the connection at once."""


class Listener:
    """Listens on one address.

    Args:
        name: its name, such as "kafka".
        address: where; port 0 takes a free one.
        connection: makes the protocol object of a new connection, which tells `opened` and `closed`.
        places: where clients are told to connect.
        idle_ms: ms without a whole request, and with no answer due, after which a connection is closed.
    """

    def __init__(
        self,
        name: str,
        address: Address,
        connection: Callable[["Listener"], asyncio.BaseProtocol],
        places: Places,
        *,
        idle_ms: int,
    ) -> None:
        self.name = name
        self.address = address
        self._connection = connection
        self._places = places
        self._idle_s = idle_ms / 1000
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen; `address` then has the port that was taken. Raises ListenerFailed."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: self._connection(self), self.address.host, self.address.port, backlog=_BACKLOG
            )
        except OSError as error:
            raise ListenerFailed(f"cannot listen on {self.address}: {error.strerror or error}") from None
        self.address = Address(self.address.host, self._server.sockets[0].getsockname()[1])
        self._places.listening(self.name, self.address)
        if not _is_loopback(self.address.host):
            _log.warning(
                "listening address=%s: everyone who reaches it can read and write; there is no authentication",
                self.address,
            )
        self._look_for_idle()

    def endpoint(self, listener: str, local_host: str) -> Endpoint | None:
        """Where a peer is told to reach a listener, by name; "" for this one. See `Places.endpoint`."""
        return self._places.endpoint(listener or self.name, local_host)

    def opened(self, connection: Connection) -> None:
        """Keep track of a connection."""
        self._connections.add(connection)
        _log.info("connection opened peer=%s listener=%s", connection.address, self.name)

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        _log.info("connection closed peer=%s listener=%s", connection.address, self.name)

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
            _log.info("connection idle peer=%s", connection.address)
            connection.close()

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def stop_accepting(self) -> None:
        """Take no new connections and no new requests."""
        if self._server is not None:
            self._server.close()
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._connections):
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
