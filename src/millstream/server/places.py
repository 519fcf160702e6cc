"""Where clients are told to connect: those that look brokers up want addresses that work for them."""

from collections.abc import Collection, Mapping
from typing import Final

from millstream.server.config import LISTENER_NAMES, Address
from millstream.sessions.session import Endpoint

__all__ = ["Places"]

_ANY_ADDRESS: Final = {"", "0.0.0.0", "::"}  # noqa: S104 - compared with, never bound by default


class Places:
    """The addresses of a server's listeners, as clients see them.

    Args:
        advertised: what clients are told instead of where it listens, by the listener's name.
        pinned: the listeners that take one protocol only, by name.
        tls: whether clients may come with TLS.
        plain: whether they may come without.
    """

    def __init__(
        self,
        advertised: Mapping[str, Address],
        pinned: Collection[str] = (),
        *,
        tls: bool = False,
        plain: bool = True,
    ) -> None:
        self._advertised = advertised
        self._pinned = pinned
        self._tls = tls
        self._plain = plain
        self._listening: dict[str, Address] = {}

    def listening(self, listener: str, address: Address) -> None:
        """Take note of where a listener listens."""
        self._listening[listener] = address

    def endpoint(self, listener: str, local_host: str) -> Endpoint | None:
        """Where a client is told to reach a listener.

        Args:
            listener: its name. If there is no such listener, `any` stands in for it, and for the name of a protocol
                any other that is not pinned: they take every protocol.
            local_host: the address by which that client came: what it is told of a listener on all addresses.

        Returns:
            None if nothing here takes that protocol, or nothing has that name.
        """
        for name in (listener, "any"):
            told = self._told(name, local_host)
            if told is not None:
                return told
        if listener in LISTENER_NAMES:
            for name in self._listening:
                if name not in self._pinned:
                    return self._told(name, local_host)
        return None

    def endpoint_of_peer(self, listener: str, local_host: str, protocol: str) -> Endpoint | None:
        """Where a client is told to come back to: to where it came in on.

        Args:
            listener: the one it came in on.
            local_host: as for `endpoint`.
            protocol: what it speaks. If that has an address to be told and no listener of its own, it is told that.
        """
        if listener not in self._advertised and protocol not in self._listening and protocol in self._advertised:
            listener = protocol
        return self._told(listener, local_host)

    def _told(self, name: str, local_host: str) -> Endpoint | None:
        told = self._advertised.get(name)
        if told is not None:
            return Endpoint(told.host, told.port, tls=self._tls, plain=self._plain)
        address = self._listening.get(name)
        if address is None:
            return None
        host = local_host if address.host in _ANY_ADDRESS else address.host
        return Endpoint(host, address.port, tls=self._tls, plain=self._plain)
