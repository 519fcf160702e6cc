"""How the members of a group come together: joining, syncing, the leader, the protocol, and rebalances."""

import dataclasses

import pytest

from millstream.broker.errors import (
    FencedInstance,
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from millstream.broker.group import GroupState, Joining, Protocol
from tests.unit.broker.members import REBALANCE_MS, SESSION_MS, Party, joining


@pytest.fixture
def party() -> Party:
    return Party()


def test_the_only_member_leads(party: Party) -> None:
    joined = party.join().result()
    assert joined.leader_id == joined.member_id
    assert joined.member_id.startswith("client-")
    assert (joined.generation, joined.protocol_type, joined.protocol_name) == (1, "consumer", "range")
    assert joined.members == ((joined.member_id, None, b"topics"),)
    assert party.state() is GroupState.COMPLETING
    assert party.sync(joined).result() == ("consumer", "range", joined.member_id.encode())
    assert party.state() is GroupState.STABLE


def test_a_second_member_makes_the_first_join_again(party: Party) -> None:
    first = party.stable(None)[0]
    second = party.join()
    assert party.state() is GroupState.PREPARING
    assert not second.done
    with pytest.raises(RebalanceInProgress):
        party.beat(first)
    again = party.join(first.member_id).result()
    assert again.generation == second.result().generation == first.generation + 1
    assert again.leader_id == second.result().leader_id == first.member_id
    assert [member_id for member_id, _, _ in again.members] == [first.member_id, second.result().member_id]
    assert second.result().members == ()


def test_a_follower_waits_for_the_leader_to_assign(party: Party) -> None:
    members = party.stable(None, None)
    third = party.join()
    leader, follower = [party.join(one.member_id) for one in members]
    waiting = party.sync(follower.result())
    assert not waiting.done
    party.sync(leader.result())
    assert waiting.result().content == follower.result().member_id.encode()
    assert party.sync(third.result()).result().content == third.result().member_id.encode()


def test_members_that_the_leader_forgets_are_assigned_nothing(party: Party) -> None:
    leader, follower = party.stable(None, None)
    answers = [party.join(leader.member_id), party.join(follower.member_id)]
    leader, follower = (answer.result() for answer in answers)
    party.group.sync(leader.member_id, None, leader.generation, "consumer", "range", {leader.member_id: b"all"})
    assert party.sync(follower).result().content == b""


def test_an_assignment_to_a_stranger_is_dropped(party: Party) -> None:
    joined = party.join().result()
    party.group.sync(joined.member_id, None, joined.generation, None, None, {"stranger": b"all"})
    assert party.sync(joined).result().content == b""


def test_many_join_at_once() -> None:
    party = Party(delay_ms=1000)
    answers = [party.join() for _ in range(300)]
    assert not any(answer.done for answer in answers)
    party.pass_ms(1000)
    joined = [answer.result() for answer in answers]
    assert len({one.member_id for one in joined}) == 300
    assert {(one.generation, one.leader_id) for one in joined} == {(1, joined[0].member_id)}
    assert [len(one.members) for one in joined] == [300] + [0] * 299


def test_the_first_rebalance_waits_for_its_delay_and_later_ones_do_not() -> None:
    party = Party(delay_ms=3000)
    first = party.join()
    party.pass_ms(2999)
    second = party.join()
    assert not first.done
    party.pass_ms(1)
    assert first.result().generation == second.result().generation == 1
    third = party.join()
    for joined in (first.result(), second.result()):
        party.join(joined.member_id)
    assert third.result().generation == 2


def test_a_group_whose_members_all_leave_in_the_initial_delay_becomes_empty() -> None:
    party = Party(delay_ms=3000)
    waiting = party.join()
    party.group.leave(next(iter(party.group.members)), None)
    with pytest.raises(UnknownMember):
        waiting.result()
    party.pass_ms(3000)
    assert party.state() is GroupState.EMPTY
    assert not party.runtime.timers
    late = party.join()
    party.pass_ms(3000)
    assert late.result().leader_id == late.result().member_id


# The leader


def test_when_the_leader_leaves_another_one_leads(party: Party) -> None:
    leader, follower = party.stable(None, None)
    party.group.leave(leader.member_id, None)
    joined = party.join(follower.member_id).result()
    assert joined.leader_id == follower.member_id
    assert joined.members == ((follower.member_id, None, b"topics"),)


def test_a_leader_that_does_not_join_again_is_followed_by_one_that_has(party: Party) -> None:
    _, second, third = party.stable(None, None, None)
    answers = [party.join(third.member_id, metadata=b"new"), party.join(second.member_id)]
    party.pass_ms(SESSION_MS)
    assert {answer.result().leader_id for answer in answers} == {second.member_id}


def test_a_leader_that_joins_again_forces_a_rebalance_and_a_follower_does_not(party: Party) -> None:
    leader, follower = party.stable(None, None)
    answer = party.join(follower.member_id).result()
    assert (answer.generation, answer.leader_id, answer.members) == (2, leader.member_id, ())
    assert party.state() is GroupState.STABLE
    assert not party.join(leader.member_id).done
    assert party.state() is GroupState.PREPARING


def test_a_follower_with_other_metadata_forces_a_rebalance(party: Party) -> None:
    leader, follower = party.stable(None, None)
    assert not party.join(follower.member_id, metadata=b"more topics").done
    joined = party.join(leader.member_id).result()
    assert {one: metadata for one, _, metadata in joined.members}[follower.member_id] == b"more topics"


def test_a_member_that_has_lost_its_answer_gets_it_again(party: Party) -> None:
    first = party.join().result()
    assert party.state() is GroupState.COMPLETING
    assert party.join(first.member_id).result() == first
    assert party.state() is GroupState.COMPLETING


def test_a_member_that_changes_before_the_assignment_makes_all_join_again(party: Party) -> None:
    leader, follower = party.stable(None, None)
    party.join(leader.member_id)
    joined = party.join(follower.member_id).result()
    waiting = party.sync(joined)
    assert not party.join(leader.member_id, metadata=b"changed").done
    with pytest.raises(RebalanceInProgress):
        waiting.result()
    assert party.join(follower.member_id).result().generation == 4


def test_a_second_request_to_join_replaces_the_first(party: Party) -> None:
    leader, follower = party.stable(None, None)
    abandoned = party.join(leader.member_id)
    answer = party.join(leader.member_id)
    with pytest.raises(RebalanceInProgress):
        abandoned.result()
    party.join(follower.member_id)
    assert answer.result().generation == 3


def test_a_second_request_to_sync_replaces_the_first(party: Party) -> None:
    leader, follower = party.stable(None, None)
    answers = [party.join(leader.member_id), party.join(follower.member_id)]
    abandoned = party.sync(answers[1].result())
    waiting = party.sync(answers[1].result())
    with pytest.raises(RebalanceInProgress):
        abandoned.result()
    party.sync(answers[0].result())
    assert waiting.result().content == follower.member_id.encode()


# Protocols


def test_the_protocol_with_most_votes_among_the_common_ones_is_chosen(party: Party) -> None:
    first = party.join(protocols=("sticky", "range", "roundrobin")).result()
    answers = [party.join(protocols=("range", "roundrobin")), party.join(protocols=("roundrobin", "range"))]
    joined = party.join(first.member_id, protocols=("sticky", "range", "roundrobin")).result()
    assert {answer.result().protocol_name for answer in answers} == {"range"}
    assert joined.protocol_name == "range"


def test_the_leader_is_told_what_each_member_says_under_the_chosen_protocol(party: Party) -> None:
    two = (Protocol("a", b"under a"), Protocol("b", b"under b"))
    first = party.join(protocols=("b",)).result()
    party.group.join(dataclasses.replace(joining(), protocols=two))
    joined = party.join(first.member_id, protocols=("b",)).result()
    assert [metadata for _, _, metadata in joined.members] == [b"topics", b"under b"]


@pytest.mark.parametrize(
    "request_",
    [
        joining(protocols=()),
        joining(protocol_type=""),
        joining(protocols=("other",)),
        joining(protocol_type="connect"),
    ],
)
def test_a_member_with_nothing_in_common_is_refused(party: Party, request_: Joining) -> None:
    party.stable(None, None)
    with pytest.raises(InconsistentProtocol):
        party.group.join(request_)
    assert party.state() is GroupState.STABLE
    assert len(party.group.members) == 2


def test_the_only_member_may_change_all_its_protocols(party: Party) -> None:
    first = party.stable(None)[0]
    assert party.join(first.member_id, protocols=("other",)).result().protocol_name == "other"


def test_an_empty_group_takes_another_kind_of_members(party: Party) -> None:
    first = party.stable(None)[0]
    party.group.leave(first.member_id, None)
    assert party.join(protocol_type="connect", protocols=("c",)).result().protocol_type == "connect"


def test_a_sync_under_another_protocol_is_refused(party: Party) -> None:
    joined = party.join().result()
    for protocol_type, protocol_name in (("connect", "range"), ("consumer", "sticky")):
        with pytest.raises(InconsistentProtocol):
            party.group.sync(joined.member_id, None, joined.generation, protocol_type, protocol_name, {})
    assert party.state() is GroupState.COMPLETING


# Who is not, or no longer, a member


def test_strangers_and_old_generations_are_refused_in_every_state(party: Party) -> None:
    leader, follower = party.stable(None, None)

    def refused() -> None:
        group = party.group
        for act in (
            lambda member_id, generation: group.heartbeat(member_id, None, generation),
            lambda member_id, generation: group.sync(member_id, None, generation, None, None, {}),
            lambda member_id, generation: group.check_commit(member_id, None, generation),
        ):
            with pytest.raises(UnknownMember):
                act("stranger", group.generation)
            for generation in (group.generation - 1, group.generation + 1, -1):
                with pytest.raises(IllegalGeneration):
                    act(leader.member_id, generation)
        with pytest.raises(UnknownMember):
            party.join("stranger")
        with pytest.raises(UnknownMember):
            group.leave("stranger", None)

    refused()
    answer = party.join(leader.member_id)
    assert party.state() is GroupState.PREPARING
    refused()
    party.join(follower.member_id)
    assert answer.done
    assert party.state() is GroupState.COMPLETING
    refused()


def test_commits_in_every_state(party: Party) -> None:
    party.group.check_commit("", None, -1)
    party.group.check_commit("anybody", None, -1)
    first = party.join().result()
    with pytest.raises(RebalanceInProgress):
        party.group.check_commit(first.member_id, None, first.generation)
    party.group.check_commit(first.member_id, None, first.generation, in_transaction=True)
    party.sync(first)
    party.group.check_commit(first.member_id, None, first.generation)
    with pytest.raises(UnknownMember):
        party.group.check_commit("", None, -1)
    party.join()
    party.group.check_commit(first.member_id, None, first.generation)  # what it has read until now
    party.group.leave(first.member_id, None)
    with pytest.raises(UnknownMember):
        party.group.check_commit(first.member_id, None, first.generation)


def test_a_sync_while_the_group_gathers_is_refused(party: Party) -> None:
    first = party.stable(None)[0]
    party.join()
    with pytest.raises(RebalanceInProgress):
        party.sync(first)


def test_one_who_leaves_while_it_waits_is_answered(party: Party) -> None:
    leader, follower = party.stable(None, None)
    joining_ = party.join(leader.member_id)
    party.group.leave(leader.member_id, None)
    with pytest.raises(UnknownMember):
        joining_.result()
    waiting = party.join(follower.member_id)
    assert waiting.result().leader_id == follower.member_id
    assert len(party.group.members) == 1


def test_the_last_one_to_leave_leaves_an_empty_group_without_timers(party: Party) -> None:
    for one in party.stable(None, None, None):
        party.group.leave(one.member_id, None)
    assert party.state() is GroupState.EMPTY
    assert (party.group.leader_id, party.group.protocol_name, party.group.members) == (None, None, {})
    assert not party.runtime.timers


# Ids that are given before joining (KIP-394)


def given_id(party: Party) -> str:
    with pytest.raises(MemberIdRequired) as given:
        party.join(id_required=True)
    return given.value.member_id


def test_a_member_comes_back_with_the_id_it_was_given(party: Party) -> None:
    member_id = given_id(party)
    assert party.state() is GroupState.EMPTY
    assert party.join(member_id, id_required=True).result().member_id == member_id
    assert len(party.runtime.timers) == 2  # its session's and that of its sync


def test_an_id_that_was_not_given_is_unknown(party: Party) -> None:
    with pytest.raises(UnknownMember):
        party.join("made up", id_required=True)


def test_an_id_is_forgotten_when_nobody_comes_back_with_it(party: Party) -> None:
    member_id = given_id(party)
    party.pass_ms(SESSION_MS)
    with pytest.raises(UnknownMember):
        party.join(member_id, id_required=True)
    assert not party.runtime.timers


def test_a_rebalance_waits_for_ids_that_were_given_but_not_longer_than_their_session(party: Party) -> None:
    first = party.stable(None)[0]
    given_id(party)
    answer = party.join(first.member_id)
    assert not answer.done
    party.pass_ms(SESSION_MS)
    assert answer.result().generation == 2


def test_one_who_was_given_an_id_may_leave(party: Party) -> None:
    first = party.stable(None)[0]
    member_id = given_id(party)
    answer = party.join(first.member_id)
    party.group.leave(member_id, None)
    assert answer.done
    with pytest.raises(UnknownMember):
        party.group.leave(member_id, None)


def test_an_id_that_was_given_cannot_be_used_with_an_instance_id(party: Party) -> None:
    static = party.stable("a")[0]
    member_id = given_id(party)
    with pytest.raises(FencedInstance):
        party.join(member_id, "a")
    with pytest.raises(UnknownMember):
        party.join(member_id, "b")
    assert list(party.group.members) == [static.member_id]


# The size of a group


def test_a_full_group_takes_no_more(party: Party) -> None:
    party = Party(size_max=2)
    first, second = party.stable(None, None)
    with pytest.raises(GroupFull):
        party.join()
    assert party.state() is GroupState.STABLE
    party.group.leave(first.member_id, None)
    answer = party.join()
    party.join(second.member_id)
    assert answer.done


def test_ids_that_were_given_count(party: Party) -> None:
    party = Party(size_max=1)
    given_id(party)
    with pytest.raises(GroupFull):
        party.join()
    party.pass_ms(SESSION_MS)
    assert party.join().done


def test_close_answers_everybody_and_stops_all_timers(party: Party) -> None:
    first, second = party.stable(None, None)
    given_id(party)
    answer = party.join(first.member_id)
    party.group.close()
    assert party.state() is GroupState.DEAD
    with pytest.raises(UnknownMember):
        answer.result()
    with pytest.raises(UnknownMember):
        party.beat(second)
    assert not party.runtime.timers
    party.pass_ms(10 * REBALANCE_MS)
