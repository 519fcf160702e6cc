"""Pulsar connections over plain sockets."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.pulsar_raw.connection import Connection
from tests.support.server_process import ServerProcess, serving

Connect = Callable[..., Connection]


@pytest.fixture(scope="session")
def raw_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server process with a listener for Pulsar. Nothing in it may go wrong unseen."""
    data_dir, settings = str(tmp_path_factory.mktemp("pulsar-raw") / "data"), ["listener.recognition.timeout.ms=1000"]
    with serving(data_dir, "pulsar=127.0.0.1:0", settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture
def connect(raw_server: ServerProcess) -> Iterator[Connect]:
    """Opens connections, and closes them in the end."""
    connections: list[Connection] = []

    def open_connection(version: int | None = 21, **settings: Any) -> Connection:
        connections.append(Connection(raw_server.addresses["pulsar"], version, **settings))
        return connections[-1]

    yield open_connection
    for connection in connections:
        connection.close()


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    """The name of a topic that no other test uses."""
    return unique("raw")
