"""All groups together: offsets, expiry, deletion, and what is listed."""

from uuid import UUID

import pytest

from millstream.broker.errors import (
    GroupNotEmpty,
    GroupNotFound,
    GroupsClosed,
    InvalidGroupId,
    InvalidSessionTimeout,
    MemberIdRequired,
    UnknownMember,
)
from millstream.broker.group import GroupState, Joined
from millstream.broker.groups import Groups
from millstream.storage.metadata import CommittedOffset, MetadataFailed
from tests.unit.broker.members import joining
from tests.unit.broker.simulated_broker import SimulatedBroker

RETENTION_MINUTES = 10
RETENTION_MS = RETENTION_MINUTES * 60_000
TOPIC = UUID(int=1)


@pytest.fixture
def sim() -> SimulatedBroker:
    return SimulatedBroker(offsets__retention__minutes=str(RETENTION_MINUTES))


@pytest.fixture
def groups(sim: SimulatedBroker) -> Groups:
    return sim.broker.groups


def committed(sim: SimulatedBroker, offset: int = 5) -> CommittedOffset:
    return CommittedOffset(offset, 0, "note", sim.runtime.now_ms())


def commit(sim: SimulatedBroker, offset: int = 5, group_id: str = "g", partition: int = 0) -> None:
    sim.wait(sim.broker.groups.commit(group_id, "", None, -1, {(TOPIC, partition): committed(sim, offset)}))


def alone(groups: Groups, group_id: str = "g") -> Joined:
    joined = groups.join(group_id, joining()).result()
    groups.member_group(group_id).sync(joined.member_id, None, joined.generation, None, None, {})
    return joined


def test_a_group_without_a_name_is_refused(groups: Groups) -> None:
    for act in (
        lambda: groups.join("", joining()),
        lambda: groups.member_group(""),
        lambda: groups.commit("", "", None, -1, {}),
        lambda: groups.delete(""),
    ):
        with pytest.raises(InvalidGroupId):
            act()
    assert groups.ids() == []


@pytest.mark.parametrize("session_ms", [5999, 1_800_001, 0, -1])
def test_a_session_outside_the_bounds_is_refused(groups: Groups, session_ms: int) -> None:
    with pytest.raises(InvalidSessionTimeout, match="6000 and 1800000"):
        groups.join("g", joining(session_ms=session_ms))
    assert groups.ids() == []


@pytest.mark.parametrize("session_ms", [6000, 1_800_000])
def test_the_bounds_of_a_session_are_allowed(groups: Groups, session_ms: int) -> None:
    assert groups.join("g", joining(session_ms=session_ms)).done


def test_a_member_of_an_unknown_group_is_told_to_join_anew(groups: Groups) -> None:
    with pytest.raises(UnknownMember):
        groups.join("g", joining("somebody"))
    with pytest.raises(UnknownMember):
        groups.member_group("g")
    with pytest.raises(GroupNotFound):
        groups.commit("g", "somebody", None, 3, {})
    assert groups.ids() == []


def test_offsets_are_seen_once_they_last(sim: SimulatedBroker, groups: Groups) -> None:
    pending = groups.commit("g", "", None, -1, {(TOPIC, 0): committed(sim)})
    assert not pending.done
    assert groups.offsets.of_group("g") == {}
    sim.wait(pending)
    assert groups.offsets.of_group("g")[TOPIC, 0].offset == 5
    assert groups.commit("g", "", None, -1, {}).done


def test_offsets_that_could_not_be_stored_are_not_seen(sim: SimulatedBroker, groups: Groups) -> None:
    sim.store.failing = True
    with pytest.raises(MetadataFailed):
        commit(sim)
    assert groups.offsets.of_group("g") == {}
    assert groups.ids() == []


def test_only_members_commit_while_there_are_some(sim: SimulatedBroker, groups: Groups) -> None:
    joined = alone(groups)
    with pytest.raises(UnknownMember):
        commit(sim)
    sim.wait(groups.commit("g", joined.member_id, None, joined.generation, {(TOPIC, 0): committed(sim, 9)}))
    groups.member_group("g").leave(joined.member_id, None)
    with pytest.raises(UnknownMember):
        groups.commit("g", joined.member_id, None, joined.generation, {(TOPIC, 0): committed(sim)})
    commit(sim, 10)
    assert groups.offsets.of_group("g")[TOPIC, 0].offset == 10


def test_what_is_listed_and_found(sim: SimulatedBroker, groups: Groups) -> None:
    commit(sim, group_id="with offsets")
    alone(groups, "with members")
    with pytest.raises(MemberIdRequired):
        groups.join("asked", joining(id_required=True))
    assert groups.ids() == ["asked", "with members", "with offsets"]
    states = {group_id: group.state for group_id in groups.ids() if (group := groups.find(group_id)) is not None}
    assert states == {
        "asked": GroupState.EMPTY,
        "with members": GroupState.STABLE,
        "with offsets": GroupState.EMPTY,
    }
    assert groups.find("nobody") is None


def test_a_group_is_deleted_with_its_offsets(sim: SimulatedBroker, groups: Groups) -> None:
    commit(sim)
    joined = alone(groups)
    with pytest.raises(GroupNotEmpty):
        groups.delete("g")
    groups.member_group("g").leave(joined.member_id, None)
    sim.wait(groups.delete("g"))
    assert groups.ids() == []
    assert groups.offsets.of_group("g") == {}
    with pytest.raises(GroupNotFound):
        groups.delete("g")


def test_a_group_that_has_only_offsets_is_deleted(sim: SimulatedBroker, groups: Groups) -> None:
    commit(sim)
    sim.wait(groups.delete("g"))
    assert groups.ids() == []


def test_a_commit_that_follows_a_deletion_is_kept(sim: SimulatedBroker, groups: Groups) -> None:
    commit(sim, 1)
    deleting = groups.delete("g")
    commit(sim, 2)
    assert deleting.done
    assert groups.offsets.of_group("g")[TOPIC, 0].offset == 2


def test_single_offsets_are_deleted(sim: SimulatedBroker, groups: Groups) -> None:
    commit(sim, 1, partition=0)
    commit(sim, 2, partition=1)
    sim.wait(groups.delete_offsets("g", [(TOPIC, 0), (TOPIC, 7)]))
    assert list(groups.offsets.of_group("g")) == [(TOPIC, 1)]
    sim.wait(groups.delete_offsets("g", [(TOPIC, 1)]))
    assert groups.ids() == []


def test_offsets_of_a_topic_that_is_deleted_go_with_it(sim: SimulatedBroker, groups: Groups) -> None:
    topic = sim.create()
    commit(sim)
    sim.wait(groups.commit("g", "", None, -1, {(topic.id, 0): committed(sim)}))
    under_way = groups.commit("g", "", None, -1, {(topic.id, 1): committed(sim)})
    sim.wait(sim.broker.delete_topic(topic))
    assert under_way.done
    assert list(groups.offsets.of_group("g")) == [(TOPIC, 0)]


def test_offsets_that_nobody_renews_are_forgotten(sim: SimulatedBroker, groups: Groups) -> None:
    commit(sim, partition=0)
    sim.pass_ms(RETENTION_MS / 2)
    commit(sim, partition=1)
    sim.pass_ms(RETENTION_MS / 2 + 60_000)
    assert list(groups.offsets.of_group("g")) == [(TOPIC, 1)]
    sim.pass_ms(RETENTION_MS / 2)
    assert groups.ids() == []


def test_offsets_of_a_group_with_members_are_kept_and_so_for_as_long_after_them(
    sim: SimulatedBroker, groups: Groups
) -> None:
    joined = alone(groups)
    sim.wait(groups.commit("g", joined.member_id, None, joined.generation, {(TOPIC, 0): committed(sim)}))
    for _ in range(2 * RETENTION_MS // 5000):
        sim.pass_ms(5000)
        groups.member_group("g").heartbeat(joined.member_id, None, joined.generation)
    groups.member_group("g").leave(joined.member_id, None)
    sim.pass_ms(RETENTION_MS - 60_000)
    assert list(groups.offsets.of_group("g")) == [(TOPIC, 0)]
    sim.pass_ms(120_000)
    assert groups.ids() == []


def test_a_group_that_had_members_and_has_no_offsets_is_forgotten(sim: SimulatedBroker, groups: Groups) -> None:
    joined = alone(groups)
    groups.member_group("g").leave(joined.member_id, None)
    assert groups.ids() == ["g"]
    sim.pass_ms(RETENTION_MS + 60_000)
    assert groups.ids() == []


def test_close_lets_no_timer_run(sim: SimulatedBroker, groups: Groups) -> None:
    joined = alone(groups)
    waiting = groups.join("g", joining())
    with pytest.raises(MemberIdRequired):
        groups.join("other", joining(id_required=True))
    sim.wait(sim.broker.close())
    with pytest.raises(UnknownMember):
        waiting.result()
    with pytest.raises(GroupsClosed):
        groups.member_group("g").heartbeat(joined.member_id, None, joined.generation)
    assert not sim.runtime.timers
