"""Positions that are seen at once and stored soon."""

from uuid import UUID

import pytest

from millstream.broker.positions import Positions
from millstream.storage.metadata import CommittedOffset, MetadataFailed
from tests.unit.broker.simulated_broker import SimulatedBroker

PLACE = (UUID(int=1), 0)


@pytest.fixture
def server() -> SimulatedBroker:
    return SimulatedBroker()


@pytest.fixture
def positions(server: SimulatedBroker) -> Positions:
    return Positions(server.broker.groups.offsets, server.runtime.now_ms)


def test_a_position_is_seen_at_once(server: SimulatedBroker, positions: Positions) -> None:
    assert positions.get("g", PLACE) is None
    stored = positions.put("g", PLACE, 5)
    assert positions.get("g", PLACE) == 5
    assert not stored.done
    server.wait(stored)
    assert positions.get("g", PLACE) == 5
    assert server.broker.groups.offsets.of_group("g")[PLACE].offset == 5


def test_positions_gather_while_one_is_being_stored(server: SimulatedBroker, positions: Positions) -> None:
    server.runtime.hold("metadata")
    pendings = [positions.put("g", PLACE, offset) for offset in range(10)]
    server.runtime.run()
    assert positions.get("g", PLACE) == 9
    assert server.runtime.queued("metadata") == 1
    server.runtime.release("metadata")
    for pending in pendings:
        server.wait(pending)
    assert server.broker.groups.offsets.of_group("g")[PLACE].offset == 9
    assert len({id(pending) for pending in pendings}) == 2


def test_what_others_commit_is_seen(server: SimulatedBroker, positions: Positions) -> None:
    server.wait(positions.put("g", PLACE, 5))
    server.wait(server.broker.groups.offsets.commit("g", {PLACE: CommittedOffset(8, -1, "", 0)}))
    assert positions.get("g", PLACE) == 8


def test_a_position_that_cannot_be_stored_is_taken_back(server: SimulatedBroker, positions: Positions) -> None:
    server.wait(positions.put("g", PLACE, 5))
    server.store.failing = True
    first, second = positions.put("g", PLACE, 6), positions.put("g", PLACE, 7)
    for pending in (first, second):
        with pytest.raises(MetadataFailed):
            server.wait(pending)
    assert positions.get("g", PLACE) == 5


def test_positions_are_deleted(server: SimulatedBroker, positions: Positions) -> None:
    server.wait(positions.put("g", PLACE, 5))
    server.wait(positions.delete("g", [PLACE]))
    assert positions.get("g", PLACE) is None


def test_positions_do_not_expire(server: SimulatedBroker, positions: Positions) -> None:
    server.wait(positions.put("g", PLACE, 5))
    day_ms = 24 * 3600 * 1000
    server.wait(server.broker.groups.offsets.commit("h", {PLACE: CommittedOffset(5, -1, "", 0)}))
    server.wait(server.broker.groups.offsets.commit("g", {PLACE: CommittedOffset(6, -1, "", 0)}))
    server.pass_ms(8 * day_ms)
    assert positions.get("g", PLACE) == 6
    assert positions.get("h", PLACE) is None


def test_positions_of_partitions_that_are_gone_are_not_stored_again(
    server: SimulatedBroker, positions: Positions
) -> None:
    server.runtime.hold("metadata")
    pendings = [positions.put("g", PLACE, offset) for offset in (1, 2)]
    server.runtime.run()
    positions.forget(lambda place: place == PLACE)
    server.runtime.release("metadata")
    for pending in pendings:
        server.wait(pending)
    assert server.broker.groups.offsets.of_group("g")[PLACE].offset == 1


def test_others_can_wait_for_what_is_under_way(server: SimulatedBroker, positions: Positions) -> None:
    assert positions.under_way("g") == []
    server.runtime.hold("metadata")
    for offset in (5, 6):
        positions.put("g", PLACE, offset)
    (waiting,) = positions.under_way("g")
    assert positions.under_way("another") == []
    server.runtime.release("metadata")
    server.wait(waiting)
    assert server.broker.groups.offsets.of_group("g")[PLACE].offset == 6
    assert positions.under_way("g") == []
