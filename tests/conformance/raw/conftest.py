"""Connections over plain sockets."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.raw.log_client import LogClient
from tests.support.server_process import ServerProcess

Connect = Callable[..., LogClient]


@pytest.fixture
def connect(broker: ServerProcess) -> Iterator[Connect]:
    """Opens connections, to the shared server unless another is given, and closes them in the end."""
    connections: list[LogClient] = []

    def open_connection(server: ServerProcess = broker) -> LogClient:
        connections.append(LogClient(server.kafka))
        return connections[-1]

    yield open_connection
    for connection in connections:
        connection.close()


@pytest.fixture
def client(connect: Connect) -> LogClient:
    """A connection to the shared server."""
    return connect()


@pytest.fixture
def topic(client: LogClient, unique: Callable[[str], str]) -> str:
    """A topic of one partition, with the server's defaults."""
    name = unique("raw")
    client.create_topic(name)
    return name
