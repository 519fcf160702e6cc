"""Producers with a transactional id: bounds, and what a start makes of documents that do not fit together."""

from pathlib import Path

import pytest

from millstream.broker.transactions import (
    InvalidTransactionalId,
    ProducerEpoch,
    TransactionChanging,
    UnknownTransactionalId,
    producers,
)
from tests.unit.broker.simulated_broker import SimulatedBroker


@pytest.fixture
def sim(tmp_path: Path) -> SimulatedBroker:
    sim = SimulatedBroker(str(tmp_path / "metadata"))
    sim.create("orders", 2)
    return sim


def opened(sim: SimulatedBroker, name: str) -> ProducerEpoch:
    return sim.wait(sim.broker.transactional_producers.open(name, 60_000))


def test_of_too_many_those_that_have_rested_longest_are_forgotten(
    sim: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producers, "_PRODUCERS_MAX", 3)
    found = sim.broker.transactional_producers
    busy = opened(sim, "busy")
    sim.wait(found.add_partitions("busy", busy, [(sim.topic(), 0)]))
    for name in ("a", "b", "a", "c", "d"):
        opened(sim, name)
        sim.pass_ms(1)
    assert [one.transactional_id for one in found] == ["busy", "c", "d"]
    sim.kill()
    sim.start()
    assert [one.transactional_id for one in sim.broker.transactional_producers] == ["busy", "c", "d"]
    assert sim.broker.transactional_producers.with_id(busy.id) is not None


def test_ids_in_utf_8_count_their_bytes(sim: SimulatedBroker) -> None:
    opened(sim, "ä" * 1000)
    with pytest.raises(InvalidTransactionalId):
        sim.broker.transactional_producers.open("ä" * 1000 + "x", 1000)


def test_the_same_name_twice_at_the_same_time(sim: SimulatedBroker) -> None:
    first = sim.broker.transactional_producers.open("p", 1000)
    with pytest.raises(TransactionChanging):
        sim.broker.transactional_producers.open("p", 1000)
    assert sim.wait(first) == ProducerEpoch(0, 0)


def test_a_name_that_could_not_be_stored_is_nobodys(sim: SimulatedBroker) -> None:
    found = sim.broker.transactional_producers
    opened(sim, "other")
    sim.store.failing = True
    refused = found.open("p", 1000)
    sim.runtime.run()
    assert refused.failed
    assert found.find("p") is None
    with pytest.raises(UnknownTransactionalId):
        found.end("p", ProducerEpoch(-1, -1), commit=True, renamed=False)


def test_a_transaction_of_nobody_is_aborted_at_the_start(sim: SimulatedBroker) -> None:
    found = sim.broker.transactional_producers
    identity = opened(sim, "p")
    sim.wait(found.add_partitions("p", identity, [(sim.topic(), 0)]))
    sim.wait(sim.broker.documents.delete("transactional-id", "p"))
    sim.kill()
    sim.start()
    assert sim.broker.transactions.open == []
    assert sim.broker.documents.of_kind("transaction") == {}
