"""The server: a broker, its listeners, and their life from start to stop."""

import asyncio
import logging
import os
import resource
import sys
from typing import Final, TypeVar

from millstream.broker.broker import Broker
from millstream.model.pending import Pending
from millstream.server.config import ServerConfig
from millstream.server.errors import BadSetting
from millstream.server.listener import ConnectionLimit, Listener
from millstream.server.places import Places
from millstream.server.protocols import Protocols
from millstream.server.runtime import LoopRuntime
from millstream.server.tls import Tls
from millstream.server.zookeeper import ZooKeeper
from millstream.storage.directory import DataDirectory
from millstream.storage.files import OsFiles
from millstream.storage.metadata import MetadataStore

__all__ = ["Server"]

_log = logging.getLogger(__name__)
T = TypeVar("T")
_LOAD_AFTER_S: Final = 0.01
"""Seconds after the start at which protocols are loaded that nobody has used yet: the ready line goes first."""
_FILES_FREE_MIN: Final = 4
_DRAIN_S: Final = 5.0
"""Seconds at a stop for peers to take the answers that were written to them."""


class Server:
    """A server on the running event loop.

    Args:
        config: what it is started with.
    """

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._runtime: LoopRuntime | None = None
        self._broker: Broker | None = None
        self._protocols: Protocols | None = None
        self._listeners: dict[str, Listener] = {}
        self._zookeeper: ZooKeeper | None = None
        self._tls: Tls | None = None

    async def start(self) -> None:
        """Open the data directory and listen.

        Raises:
            MillstreamError: the data directory or an address cannot be used; nothing is left running.
        """
        files_max = _raise_descriptor_limit()
        settings = self._config.settings
        directory = DataDirectory(OsFiles(), self._config.data_dir)
        runtime = self._runtime = LoopRuntime()
        try:
            store = MetadataStore(runtime, f"sqlite:///{directory.metadata_path}", durable=settings.fsync)
            broker = self._broker = Broker(runtime, directory, store, settings)
            if self._config.tls is not None:
                self._tls = Tls(self._config.tls, required=settings.tls_required)
            places = Places(
                self._config.advertised,
                self._config.pinned,
                tls=self._tls is not None,
                plain=not settings.tls_required,
            )
            protocols = self._protocols = Protocols(
                broker,
                places,
                self._config,
                self.connection_counts,
                self._tls,
            )
            # A quarter is for files of partitions to come: what cannot be opened for them fails their writers.
            free = max(files_max - len(os.listdir("/proc/self/fd")), _FILES_FREE_MIN)
            most = min(settings.connections_max, free * 3 // 4)
            limit = ConnectionLimit(most, lambda: sum(self.connection_counts().values()))
            open_to_all = self._tls is None or not self._tls.checks_clients
            for name, address in self._config.listeners.items():
                listener = Listener(
                    name,
                    address,
                    protocols.reception,
                    places,
                    idle_ms=settings.connections_max_idle_ms,
                    open_to_all=open_to_all,
                    limit=limit,
                )
                await listener.start()
                self._listeners[name] = listener
            endpoint = places.endpoint("kafka07", "127.0.0.1") if settings.zookeeper_hosts else None
            if endpoint is not None:
                self._zookeeper = ZooKeeper(
                    settings.zookeeper_hosts, settings.kafka07_broker_id, endpoint, broker.topics, runtime
                )
        except BaseException:
            await self._abandon(directory)
            raise
        _log.info("serving data_dir=%s %s", self._config.data_dir, self.addresses_line())
        asyncio.get_running_loop().call_later(_LOAD_AFTER_S, protocols.load)

    async def _abandon(self, directory: DataDirectory) -> None:
        if self._broker is not None:
            await self.stop()
            return
        directory.release()
        if self._runtime is not None:
            self._runtime.close()

    def reload_tls(self) -> None:
        """Read the certificate anew, for the connections that come from now on; if it cannot be used, the old one
        stays, and the log says so."""
        if self._tls is None:
            return
        try:
            self._tls.reload()
        except BadSetting as error:
            _log.error("the certificate stays as it is: %s", error)
        else:
            _log.info("certificate read again")

    def connection_counts(self) -> dict[str, int]:
        """How many connections are open, by the listener's name."""
        return {name: one.connection_count for name, one in self._listeners.items()}

    def addresses(self) -> dict[str, str]:
        """HOST:PORT of each listener, by name."""
        return {name: str(listener.address) for name, listener in self._listeners.items()}

    def addresses_line(self) -> str:
        """The listeners as NAME=HOST:PORT, in one line."""
        return " ".join(f"{name}={address}" for name, address in self.addresses().items())

    async def stop(self) -> None:
        """Answer what is due, put everything on the disk, and close."""
        if self._zookeeper is not None:
            await self._zookeeper.close()
        for listener in self._listeners.values():
            listener.stop_accepting()
        if self._broker is not None:
            await _settled(self._broker.close())
            await asyncio.sleep(0)  # answers that this has settled are written now
        for listener in self._listeners.values():
            await listener.close_connections(_DRAIN_S)
        if self._protocols is not None:
            self._protocols.close()
        if self._runtime is not None:
            self._runtime.close()
        _log.info("stopped data_dir=%s", self._config.data_dir)


async def _settled(pending: Pending[T]) -> T:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    pending.when_done(lambda _: future.set_result(None) if not future.done() else None)
    await future
    return pending.result()


def _raise_descriptor_limit() -> int:
    """Every partition keeps a file open: use what the system allows. Gives how many files that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else sys.maxsize
