"""The protocols that the server speaks, each loaded when its first connection comes, or once the server is ready.

Nothing but the broker is needed to be ready, and importing all sessions would take as long as everything else that
happens before.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from millstream.broker.broker import Broker
from millstream.model.pending import Pending
from millstream.server.config import ServerConfig
from millstream.server.connection import FramedConnection
from millstream.server.http.connection import HttpConnection
from millstream.server.listener import Listener
from millstream.server.places import Places
from millstream.server.recognition import RecognisingConnection
from millstream.sessions.session import Service

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from millstream.sessions.iggy.call import IggyShared

__all__ = ["PROTOCOLS", "Protocols"]

HTTP_LANE: Final = "http"


def _kafka(broker: Broker, _: ServerConfig) -> Service:
    from millstream.sessions.kafka.service import KafkaService

    return KafkaService(broker)


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
    """

    def __init__(
        self,
        broker: Broker,
        places: Places,
        config: ServerConfig,
        connections: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._broker = broker
        self._config = config
        self._places = places
        self._connections = connections
        self._services: dict[str, Service] = {}
        self._http: Pending[Callable[[], H11Protocol]] | None = None

    def service(self, name: str) -> Service:
        """What the sessions of a protocol share."""
        service = self._services.get(name)
        if service is None:
            service = self._services[name] = PROTOCOLS[name](self._broker, self._config)
        return service

    def connection(self, listener: Listener) -> asyncio.BaseProtocol:
        """Make the protocol object of a connection that came in on a listener."""
        if listener.name == "any":
            return RecognisingConnection(lambda name: self._connection(name, listener), listener)
        return self._connection(listener.name, listener)

    def _connection(self, name: str, listener: Listener) -> FramedConnection | HttpConnection:
        if name == "http":
            return HttpConnection(self._load_http, listener)
        return FramedConnection(self.service(name), listener)

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
        loop = asyncio.get_running_loop()
        left = [name for name in PROTOCOLS if name not in self._services]
        if left:
            self.service(left[0])
            loop.call_soon(self.load)

    def close(self) -> None:
        """Let nothing of any protocol run any more."""
        for service in self._services.values():
            service.close()
