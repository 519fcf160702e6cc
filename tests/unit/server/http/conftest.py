"""A server that the tests of the HTTP API share, each working on names of its own."""

import itertools
from collections.abc import Callable, Iterator

import pytest

import millstream
from tests.unit.server.http.admin import Admin

_numbers = itertools.count()


@pytest.fixture(scope="session")
def http_broker() -> Iterator[millstream.Broker]:
    listen = tuple(f"{name}=127.0.0.1:0" for name in ("kafka", "pulsar", "http"))
    with millstream.running(listen=listen) as broker:
        yield broker


@pytest.fixture
def admin(http_broker: millstream.Broker) -> Admin:
    return Admin(http_broker)


@pytest.fixture
def unique() -> Callable[[str], str]:
    return lambda stem: f"{stem}-{next(_numbers)}"
