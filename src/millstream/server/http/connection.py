"""An HTTP connection: uvicorn's, loaded when the first one comes, in the life of a listener of ours."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, cast

from millstream.model.pending import Pending

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HttpConnection"]

_log = logging.getLogger(__name__)
_HEADER_BYTES_MAX: Final = 64 * 1024
"""Bytes of a request before its body, as uvicorn has it by default: what is kept while the app is being loaded."""


class Owner(Protocol):
    """Who keeps track of connections."""

    def opened(self, connection: "HttpConnection") -> None:
        """A connection has begun."""

    def closed(self, connection: "HttpConnection") -> None:
        """A connection has ended."""


class HttpConnection(asyncio.Protocol):
    """A connection.

    Args:
        load: gives the maker of uvicorn's protocol objects, once the app is loaded.
        owner: keeps track of it.
    """

    protocol = "http"

    def __init__(self, load: Callable[[], Pending[Callable[[], "H11Protocol"]]], owner: Owner) -> None:
        self._load = load
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._inner: H11Protocol | None = None
        self._early = b""
        self._stopping = False
        self.closing = False
        self.address = "?"
        self.last_request_s = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = f"{peer[0]}:{peer[1]}" if peer else "?"
        self._owner.opened(self)
        self._load().when_done(self._begin)

    def _begin(self, loaded: Pending[Callable[[], "H11Protocol"]]) -> None:
        if self.closing:
            return
        try:
            self._inner = loaded.result()()
        except Exception:  # noqa: BLE001 - ours: loud, and at the cost of this connection alone
            _log.exception("internal error peer=%s: the connection is closed", self.address)
            self.abort()
            return
        self._inner.connection_made(self._transport)
        self._transport.resume_reading()
        if self._early:
            self._inner.data_received(self._early)
            self._early = b""

    def data_received(self, data: bytes) -> None:
        self.last_request_s = self._loop.time()
        if self._stopping:
            return
        if self._inner is not None:
            self._inner.data_received(data)
            return
        self._early += data
        if len(self._early) > _HEADER_BYTES_MAX:
            self._transport.pause_reading()

    def take(self, head: bytes) -> None:
        """Take the first bytes, which something else has read to see what the peer speaks."""
        self.data_received(head)

    def eof_received(self) -> None:
        if self._inner is not None:
            self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        if self._inner is not None:
            self._inner.connection_lost(exc)
        self._owner.closed(self)

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    @property
    def waiting(self) -> int:
        """Requests that are being served."""
        cycle = None if self._inner is None else self._inner.cycle
        return int(cycle is not None and not cycle.response_complete)

    def stop_serving(self) -> None:
        """Serve no further requests; the answer that is due still goes out."""
        self._stopping = True

    def close(self) -> None:
        """End the connection once the answer that is due has gone out."""
        self.closing = True
        if self._inner is not None:
            self._inner.shutdown()
        else:
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self.closing = True
        self._transport.abort()
