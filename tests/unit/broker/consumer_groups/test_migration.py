"""A group with members changes its kind, there and back, or does not."""

import pytest

from millstream.broker.any_group import GroupKind, GroupState, Joined
from millstream.broker.consumer_groups.migration import upgraded
from millstream.broker.errors import (
    FencedInstance,
    GroupFull,
    GroupNotFound,
    RebalanceInProgress,
    UnknownMember,
    UnsupportedAssignor,
)
from millstream.broker.group import Group
from tests.unit.broker.consumer_groups.crowd import GROUP, Crowd, Fellow
from tests.unit.broker.consumer_groups.embedded import classic_joining
from tests.unit.broker.consumer_groups.test_classic_members import Old, together

EVERYTHING = " ".join(f"orders:{index}" for index in range(6))


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


def classic(crowd: Crowd, assignment: str = EVERYTHING, **details: str) -> Joined:
    """A stable classic group of one member."""
    groups = crowd.broker.groups
    joined = groups.join(GROUP, classic_joining(**details)).result()  # type: ignore[arg-type]  # text, all of them
    content = {joined.member_id: assignment.encode()}
    groups.member_group(GROUP).sync(joined.member_id, None, joined.generation, None, None, content)
    return joined


def kind(crowd: Crowd) -> GroupKind:
    return crowd.broker.groups.member_group(GROUP).kind


def test_there_and_back(crowd: Crowd) -> None:
    joined = classic(crowd)
    old = Old(crowd)
    old.member_id, old.generation, old.owned = joined.member_id, joined.generation, set(EVERYTHING.split())
    new = Fellow(crowd, "new")
    assert new.join().epoch == 2
    assert kind(crowd) is GroupKind.CONSUMER
    assert new.indexes == [], "the other one has everything still"
    together(crowd, old, new)
    assert len(old.owned) == len(new.owned) == 3
    crowd.group.check_commit(old.member_id, None, old.generation)
    new.leave()
    assert kind(crowd) is GroupKind.CLASSIC
    group = crowd.broker.groups.member_group(GROUP)
    assert isinstance(group, Group)
    assert group.state is GroupState.PREPARING
    assert {*group.members[old.member_id].assignment.decode().split()} == old.owned
    assert group.members[old.member_id].subscribed == {"orders"}
    again = crowd.broker.groups.join(GROUP, classic_joining(old.member_id)).result()
    assert again.generation > old.generation
    assert again.leader_id == old.member_id
    with pytest.raises(UnknownMember):
        new.beat()


def test_members_keep_what_an_interrupted_rebalance_left_with_them(crowd: Crowd) -> None:
    groups = crowd.broker.groups
    leader = classic(crowd)
    groups.join(GROUP, classic_joining())
    groups.join(GROUP, classic_joining(leader.member_id, owned=EVERYTHING)).result()
    groups.join(GROUP, classic_joining())  # before the leader has assigned anything
    new = Fellow(crowd, "new")
    new.join()
    assert new.indexes == [], "the leader has everything still"
    assert len(crowd.group.members[leader.member_id].assigned | crowd.group.members[leader.member_id].revoking) == 6


def test_a_group_without_members_becomes_what_the_next_one_wants() -> None:
    crowd = Crowd(group__consumer__migration__policy="disabled")
    joined = classic(crowd)
    crowd.broker.groups.member_group(GROUP).leave(joined.member_id, None)
    fellow = Fellow(crowd, "new")
    with pytest.raises(UnsupportedAssignor):
        fellow.join("sticky")
    assert kind(crowd) is GroupKind.CLASSIC
    fellow.join()
    assert kind(crowd) is GroupKind.CONSUMER
    fellow.leave()
    with pytest.raises(UnknownMember):
        crowd.broker.groups.join(GROUP, classic_joining("somebody"))
    classic(crowd)
    assert kind(crowd) is GroupKind.CLASSIC


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_classic_group_stays_one_if_it_must(policy: str) -> None:
    crowd = Crowd(group__consumer__migration__policy=policy)
    joined = classic(crowd)
    with pytest.raises(GroupNotFound):
        Fellow(crowd, "new").join()
    crowd.broker.groups.member_group(GROUP).heartbeat(joined.member_id, None, joined.generation)


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_a_consumer_group_stays_one_if_it_must(policy: str) -> None:
    crowd = Crowd(group__consumer__migration__policy=policy)
    (new,) = crowd.joined("new")
    old = Old(crowd)
    old.join()
    together(crowd, new, old)
    new.leave()
    assert kind(crowd) is GroupKind.CONSUMER
    together(crowd, old)
    assert len(old.owned) == 6


@pytest.mark.parametrize(
    "details", [{"protocol_type": "connect"}, {"said": b"?"}, {"assignment": "?"}], ids=["type", "said", "assigned"]
)
def test_what_cannot_be_read_cannot_be_led(crowd: Crowd, details: dict[str, str]) -> None:
    joined = classic(crowd, **details)
    with pytest.raises(GroupNotFound):
        Fellow(crowd, "new").join()
    crowd.broker.groups.member_group(GROUP).heartbeat(joined.member_id, None, joined.generation)


def test_without_a_reader_nothing_changes(crowd: Crowd) -> None:
    classic(crowd)
    crowd.broker.groups.environment.embedded = None
    group = crowd.broker.groups.member_group(GROUP)
    assert isinstance(group, Group)
    assert upgraded(group, crowd.broker.groups.environment, lambda _: None) is None


def test_there_is_room_for_so_many() -> None:
    crowd = Crowd(group__consumer__max__size="1")
    classic(crowd)
    with pytest.raises(GroupFull):
        Fellow(crowd, "new").join()
    assert kind(crowd) is GroupKind.CLASSIC


@pytest.mark.parametrize("instance_id", ["static", "unknown"])
def test_a_member_that_is_refused_leaves_the_group_as_it_was(instance_id: str) -> None:
    crowd = Crowd(group__consumer__max__size="2")
    groups = crowd.broker.groups
    dynamic = classic(crowd)
    static = groups.join(GROUP, classic_joining("", "static"))
    joined = groups.join(GROUP, classic_joining(dynamic.member_id)).result()
    group = groups.member_group(GROUP)
    timers, watchers = len(crowd.runtime.timers), len(crowd.broker.topics._watchers)
    refused = Fellow(crowd, dynamic.member_id if instance_id == "static" else "new", instance_id)
    with pytest.raises(FencedInstance if instance_id == "static" else GroupFull):
        refused.join()
    assert groups.member_group(GROUP) is group
    assert (len(crowd.runtime.timers), len(crowd.broker.topics._watchers)) == (timers, watchers)
    group.heartbeat(static.result().member_id, "static", joined.generation)


def test_a_static_member_of_a_full_group_changes_its_protocol() -> None:
    crowd = Crowd(group__consumer__max__size="1")
    groups = crowd.broker.groups
    groups.join(GROUP, classic_joining("", "static")).result()
    Fellow(crowd, "new", "static").join()
    assert list(crowd.group.members) == ["new"]


def test_who_waits_for_an_answer_is_told_to_join_again(crowd: Crowd) -> None:
    groups = crowd.broker.groups
    first = groups.join(GROUP, classic_joining()).result()
    waiting = groups.join(GROUP, classic_joining())
    assert not waiting.done
    Fellow(crowd, "new").join()
    with pytest.raises(RebalanceInProgress):
        waiting.result()
    assert first.member_id in crowd.group.members


def test_a_partition_that_two_were_assigned_is_the_first_ones(crowd: Crowd) -> None:
    groups = crowd.broker.groups
    first = groups.join(GROUP, classic_joining()).result()
    second = groups.join(GROUP, classic_joining())
    first = groups.join(GROUP, classic_joining(first.member_id)).result()
    group = groups.member_group(GROUP)
    shares = {first.member_id: b"orders:0 orders:1 gone:0", second.result().member_id: b"orders:1 orders:2"}
    group.sync(first.member_id, None, first.generation, None, None, shares)
    Fellow(crowd, "new").join()
    owned = [sorted(index for _, index in member.assigned) for member in crowd.group.members.values()]
    assert owned[:2] == [[0, 1], [2]]


def test_static_members_stay_themselves(crowd: Crowd) -> None:
    groups = crowd.broker.groups
    joined = groups.join(GROUP, classic_joining("", "static")).result()
    group = groups.member_group(GROUP)
    group.sync(joined.member_id, "static", joined.generation, None, None, {joined.member_id: EVERYTHING.encode()})
    new = Fellow(crowd, "new")
    new.join()
    old = Old(crowd, "static")
    old.member_id, old.generation, old.owned = joined.member_id, joined.generation, set(EVERYTHING.split())
    together(crowd, old, new)
    new.leave()
    group = groups.member_group(GROUP)
    assert isinstance(group, Group)
    assert [member.instance_id for member in group.members.values()] == ["static"]
    assert groups.join(GROUP, classic_joining(old.member_id, "static")).done


def test_the_last_member_of_the_new_protocol_takes_the_old_one_up(crowd: Crowd) -> None:
    static = Fellow(crowd, "new", "static")
    static.join()
    joined = crowd.wait(crowd.broker.groups.join(GROUP, classic_joining("", "static")))
    group = crowd.broker.groups.member_group(GROUP)
    assert (group.kind, list(group.members)) == (GroupKind.CLASSIC, [joined.member_id])
    with pytest.raises(RebalanceInProgress):
        group.heartbeat(joined.member_id, "static", joined.generation)


def test_a_group_that_is_too_large_for_a_classic_one_stays() -> None:
    crowd = Crowd(group__max__size="1")
    (new,) = crowd.joined("new")
    for _ in range(2):
        Old(crowd).join()
    new.leave()
    assert kind(crowd) is GroupKind.CONSUMER
