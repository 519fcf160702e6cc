"""A connection before it is known what its client speaks, and what becomes of it then.

It holds no session and no buffer, so that a client which says nothing costs a socket and little else.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, cast

from millstream.server.recognition import TLS, UNKNOWN, looks_like_tls, recognise
from millstream.server.tls import HANDSHAKE_REFUSED, Tls, take_off

__all__ = ["OpeningConnection", "Reception"]

_log = logging.getLogger(__name__)
_SHOWN_BYTES: Final = 16
"""Bytes of what cannot be recognised that a line in the log shows."""
_HEAD_BYTES_MAX: Final = 64 * 1024
"""Bytes that are read before the protocol is known; what is told by more is told by none."""


class Owner(Protocol):
    """Who keeps track of connections."""

    def opened(self, connection: "OpeningConnection") -> None:
        """A connection has begun."""

    def closed(self, connection: "OpeningConnection") -> None:
        """A connection has ended, or is another's now."""


class Recognised(Protocol):
    """The connection that goes on with what was recognised."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""

    def take(self, head: bytes) -> None:
        """Take the first bytes."""


@dataclass(frozen=True, slots=True)
class Reception:
    """How a listener receives its connections.

    Args:
        home: the protocol of the listener; UNKNOWN for one of all protocols.
        pinned: whether it takes that protocol only.
        connection: makes the protocol object of a protocol.
        owner: keeps track of connections.
        limit_ms: ms for a client to say enough. They count from its first byte where the listener has a protocol,
            which what it then says is taken for; and from the start on a listener of all protocols, which refuses it.
        size_max: bytes of the largest request.
        tls: for connections with TLS; None to refuse them.
    """

    home: str
    pinned: bool
    connection: Callable[[str], Recognised]
    owner: Owner
    limit_ms: int
    size_max: int
    tls: Tls | None = None

    def recognise(self, head: bytes) -> str | None:
        """What the first bytes are, as `recognise` tells it."""
        if not self.pinned:
            return recognise(head, self.home, self.size_max)
        is_tls = self.tls is not None and looks_like_tls(head)
        return TLS if is_tls else None if is_tls is None else self.home


class OpeningConnection(asyncio.Protocol):
    """A connection that has not said yet what it speaks; it hands itself on as soon as it has.

    Args:
        reception: how its listener receives it.
        secure: whether TLS has been taken off already.
    """

    __slots__ = ("_handshake", "_head", "_reception", "_secure", "_timer", "_transport", "closing", "last_request_s")
    waiting = 0
    protocol = UNKNOWN

    def __init__(self, reception: Reception, *, secure: bool = False) -> None:
        self._reception = reception
        self._secure = secure
        self._head = b""
        self._timer: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self.closing = False
        self.last_request_s = asyncio.get_running_loop().time()

    @property
    def address(self) -> str:
        """The peer, for logs."""
        peer = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f"{peer[0]}:{peer[1]}" if peer else "?"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._reception.owner.opened(self)
        if not self._reception.home:
            self._start_timer()
        if self._head:  # the bytes inside TLS may be there before it is known that the handshake has ended
            self._look()

    def data_received(self, data: bytes) -> None:
        if self.closing:
            return
        self._head += data
        if self._transport is not None:
            self._look()

    def _look(self) -> None:
        name = self._reception.recognise(self._head)
        if name is None and len(self._head) < _HEAD_BYTES_MAX:
            self._start_timer()
        else:
            self._receive(name or self._reception.home)

    def _start_timer(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._reception.limit_ms / 1000, self._out_of_time)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _out_of_time(self) -> None:
        if self.closing:
            return
        if self._reception.home:
            self._receive(self._reception.home)
        else:
            self._refuse("it said too little to be recognised")

    def _receive(self, name: str) -> None:
        """Go on with what was recognised, or refuse it."""
        self._stop_timer()
        reception, transport = self._reception, self._transport
        assert transport is not None
        if name == UNKNOWN:
            self._refuse(f"it begins like no protocol that is spoken here: {self._head[:_SHOWN_BYTES].hex(' ')}")
        elif name == TLS:
            self._begin_tls(transport)
        elif reception.tls is not None and reception.tls.required and not self._secure:
            self._refuse(f"it speaks {name} without TLS, which tls.required asks for")
        else:
            reception.owner.closed(self)
            connection = reception.connection(name)
            transport.set_protocol(cast(asyncio.BaseProtocol, connection))
            connection.connection_made(transport)
            connection.take(self._head)

    # TLS

    def _begin_tls(self, transport: asyncio.Transport) -> None:
        tls = self._reception.tls
        if self._secure:
            self._refuse("there is TLS inside TLS")
        elif tls is None:
            transport.write(HANDSHAKE_REFUSED)
            _log.warning("connection refused peer=%s reason=it speaks TLS: see tls.certificate.file", self.address)
            self.close()
        else:
            transport.pause_reading()  # until the handshake goes on
            self._handshake = asyncio.get_running_loop().create_task(self._shake_hands(transport, tls))

    async def _shake_hands(self, transport: asyncio.Transport, tls: Tls) -> None:
        inner = OpeningConnection(self._reception, secure=True)
        address = self.address
        try:
            inside = await take_off(tls.context, transport, inner, bytearray(self._head))
        except OSError as error:
            if not self.closing:
                _log.warning("connection refused peer=%s reason=no TLS handshake: %s", address, error)
                self.abort()
            return
        finally:
            self._reception.owner.closed(self)
        if self.closing:
            inside.abort()
        elif not inner.closing:
            inner.connection_made(inside)

    # The end

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        self._stop_timer()
        self._reception.owner.closed(self)

    def _refuse(self, reason: str) -> None:
        _log.warning("connection refused peer=%s reason=%s", self.address, reason)
        self.abort()

    def stop_serving(self) -> None:
        """Recognise nothing any more: what comes would be a request."""
        self.closing = True
        self._stop_timer()

    def close(self) -> None:
        """End the connection once its peer has taken what was written to it."""
        self.closing = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self.closing = True
        if self._transport is not None:
            self._transport.abort()
