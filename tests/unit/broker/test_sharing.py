"""How members share partitions."""

import pytest

from millstream.broker.errors import UnknownMember
from millstream.broker.sharing import REVOCATION_MS, Sharing
from tests.support.simulated_runtime import SimulatedRuntime


@pytest.fixture
def runtime() -> SimulatedRuntime:
    return SimulatedRuntime()


def shared(runtime: SimulatedRuntime, partitions: int, *members: int, cooperative: bool = False) -> Sharing:
    sharing = Sharing(runtime, partitions)
    for member in members:
        sharing.join(member, cooperative=cooperative)
    return sharing


def test_eager_members_share_in_turn(runtime: SimulatedRuntime) -> None:
    sharing = shared(runtime, 5, 11, 12, 13)
    assert sharing.assignments() == {11: [0, 3], 12: [1, 4], 13: [2]}
    assert sharing.leave(12)
    assert not sharing.leave(12)
    assert sharing.assignments() == {11: [0, 2, 4], 13: [1, 3]}
    sharing.resize(2)
    assert sharing.assignments() == {11: [0], 13: [1]}
    assert len(sharing) == 2
    assert 11 in sharing


def test_more_members_than_partitions(runtime: SimulatedRuntime) -> None:
    sharing = shared(runtime, 1, 11, 12)
    assert sharing.assignments() == {11: [0], 12: []}
    assert sharing.next_partition(12) is None
    assert sharing.current_partition(12) is None


def test_joining_again_changes_nothing(runtime: SimulatedRuntime) -> None:
    sharing = shared(runtime, 3, 11, 12)
    before = sharing.generation
    sharing.join(12, cooperative=False)
    assert sharing.generation == before


def test_turns(runtime: SimulatedRuntime) -> None:
    sharing = shared(runtime, 3, 11)
    assert sharing.current_partition(11) == 0
    turns = [sharing.next_partition(11) for _ in range(5)]
    assert turns == [0, 1, 2, 0, 1]
    assert sharing.current_partition(11) == 1


def test_cooperative_members_keep_what_is_not_the_newcomers_share(runtime: SimulatedRuntime) -> None:
    sharing = shared(runtime, 5, 11, 12, cooperative=True)
    assert sharing.assignments() == {11: [0, 1, 2], 12: [3, 4]}
    sharing.join(13, cooperative=True)
    assert sharing.assignments() == {11: [0, 1], 12: [3, 4], 13: [2]}


def test_what_is_under_way_changes_hands_when_it_is_done(runtime: SimulatedRuntime) -> None:
    sharing = shared(runtime, 2, 11, cooperative=True)
    sharing.polled(0, 9)
    sharing.polled(1, 5)
    sharing.join(12, cooperative=True)
    assert sharing.assigned(11) == [0]
    assert sharing.assigned(12) == []
    assert not sharing.owns(11, 1)
    sharing.committed(1, 4)
    assert sharing.assigned(12) == []
    before = sharing.generation
    sharing.committed(1, 5)
    assert sharing.assigned(12) == [1]
    assert sharing.owns(12, 1)
    assert sharing.generation > before


def test_what_is_under_way_changes_hands_in_the_end(runtime: SimulatedRuntime) -> None:
    sharing = shared(runtime, 2, 11, cooperative=True)
    sharing.polled(1, 5)
    sharing.join(12, cooperative=True)
    runtime.advance(REVOCATION_MS / 1000 - 1)
    assert sharing.assigned(12) == []
    runtime.advance(1)
    assert sharing.assigned(12) == [1]


@pytest.mark.parametrize("leaver", [11, 12])
def test_a_member_that_leaves_takes_what_is_under_way_along(runtime: SimulatedRuntime, leaver: int) -> None:
    sharing = shared(runtime, 2, 11, cooperative=True)
    sharing.polled(1, 5)
    sharing.join(12, cooperative=True)
    sharing.leave(leaver)
    left = 23 - leaver
    assert sharing.assigned(left) == [0, 1]
    runtime.advance(REVOCATION_MS / 1000)
    assert sharing.assigned(left) == [0, 1]


def test_strangers_have_nothing(runtime: SimulatedRuntime) -> None:
    sharing = shared(runtime, 2, 11)
    for action in (sharing.assigned, sharing.next_partition, sharing.current_partition):
        with pytest.raises(UnknownMember):
            action(99)
    with pytest.raises(UnknownMember):
        sharing.owns(99, 0)


def test_no_timer_runs_on(runtime: SimulatedRuntime) -> None:
    sharing = shared(runtime, 2, 11, cooperative=True)
    sharing.polled(1, 5)
    sharing.join(12, cooperative=True)
    sharing.close()
    before = sharing.assignments()
    runtime.advance(REVOCATION_MS)
    assert sharing.assignments() == before
