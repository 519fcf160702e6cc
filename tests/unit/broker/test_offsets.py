"""Committed offsets in memory: what is loaded, forgotten, and old enough to go."""

from uuid import UUID

from millstream.broker.offsets import Offsets
from millstream.storage.metadata import CommittedOffset
from tests.support.simulated_runtime import SimulatedRuntime
from tests.unit.broker.simulated_broker import FallibleStore

FIRST, SECOND = UUID(int=1), UUID(int=2)


def at(committed_ms: int) -> CommittedOffset:
    return CommittedOffset(5, -1, "", committed_ms)


def loaded() -> Offsets:
    store = FallibleStore(SimulatedRuntime(), "sqlite://", durable=False)
    return Offsets(store, {("g", FIRST, 0): at(10), ("g", FIRST, 1): at(20), ("h", SECOND, 0): at(30)})


def test_what_the_store_held_is_there() -> None:
    offsets = loaded()
    assert list(offsets.group_ids()) == ["g", "h"]
    assert offsets.of_group("g") == {(FIRST, 0): at(10), (FIRST, 1): at(20)}
    assert offsets.of_group("nobody") == {}


def test_a_topic_that_is_gone_is_forgotten_and_so_is_a_group_without_others() -> None:
    offsets = loaded()
    offsets.forget_topic(SECOND)
    assert list(offsets.group_ids()) == ["g"]
    offsets.forget_topic(UUID(int=9))
    assert len(offsets.of_group("g")) == 2


def test_offsets_older_than_a_time_have_expired() -> None:
    offsets = loaded()
    assert offsets.expired("g", 10) == []
    assert offsets.expired("g", 11) == [(FIRST, 0)]
    assert offsets.expired("g", 21) == [(FIRST, 0), (FIRST, 1)]
    assert offsets.expired("nobody", 99) == []
