"""A server inside a Python program."""

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType

import uvloop

from millstream.server.config import LISTENER_NAMES, ServerConfig
from millstream.server.server import Server

__all__ = ["Broker", "running"]

_EVERY_LISTENER_ON_A_FREE_PORT = tuple(f"{name}=127.0.0.1:0" for name, port in LISTENER_NAMES.items() if port)


class Broker:
    """A server on the running event loop, for as long as an `async with` block lasts.

    Args:
        data_dir: the data directory; None for a temporary one that goes away with the server.
        listen: NAME=HOST:PORT of each listener; every listener on a free port of 127.0.0.1 by default.
        settings: settings by name, as in `--set`; values may be strings, numbers or booleans.

    Raises:
        MillstreamError: on entering the block, if the server cannot start.
    """

    def __init__(
        self,
        data_dir: str | None = None,
        *,
        listen: tuple[str, ...] = _EVERY_LISTENER_ON_A_FREE_PORT,
        settings: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        self._given_data_dir = data_dir
        self._data_dir: str | None = None
        self._listen = listen
        self._settings = [f"{key}={_text(value)}" for key, value in (settings or {}).items()]
        self._stack = contextlib.ExitStack()
        self._server: Server | None = None

    @property
    def kafka(self) -> str:
        """Where Kafka clients connect, as HOST:PORT."""
        return self.addresses["kafka"]

    @property
    def kafka07(self) -> str:
        """Where clients of Kafka 0.7 connect, as HOST:PORT."""
        return self.addresses["kafka07"]

    @property
    def pulsar(self) -> str:
        """Where Pulsar clients connect, as HOST:PORT; pulsar:// before it makes it a service URL."""
        return self.addresses["pulsar"]

    @property
    def iggy(self) -> str:
        """Where Iggy clients connect over TCP, as HOST:PORT."""
        return self.addresses["iggy"]

    @property
    def http(self) -> str:
        """Where HTTP clients connect, as HOST:PORT."""
        return self.addresses["http"]

    @property
    def addresses(self) -> Mapping[str, str]:
        """Where clients connect, as HOST:PORT by the listener's name."""
        if self._server is None:
            raise RuntimeError("the broker is not running")
        return self._server.addresses()

    @property
    def data_dir(self) -> str:
        """The data directory."""
        if self._data_dir is None:
            raise RuntimeError("the broker is not running")
        return self._data_dir

    async def __aenter__(self) -> "Broker":
        with contextlib.ExitStack() as stack:
            data_dir = self._given_data_dir
            if data_dir is None:
                directory = tempfile.TemporaryDirectory(prefix="millstream-", ignore_cleanup_errors=True)
                data_dir = stack.enter_context(directory)
            config = ServerConfig.of(data_dir=data_dir, listen=self._listen, settings=self._settings)
            server = Server(config)
            await server.start()
            self._server, self._data_dir = server, data_dir
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server, self._data_dir = self._server, None, None
        with self._stack:
            if server is not None:
                await server.stop()


@contextlib.contextmanager
def running(
    data_dir: str | None = None,
    *,
    listen: tuple[str, ...] = _EVERY_LISTENER_ON_A_FREE_PORT,
    settings: Mapping[str, str | int | float | bool] | None = None,
) -> Iterator[Broker]:
    """A server on a thread of its own, for as long as a `with` block lasts. Arguments as for `Broker`."""
    broker = Broker(data_dir, listen=listen, settings=settings)
    started = threading.Event()
    failure: list[BaseException] = []
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        async with broker:
            done = asyncio.Event()
            stop.append((asyncio.get_running_loop(), done))
            started.set()
            await done.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve())
        except BaseException as error:  # noqa: BLE001 - raised again where the block is entered or left
            failure.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=run, name="millstream", daemon=True)
    thread.start()
    started.wait()
    if failure:
        raise failure[0]
    try:
        yield broker
    finally:
        loop, done = stop[0]
        if thread.is_alive():
            loop.call_soon_threadsafe(done.set)
        thread.join()
    if failure:
        raise failure[0]


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
