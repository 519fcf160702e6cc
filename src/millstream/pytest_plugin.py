"""A pytest plugin: the fixture `millstream_broker` is a server of its own for each test that asks for it.

    def test_orders(millstream_broker):
        producer = confluent_kafka.Producer({"bootstrap.servers": millstream_broker.kafka})

pytest finds it where Millstream is installed. The fixture `millstream_settings` may be overridden to give settings.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from millstream.library import Broker

__all__ = ["millstream_broker", "millstream_settings"]


@pytest.fixture
def millstream_settings() -> Mapping[str, str | int | float | bool]:
    """Settings of the test's server, by name. Nothing is flushed for a test that says nothing else: it is faster."""
    return {"durability": "os"}


@pytest.fixture
def millstream_broker(millstream_settings: Mapping[str, str | int | float | bool]) -> "Iterator[Broker]":
    """A running server with an empty data directory; `.kafka` is its HOST:PORT."""
    from millstream.library import running

    with running(settings=millstream_settings) as broker:
        yield broker
