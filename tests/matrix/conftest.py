"""One server with one port, a client of every protocol, and Spark; what every reader finds is read once."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.matrix.iggy import Iggy
from tests.matrix.kafka import Kafka
from tests.matrix.kafka07 import Kafka07
from tests.matrix.pulsar import Pulsar
from tests.matrix.spark import SparkReader
from tests.spark.conftest import spark
from tests.support.server_process import ServerProcess, serving

__all__ = ["spark"]

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Clients:
    """A client of every protocol."""

    kafka: Kafka
    kafka07: Kafka07
    pulsar: Pulsar
    iggy: Iggy


@pytest.fixture(scope="session")
def matrix_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with one port for all protocols. Nothing in it may go wrong unseen."""
    data_dir = str(tmp_path_factory.mktemp("matrix") / "data")
    settings = ["group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=500"]
    settings += ["connections.max.idle.ms=3600000"]  # the clients stay as long as the tests run, whatever is between
    with serving(data_dir, "any=127.0.0.1:0", settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture(scope="session")
def clients(matrix_server: ServerProcess) -> Iterator[Clients]:
    """A client of every protocol, closed in the end."""
    address = matrix_server.addresses["any"]
    found = Clients(Kafka(address), Kafka07(address), Pulsar(address), Iggy(address))
    yield found
    for one in (found.kafka07, found.pulsar, found.iggy):
        one.close()


@pytest.fixture(scope="session")
def spark_reader(spark: Any, matrix_server: ServerProcess) -> SparkReader:
    """Spark as a reader."""
    return SparkReader(spark, matrix_server.addresses["any"])


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Makes names for topics and groups."""
    return lambda stem: f"{stem}-{next(_numbers)}"
