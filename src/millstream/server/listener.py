"""A listener: an address, and the connections that came in on it."""

import asyncio
import ipaddress
import logging
from collections.abc import Callable
from typing import Final, Protocol, cast

from millstream.server.config import Address
from millstream.server.errors import ListenerFailed
from millstream.server.places import Places
from millstream.sessions.session import Endpoint

__all__ = ["Connection", "ConnectionLimit", "Listener"]

_log = logging.getLogger(__name__)
_BACKLOG: Final = 1024
_IDLE_CHECK_S: Final = 30.0
_CLOSE_CHECK_S: Final = 0.005
_REFUSALS_TOLD_S: Final = 10.0
"""Seconds between two lines in the log that say there are too many connections."""


class Connection(Protocol):
    """What a listener wants of each of its connections, whatever protocol it speaks."""

    @property
    def address(self) -> str:
        """The peer, for logs."""

    @property
    def protocol(self) -> str:
        """What it speaks; empty while that is not known."""

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


class ConnectionLimit:
    """How many connections all listeners may have at a time.

    Args:
        most: that many; where it is reached, the next is ended at once.
        count: tells how many there are.
    """

    def __init__(self, most: int, count: Callable[[], int]) -> None:
        self._most = most
        self._count = count
        self._told_s = -_REFUSALS_TOLD_S

    def reached(self) -> bool:
        """Whether there is no room for another; the log says so, once in a while."""
        if self._count() < self._most:
            return False
        now_s = asyncio.get_running_loop().time()
        if now_s - self._told_s >= _REFUSALS_TOLD_S:
            self._told_s = now_s
            _log.warning(
                "connections refused: there are %d, as many as there may be: see max.connections", self._most
            )
        return True


class _Refused(asyncio.Protocol):
    """A connection for which there is no room."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()


class Listener:
    """Listens on one address.

    Args:
        name: its name, such as "kafka".
        address: where; port 0 takes a free one.
        reception: gives what makes the protocol object of a new connection, which tells `opened` and `closed`.
        places: where clients are told to connect.
        idle_ms: ms without a whole request, and with no answer due, after which a connection is closed.
        open_to_all: whether everyone who reaches it is let in.
        limit: how many connections there may be; None for no bound.
    """

    def __init__(
        self,
        name: str,
        address: Address,
        reception: Callable[["Listener"], Callable[[], asyncio.BaseProtocol]],
        places: Places,
        *,
        idle_ms: int,
        open_to_all: bool = True,
        limit: ConnectionLimit | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self._reception = reception
        self._places = places
        self._idle_s = idle_ms / 1000
        self._open_to_all = open_to_all
        self._limit = limit
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen; `address` then has the port that was taken. Raises ListenerFailed."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._protocols(), self.address.host, self.address.port, backlog=_BACKLOG
            )
        except OSError as error:
            raise ListenerFailed(f"cannot listen on {self.address}: {error.strerror or error}") from None
        self.address = Address(self.address.host, self._server.sockets[0].getsockname()[1])
        self._places.listening(self.name, self.address)
        if self._open_to_all and not _is_loopback(self.address.host):
            _log.warning(
                "listening address=%s: everyone who reaches it can read and write; there is no authentication",
                self.address,
            )
        self._look_for_idle()

    def _protocols(self) -> Callable[[], asyncio.BaseProtocol]:
        make, limit = self._reception(self), self._limit
        if limit is None:
            return make
        return lambda: _Refused() if limit.reached() else make()

    def endpoint(self, listener: str, local_host: str, protocol: str) -> Endpoint | None:
        """Where a peer is told to reach a listener, by name; "" for this one. See `Places`."""
        if listener:
            return self._places.endpoint(listener, local_host)
        return self._places.endpoint_of_peer(self.name, local_host, protocol)

    def opened(self, connection: Connection) -> None:
        """Keep track of a connection."""
        self._connections.add(connection)
        if connection.protocol:
            _log.info(
                "connection opened peer=%s listener=%s protocol=%s",
                connection.address,
                self.name,
                connection.protocol,
            )

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        if connection.protocol:
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
