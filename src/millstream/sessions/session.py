"""What every protocol's session looks like to the server, and the server's connection to it."""

from dataclasses import dataclass
from typing import Protocol

from millstream.model.pending import Pending

__all__ = ["Answer", "Buffer", "Endpoint", "Peer", "Service", "Session"]

Buffer = bytes | bytearray | memoryview
Answer = list[Buffer] | Pending[list[Buffer]] | None
"""Buffers to write one after the other, now or later, in the order of the requests; None for no answer at all."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where clients are told to reach this server.

    Args:
        host, port: the address.
        tls: whether they may come with TLS.
        plain: whether they may come without.
    """

    host: str
    port: int
    tls: bool = False
    plain: bool = True

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Peer(Protocol):
    """The connection, as its session sees it."""

    @property
    def host(self) -> str:
        """The peer's address, without its port."""

    @property
    def address(self) -> str:
        """The peer's address and port, for logs."""

    @property
    def certified_name(self) -> str | None:
        """The distinguished name (RFC 2253) in the certificate that the peer has shown; None if it has shown none."""

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where this peer is told to reach a listener of the server, by name; None if there is no such listener.

        The name "" stands for the listener that the connection came in on.
        """

    def send(self, buffers: list[Buffer]) -> None:
        """Write at once, whatever answers are still due. Nothing happens once the connection has ended."""

    def room_bytes(self) -> int:
        """Bytes that may still be queued for the peer to read; `Session.resume` tells when there are more again."""

    @property
    def reading(self) -> bool:
        """Whether what it sends is read: not while it is held, or too slow for its answers."""

    def hold(self) -> None:
        """Serve no more requests of this peer until `release`; calls count, and each wants its release."""

    def release(self) -> None:
        """Take back one `hold`."""

    def end(self, reason: str) -> None:
        """End the connection, once the peer has taken what was written to it, with a line in the log."""

    def end_answered(self, reason: str) -> None:
        """Serve nothing any more, and end the connection in the same way once all its answers were given."""


class Session(Protocol):
    """Serves the frames of one connection. All of it runs on the loop's thread."""

    prefix_bytes: int
    """Bytes at the start of each frame that `handle` is not given: the length, for most protocols."""

    def measure(self, buffer: memoryview) -> int:
        """Tell where the frame at the start of a buffer ends.

        Args:
            buffer: what has arrived and was not served yet; at least one byte.

        Returns:
            Bytes of the whole frame with its prefix, whether they have arrived or not; 0 while that cannot be told.

        Raises:
            WireError: no such frame is taken. The connection is to be closed.
        """

    def handle(self, frame: memoryview) -> Answer:
        """Serve one frame.

        Args:
            frame: the frame without its prefix, writable; it may be overwritten once this has returned.

        Raises:
            WireError: the bytes are nothing that this server can answer. The connection is to be closed.
        """

    def served(self) -> None:
        """All whole frames that one read of the socket brought have been handled.

        What a session puts off until here, so as to do it once for all of them, is done before anything else happens.
        """

    def resume(self) -> None:
        """The peer has read what kept it from being sent more."""

    def finish(self) -> None:
        """Answer what waits for more data with what there is: the server stops."""

    def close(self) -> None:
        """Call off everything that waits: the connection is gone."""


class Service(Protocol):
    """What all sessions of one protocol share."""

    def session(self, peer: Peer) -> Session:
        """Make the session of a new connection."""

    def close(self) -> None:
        """Let no timer run any more: the server stops."""
