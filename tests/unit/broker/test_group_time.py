"""What a group does as time passes: sessions, rebalance and sync time-outs, and that every wait has an end."""

import pytest

from millstream.broker.errors import RebalanceInProgress, UnknownMember
from millstream.broker.group import GroupState
from tests.unit.broker.members import REBALANCE_MS, SESSION_MS, Party

NEW_MEMBER_MS = 5 * 60 * 1000


@pytest.fixture
def party() -> Party:
    return Party()


def test_a_heartbeat_keeps_a_member(party: Party) -> None:
    first = party.stable(None)[0]
    for _ in range(10):
        party.pass_ms(SESSION_MS - 1)
        party.beat(first)
    assert list(party.group.members) == [first.member_id]


@pytest.mark.parametrize("count", [1, 2])
def test_a_silent_member_goes_when_its_session_ends(party: Party, count: int) -> None:
    silent = party.stable(*[None] * count)
    party.pass_ms(SESSION_MS - 1)
    assert party.state() is GroupState.STABLE
    party.pass_ms(1)
    assert (party.state(), party.group.members) == (GroupState.EMPTY, {})
    assert not party.runtime.timers
    with pytest.raises(UnknownMember):
        party.beat(silent[0])


def test_the_end_of_a_session_makes_the_others_join_again(party: Party) -> None:
    first, second = party.stable(None, None)
    party.pass_ms(SESSION_MS - 1)
    party.beat(second)
    party.pass_ms(1)
    with pytest.raises(RebalanceInProgress):
        party.beat(second)
    joined = party.join(second.member_id).result()
    assert (joined.generation, joined.leader_id) == (first.generation + 1, second.member_id)


def test_joining_again_renews_a_session(party: Party) -> None:
    leader, follower = party.stable(None, None)
    party.pass_ms(SESSION_MS - 1)
    party.join(leader.member_id)
    party.join(follower.member_id)
    party.pass_ms(SESSION_MS - 1)
    assert len(party.group.members) == 2


def test_a_shorter_session_that_a_member_asks_for_is_kept_to(party: Party) -> None:
    first = party.stable(None)[0]
    joined = party.join(first.member_id, session_ms=6000).result()
    party.sync(joined)
    party.pass_ms(5999)
    party.beat(joined)
    party.pass_ms(6000)
    assert party.state() is GroupState.EMPTY


def test_a_member_that_waits_for_others_is_not_taken_for_dead(party: Party) -> None:
    first, second = party.stable(None, None)
    waiting = party.join(first.member_id)
    for _ in range(REBALANCE_MS // SESSION_MS - 1):
        party.pass_ms(SESSION_MS - 1)
        with pytest.raises(RebalanceInProgress):
            party.beat(second)
    assert not waiting.done
    assert len(party.group.members) == 2


def test_those_who_do_not_join_again_in_time_are_removed(party: Party) -> None:
    first, late = party.stable(None, None)
    waiting = party.join(first.member_id)
    for _ in range(REBALANCE_MS // 5000):
        assert not waiting.done
        with pytest.raises(RebalanceInProgress):
            party.beat(late)
        party.pass_ms(5000)
    assert waiting.result().members == ((first.member_id, None, b"topics"),)
    with pytest.raises(UnknownMember):
        party.join(late.member_id)


def test_the_longest_rebalance_timeout_of_all_members_counts(party: Party) -> None:
    first = party.stable(None, rebalance_ms=20_000, session_ms=200_000)[0]
    second = party.join(rebalance_ms=90_000, session_ms=200_000)
    party.pass_ms(89_999)
    assert not second.done
    party.pass_ms(1)
    assert second.result().generation == first.generation + 1
    assert list(party.group.members) == [second.result().member_id]


def test_a_new_member_that_waits_is_kept_for_five_minutes_and_no_longer(party: Party) -> None:
    first = party.stable(None, rebalance_ms=10 * NEW_MEMBER_MS, session_ms=20 * NEW_MEMBER_MS)[0]
    waiting = party.join()
    party.pass_ms(NEW_MEMBER_MS - 1)
    assert not waiting.done
    party.pass_ms(1)
    with pytest.raises(UnknownMember):
        waiting.result()
    assert party.join(first.member_id).done


def test_a_leader_that_never_assigns_is_removed(party: Party) -> None:
    leader, follower = party.stable(None, None)
    answers = [party.join(leader.member_id), party.join(follower.member_id)]
    waiting = party.sync(answers[1].result())
    for _ in range(REBALANCE_MS // 5000):
        assert not waiting.done
        party.beat(answers[0].result())
        party.pass_ms(5000)
    with pytest.raises(RebalanceInProgress):
        waiting.result()
    assert list(party.group.members) == [follower.member_id]
    assert party.join(follower.member_id).result().leader_id == follower.member_id


def test_a_follower_that_waits_for_its_assignment_is_not_taken_for_dead(party: Party) -> None:
    leader, follower = party.stable(None, None)
    answers = [party.join(leader.member_id), party.join(follower.member_id)]
    waiting = party.sync(answers[1].result())
    for _ in range(5):
        party.pass_ms(SESSION_MS - 1)
        party.beat(answers[0].result())
    party.sync(answers[0].result())
    assert waiting.result().content == follower.member_id.encode()


def test_who_does_not_ask_for_its_assignment_is_removed_even_if_it_lives(party: Party) -> None:
    """Otherwise nobody would read what the leader has given to it."""
    leader, follower = party.stable(None, None)
    again = party.join(leader.member_id)
    party.join(follower.member_id)
    party.sync(again.result())
    assert party.state() is GroupState.STABLE
    for _ in range(9):
        party.pass_ms(REBALANCE_MS // 10)
        for member_id in (leader.member_id, follower.member_id):
            party.group.heartbeat(member_id, None, again.result().generation)
    party.pass_ms(REBALANCE_MS // 10)
    assert party.state() is GroupState.PREPARING
    assert list(party.group.members) == [leader.member_id]


def test_nobody_syncs(party: Party) -> None:
    party.stable(None, None, None, session_ms=10 * REBALANCE_MS)
    for member_id in list(party.group.members):
        party.join(member_id, session_ms=10 * REBALANCE_MS)
    assert party.state() is GroupState.COMPLETING
    party.pass_ms(REBALANCE_MS)
    assert party.state() is GroupState.EMPTY
    assert not party.runtime.timers


def test_a_rebalance_timeout_of_nothing_does_not_keep_the_server_busy(party: Party) -> None:
    first, _ = party.stable("a", "b", rebalance_ms=0)
    party.group.leave("", "b")
    party.pass_ms(SESSION_MS - 1)
    assert party.state() is GroupState.PREPARING
    assert party.join(first.member_id, "a", rebalance_ms=0).done
