"""Producer ids are never given out twice, whatever happens."""

from pathlib import Path

import pytest

from millstream.storage.metadata import METADATA_LANE, MetadataFailed
from tests.unit.broker.simulated_broker import SimulatedBroker


@pytest.fixture
def sim(tmp_path: Path) -> SimulatedBroker:
    return SimulatedBroker(str(tmp_path / "metadata.sqlite"))


def take(sim: SimulatedBroker, count: int) -> list[int]:
    pending = [sim.broker.producer_ids.take() for _ in range(count)]
    sim.runtime.run()
    return [one.result() for one in pending]


def test_ids_follow_one_another(sim: SimulatedBroker) -> None:
    assert take(sim, 2500) == list(range(2500))
    assert take(sim, 1) == [2500]


def test_an_id_is_given_only_when_its_block_lasts(sim: SimulatedBroker) -> None:
    sim.runtime.hold(METADATA_LANE)
    pending = sim.broker.producer_ids.take()
    sim.runtime.run()
    assert not pending.done
    sim.runtime.release(METADATA_LANE)
    assert sim.wait(pending) == 0
    assert sim.broker.producer_ids.take().done


@pytest.mark.parametrize("end", ["kill", "close"])
def test_ids_do_not_come_again_after_a_restart(sim: SimulatedBroker, end: str) -> None:
    given = take(sim, 3)
    for count in (1, 1500, 3):
        if end == "kill":
            sim.kill()
            sim.start()
        else:
            sim.restart()
        given += take(sim, count)
    assert len(set(given)) == len(given)


def test_a_block_that_could_not_be_stored_is_asked_for_again(sim: SimulatedBroker) -> None:
    sim.store.failing = True
    pending = [sim.broker.producer_ids.take() for _ in range(2)]
    sim.runtime.run()
    for one in pending:
        with pytest.raises(MetadataFailed):
            one.result()
    sim.store.failing = False
    assert take(sim, 2) == [0, 1]
