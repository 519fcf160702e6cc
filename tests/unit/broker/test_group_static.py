"""Static members (KIP-345, KIP-814): coming back without a rebalance, fencing, and the leader that comes back."""

import pytest

from millstream.broker.errors import FencedInstance, MemberIdRequired, RebalanceInProgress, UnknownMember
from millstream.broker.group import GroupState
from tests.unit.broker.members import REBALANCE_MS, SESSION_MS, Party


@pytest.fixture
def party() -> Party:
    return Party()


def test_a_static_member_is_not_asked_to_come_back_with_an_id(party: Party) -> None:
    joined = party.join("", "a", id_required=True).result()
    assert joined.member_id.startswith("a-")
    assert joined.members == ((joined.member_id, "a", b"topics"),)


def test_a_follower_comes_back_to_its_assignment(party: Party) -> None:
    leader, follower = party.stable("a", "b")
    back = party.join("", "b").result()
    assert back.member_id not in {leader.member_id, follower.member_id}
    assert (back.generation, back.leader_id, back.members) == (2, leader.member_id, ())
    assert party.state() is GroupState.STABLE
    assert party.sync(back, "b").result().content == follower.member_id.encode()
    party.beat(leader, "a")


def test_a_follower_comes_back_with_metadata_of_its_new_life(party: Party) -> None:
    leader, _ = party.stable("a", "b", metadata=b"generation 1, owns 0 1 2")
    assert party.join("", "b", metadata=b"generation -1, owns nothing").done
    assert party.state() is GroupState.STABLE
    party.beat(leader, "a")


def test_a_static_member_whose_return_changes_the_protocol_makes_all_join_again(party: Party) -> None:
    leader, _ = party.stable("a", "b", protocols=("range", "sticky"))
    back = party.join("", "b", protocols=("sticky",))
    assert not back.done
    with pytest.raises(RebalanceInProgress):
        party.beat(leader, "a")
    assert party.join(leader.member_id, "a", protocols=("range", "sticky")).result().protocol_name == "sticky"
    assert back.result().generation == 3


def test_the_one_who_was_there_before_is_fenced_in_all_it_does(party: Party) -> None:
    _, old = party.stable("a", "b")
    party.join("", "b")
    for act in (
        lambda: party.beat(old, "b"),
        lambda: party.sync(old, "b"),
        lambda: party.join(old.member_id, "b"),
        lambda: party.group.leave(old.member_id, "b"),
        lambda: party.group.check_commit(old.member_id, "b", old.generation),
    ):
        with pytest.raises(FencedInstance):
            act()
    with pytest.raises(UnknownMember):
        party.beat(old)


def test_one_who_waits_is_fenced_when_its_twin_joins(party: Party) -> None:
    first = party.stable(None)[0]
    twin = party.join("", "b")
    other = party.join("", "b")
    with pytest.raises(FencedInstance):
        twin.result()
    party.join(first.member_id)
    assert other.result().generation == 2
    assert len(party.group.members) == 2


def test_one_who_waits_for_its_assignment_is_fenced_when_its_twin_joins(party: Party) -> None:
    leader, follower = party.stable("a", "b")
    party.join(leader.member_id, "a")
    waiting = party.sync(party.join(follower.member_id, "b").result(), "b")
    back = party.join("", "b")
    with pytest.raises(FencedInstance):
        waiting.result()
    # The leader was told of the old id and would assign to that: all join again.
    assert party.state() is GroupState.PREPARING
    party.join(leader.member_id, "a")
    assert back.result().generation == 4


def test_a_leader_that_comes_back_is_told_that_its_assignment_stands(party: Party) -> None:
    leader, follower = party.stable("a", "b")
    back = party.join("", "a", may_skip=True).result()
    assert back.skip_assignment
    assert back.leader_id == back.member_id
    assert {member_id for member_id, _, _ in back.members} == {back.member_id, follower.member_id}
    assert party.sync(back, "a").result().content == leader.member_id.encode()
    assert party.state() is GroupState.STABLE


def test_a_leader_that_comes_back_and_knows_no_skipping_is_told_of_its_former_self(party: Party) -> None:
    leader, _ = party.stable("a", "b")
    back = party.join("", "a").result()
    assert not back.skip_assignment
    assert (back.leader_id, back.members) == (leader.member_id, ())
    assert party.sync(back, "a").result().content == leader.member_id.encode()
    assert party.group.leader_id == back.member_id


def test_a_leader_that_has_come_back_can_force_a_rebalance(party: Party) -> None:
    _, follower = party.stable("a", "b")
    back = party.join("", "a", may_skip=True).result()
    again = party.join(back.member_id, "a")
    assert not again.done
    party.join(follower.member_id, "b")
    assert again.result().leader_id == back.member_id


def test_a_static_member_that_is_away_is_kept_until_its_session_ends(party: Party) -> None:
    away, present = party.stable("a", "b", rebalance_ms=4000)
    answer = party.join(present.member_id, "b", metadata=b"new", rebalance_ms=4000)
    party.pass_ms(4000)
    assert answer.result().leader_id == present.member_id
    assert {instance_id for _, instance_id, _ in answer.result().members} == {"a", "b"}
    party.sync(answer.result(), "b")
    party.pass_ms(5999)
    assert away.member_id in party.group.members
    party.beat(answer.result(), "b")
    party.pass_ms(1)
    assert list(party.group.members) == [present.member_id]
    assert party.state() is GroupState.PREPARING


def test_when_no_static_member_is_there_the_rebalance_waits_for_the_first_or_for_their_sessions(party: Party) -> None:
    party = Party()
    first = party.stable("a", "b", session_ms=10 * REBALANCE_MS)[0]
    third = party.join("", "c", session_ms=10 * REBALANCE_MS)
    party.group.leave("", "c")
    with pytest.raises(UnknownMember):
        third.result()
    party.pass_ms(5 * REBALANCE_MS)
    assert party.state() is GroupState.PREPARING
    back = party.join(first.member_id, "a", session_ms=10 * REBALANCE_MS)
    party.pass_ms(REBALANCE_MS)
    assert back.result().leader_id == first.member_id
    assert len(back.result().members) == 2


def test_all_static_members_stay_away_for_ever(party: Party) -> None:
    party.stable("a", "b")
    party.group.leave("", "b")
    party.pass_ms(10 * REBALANCE_MS)
    assert party.state() is GroupState.EMPTY
    assert not party.runtime.timers


def test_a_static_member_leaves_by_its_instance_id(party: Party) -> None:
    first, _ = party.stable("a", "b")
    with pytest.raises(FencedInstance):
        party.group.leave("another", "b")
    with pytest.raises(UnknownMember):
        party.group.leave("", "c")
    party.group.leave("", "b")
    with pytest.raises(UnknownMember):
        party.group.leave("", "b")
    assert list(party.group.members) == [first.member_id]
    assert party.join(first.member_id, "a").result().generation == 3


def test_an_instance_id_is_free_again_once_its_member_has_gone(party: Party) -> None:
    first = party.stable("a")[0]
    party.pass_ms(SESSION_MS)
    again = party.join("", "a").result()
    assert again.member_id != first.member_id
    assert again.generation == 3


def test_a_dynamic_member_that_becomes_static_joins_as_a_new_one(party: Party) -> None:
    """As in Apache Kafka, where its id is unknown together with an instance id: clients drop the id then."""
    leader, dynamic = party.stable(None, None)
    for _ in range(2):
        with pytest.raises(UnknownMember):
            party.join(dynamic.member_id, "a")
    assert party.state() is GroupState.STABLE
    joined = party.join("", "a")
    party.join(leader.member_id)
    party.group.leave(dynamic.member_id, None)
    assert joined.result().generation == 3
    assert party.join(joined.result().member_id, "a").done, "it is a member now, and joins again as one"


def test_an_id_that_was_given_to_a_dynamic_member_is_none_of_a_static_one(party: Party) -> None:
    with pytest.raises(MemberIdRequired) as given:
        party.join(id_required=True)
    with pytest.raises(UnknownMember):
        party.join(given.value.member_id, "a")
    joined = party.join("", "a")
    assert joined.result().generation == 1


def test_a_full_group_takes_a_static_member_back() -> None:
    party = Party(size_max=2)
    party.stable("a", "b")
    assert party.join("", "b").done
