"""Where clients are told to connect: those that look brokers up want addresses that work for them."""

from collections.abc import Mapping
from typing import Final

from millstream.server.config import Address
from millstream.sessions.session import Endpoint

__all__ = ["Places"]

_ANY_ADDRESS: Final = {"", "0.0.0.0", "::"}  # noqa: S104 - compared with, never bound by default


class Places:
    """The addresses of a server's listeners, as clients see them.

    Args:
        advertised: what clients are told instead of where it listens, by the listener's name.
    """

    def __init__(self, advertised: Mapping[str, Address]) -> None:
        self._advertised = advertised
        self._listening: dict[str, Address] = {}

    def listening(self, listener: str, address: Address) -> None:
        """Take note of where a listener listens."""
        self._listening[listener] = address

    def endpoint(self, listener: str, local_host: str) -> Endpoint | None:
        """Where a client is told to reach a listener.

        Args:
            listener: its name. If there is no such listener, `any` stands in for it: it takes every protocol.
            local_host: the address by which that client came: what it is told of a listener on all addresses.

        Returns:
            None if nothing here takes that protocol.
        """
        for name in (listener, "any"):
            told = self._advertised.get(name)
            if told is not None:
                return Endpoint(told.host, told.port)
            address = self._listening.get(name)
            if address is not None:
                host = local_host if address.host in _ANY_ADDRESS else address.host
                return Endpoint(host, address.port)
        return None
