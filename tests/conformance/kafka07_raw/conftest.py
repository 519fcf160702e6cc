"""Servers with a listener for Kafka 0.7, and connections to them."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.kafka07_raw.connection import OldConnection
from tests.support.server_process import ServerProcess, serving

Connect = Callable[..., OldConnection]


@pytest.fixture(scope="package")
def old_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that speaks Kafka 0.7 on a port of its own; topics get two partitions."""
    data_dir = str(tmp_path_factory.mktemp("kafka07") / "data")
    settings = ["num.partitions=2", "listener.recognition.timeout.ms=1000"]
    with serving(data_dir, "kafka07=127.0.0.1:0", settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture(scope="package")
def any_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that recognises each connection's protocol on one port."""
    with serving(str(tmp_path_factory.mktemp("any") / "data"), "any=127.0.0.1:0") as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens connections to a server, and closes them in the end."""
    connections: list[OldConnection] = []

    def open_connection(server: ServerProcess) -> OldConnection:
        connections.append(OldConnection(next(iter(server.addresses.values()))))
        return connections[-1]

    yield open_connection
    for connection in connections:
        connection.close()
