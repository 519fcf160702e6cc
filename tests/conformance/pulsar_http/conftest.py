"""A server with one port for everything, for clients that begin with HTTP."""

from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest

from tests.support.server_process import ServerProcess, serving

TIMEOUT_MS = 20_000


@pytest.fixture(scope="session")
def http_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server process, shared by the whole run. Nothing in it may go wrong unseen."""
    with serving(str(tmp_path_factory.mktemp("pulsar-http") / "data"), "any=127.0.0.1:0") as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture
def address(http_server: ServerProcess) -> str:
    """HOST:PORT of the server."""
    return http_server.addresses["any"]


@pytest.fixture
def connect(address: str) -> Iterator[Callable[[], Any]]:
    """Makes clients with an http:// service URL, and closes them in the end."""
    clients: list[Any] = []

    def make() -> Any:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        clients.append(pulsar.Client(f"http://{address}", logger=logger, operation_timeout_seconds=10))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
