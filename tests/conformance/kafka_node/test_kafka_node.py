"""kafka-node: with the versions of 0.9 and with those that it finds advertised, which are those of 0.10."""

import base64
from collections.abc import Callable

import pytest

from tests.conformance.kafka_node.conftest import Scenario
from tests.support.sample_records import samples
from tests.support.server_process import ServerProcess

Unique = Callable[[str], str]
BOTH = pytest.mark.parametrize("asks", [False, True], ids=["0.9", "0.10"])
CODECS = pytest.mark.parametrize("codec", ["none", "gzip"])


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def records(count: int) -> list[tuple[str | None, str | None]]:
    """Keys and values that the client can send; it turns null values into empty ones."""
    return [(text(one.key), text(one.value)) for one in samples() if one.key and one.value][:count]


@BOTH
@CODECS
def test_round_trip(scenario: Scenario, broker: ServerProcess, unique: Unique, codec: str, *, asks: bool) -> None:
    scenario(broker.kafka, "roundTrip", topic=unique("kn"), records=records(200), codec=codec, asks=asks)


def test_offsets(scenario: Scenario, broker: ServerProcess, unique: Unique) -> None:
    scenario(broker.kafka, "offsets", topic=unique("kn"), group=unique("kn-group"), records=records(20))


@BOTH
@CODECS
def test_groups(scenario: Scenario, broker: ServerProcess, unique: Unique, codec: str, *, asks: bool) -> None:
    names = {"topic": unique("kn"), "group": unique("kn-group")}
    scenario(broker.kafka, "group", **names, records=records(20), codec=codec, asks=asks)
