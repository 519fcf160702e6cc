"""What lasts of topics that keep nothing."""

from pathlib import Path

import pytest

from millstream.broker.errors import InvalidPartitionCount
from millstream.broker.schemas import Schema, SchemaCompatibility, SchemaType
from millstream.broker.topics import PARTITIONS_MAX
from millstream.broker.volatile_declarations import VolatileDeclaration
from millstream.model.topic_name import TopicName
from tests.unit.broker.simulated_broker import SimulatedBroker

NAME = TopicName("public", "default", "news")
TEXT = Schema(SchemaType.STRING, b"", {})


def killed(sim: SimulatedBroker) -> None:
    sim.kill()
    sim.start()


def declare(sim: SimulatedBroker, partitions: int = 0) -> VolatileDeclaration:
    return sim.wait(sim.broker.volatile.declarations.declare(NAME, partitions))


def test_partitions_last_and_only_grow(tmp_path: Path) -> None:
    sim = SimulatedBroker(str(tmp_path / "metadata.sqlite"))
    assert sim.broker.volatile.declarations.partitions(NAME) == 0
    first = declare(sim, 2)
    assert declare(sim) == declare(sim, 1) == first
    killed(sim)
    assert sim.broker.volatile.declarations.find(NAME) == first
    grown = declare(sim, 3)
    assert (grown.id, grown.partitions) == (first.id, 3)
    assert sim.broker.volatile.declarations.in_namespace("public", "default") == [grown]
    assert sim.broker.volatile.declarations.in_namespace("public", "def") == []


def test_numbers_that_no_topic_has(tmp_path: Path) -> None:
    sim = SimulatedBroker(str(tmp_path / "metadata.sqlite"))
    for count in (-1, PARTITIONS_MAX + 1):
        with pytest.raises(InvalidPartitionCount):
            declare(sim, count)


def test_schemas_last_until_it_is_forgotten(tmp_path: Path) -> None:
    sim = SimulatedBroker(str(tmp_path / "metadata.sqlite"))
    topic = declare(sim)
    sim.wait(sim.broker.schemas.register(topic.id, TEXT, SchemaCompatibility.FULL))
    killed(sim)
    latest = sim.broker.schemas.latest(topic.id)
    assert latest is not None
    assert latest.schema == TEXT
    sim.wait(sim.broker.forget_volatile(NAME))
    for _ in range(2):
        assert sim.broker.schemas.latest(topic.id) is None
        assert sim.broker.volatile.declarations.find(NAME) is None
        killed(sim)
    assert declare(sim).id != topic.id
