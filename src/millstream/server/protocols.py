"""The protocols that the server speaks, each loaded when its first connection comes, or once the server is ready.

Nothing but the broker is needed to be ready, and importing all sessions would take as long as everything else that
happens before.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from millstream.broker.broker import Broker
from millstream.model.pending import Pending
from millstream.server.config import ServerConfig
from millstream.server.connection import FramedConnection
from millstream.server.http.connection import HttpConnection
from millstream.server.listener import Listener
from millstream.server.opening import OpeningConnection, Reception
from millstream.server.places import Places
from millstream.server.recognition import UNKNOWN
from millstream.server.tls import Tls
from millstream.sessions.session import Service

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from millstream.sessions.iggy.call import IggyShared

__all__ = ["PROTOCOLS", "Protocols"]

_log = logging.getLogger(__name__)
HTTP_LANE: Final = "http"


def _kafka(broker: Broker, config: ServerConfig) -> Service:
    from millstream.sessions.kafka.service import KafkaService

    return KafkaService(broker, config.passwords)


def _kafka07(broker: Broker, _: ServerConfig) -> Service:
    from millstream.sessions.kafka07.service import Kafka07Service

    return Kafka07Service(broker)


def _pulsar(broker: Broker, config: ServerConfig) -> Service:
    from millstream.sessions.pulsar.service import PulsarService

    return PulsarService(broker, config.token_secret)


def _iggy(broker: Broker, _: ServerConfig) -> Service:
    from millstream.server.host import LinuxHost
    from millstream.sessions.iggy.service import IggyService

    host = LinuxHost(broker.directory.path)
    return IggyService(broker, host, deduplication=broker.settings.iggy_deduplication)


PROTOCOLS: Final[Mapping[str, Callable[[Broker, ServerConfig], Service]]] = {
    "kafka": _kafka,
    "kafka07": _kafka07,
    "pulsar": _pulsar,
    "iggy": _iggy,
}
"""How to load what the sessions of a protocol share, by the name of its listener."""


class Protocols:
    """The protocols over one broker.

    Args:
        broker: the broker that they all speak to.
        places: where clients of each are told to connect.
        config: what the server was started with.
        connections: tells how many are open, by the listener's name.
        tls: for connections with TLS; None to refuse them.
    """

    def __init__(
        self,
        broker: Broker,
        places: Places,
        config: ServerConfig,
        connections: Callable[[], Mapping[str, int]] = dict,
        tls: Tls | None = None,
    ) -> None:
        self._tls = tls
        self._broker = broker
        self._config = config
        self._places = places
        self._connections = connections
        self._services: dict[str, Service] = {}
        self._failed: set[str] = set()
        self._http: Pending[Callable[[], H11Protocol]] | None = None

    def service(self, name: str) -> Service:
        """What the sessions of a protocol share."""
        service = self._services.get(name)
        if service is None:
            service = self._services[name] = PROTOCOLS[name](self._broker, self._config)
        return service

    def reception(self, listener: Listener) -> Callable[[], asyncio.BaseProtocol]:
        """What makes the protocol objects of the connections that come in on a listener."""
        pinned = listener.name in self._config.pinned
        if pinned and self._tls is None:
            return lambda: self._connection(listener.name, listener)
        settings = self._config.settings
        reception = Reception(
            home=UNKNOWN if listener.name == "any" else listener.name,
            pinned=pinned,
            connection=lambda name: self._connection(name, listener),
            owner=listener,
            limit_ms=settings.recognition_limit_ms,
            size_max=settings.request_bytes_max,
            tls=self._tls,
        )
        return lambda: OpeningConnection(reception)

    def _connection(self, name: str, listener: Listener) -> FramedConnection | HttpConnection:
        if name == "http":
            return HttpConnection(self._load_http, listener)
        return FramedConnection(self.service(name), listener, name)

    def _load_http(self) -> "Pending[Callable[[], H11Protocol]]":
        """Load the HTTP app, on a thread: it takes a third of a second, and most servers never need it."""
        if self._http is None:

            def load() -> "Callable[[], H11Protocol]":
                from millstream.server.http.app import make_connections
                from millstream.server.http.compaction import BrokerCompaction
                from millstream.server.http.site import Site
                from millstream.sessions.pulsar.authentication import Tokens

                secret = self._config.token_secret
                site = Site(
                    self._broker,
                    self._places,
                    self._connections,
                    BrokerCompaction(self._broker),
                    iggy=self._iggy,
                    tokens=None if secret is None else Tokens(secret, self._broker.runtime),
                )
                return make_connections(site)

            self._http = self._broker.runtime.run_blocking(HTTP_LANE, load)
        return self._http

    def _iggy(self) -> "IggyShared":
        """What the Iggy protocol's connections share with its HTTP API."""
        from millstream.sessions.iggy.service import IggyService

        service = self.service("iggy")
        assert isinstance(service, IggyService)
        return service.shared

    def load(self) -> None:
        """Load every protocol that has not been yet, one after the other, in the loop's idle moments."""
        left = [name for name in PROTOCOLS if name not in self._services and name not in self._failed]
        if not left:
            return
        try:
            self.service(left[0])
        except Exception:  # noqa: BLE001 - ours: loud, and at the cost of that protocol's connections alone
            self._failed.add(left[0])
            _log.exception("internal error: the protocol %s cannot be loaded", left[0])
        asyncio.get_running_loop().call_soon(self.load)

    def close(self) -> None:
        """Let nothing of any protocol run any more."""
        for service in self._services.values():
            service.close()
