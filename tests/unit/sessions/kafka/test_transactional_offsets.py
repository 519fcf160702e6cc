"""Offsets that are committed in transactions: there with the commit, gone with the abort."""

from pathlib import Path

import pytest

from millstream.broker.consumer_groups import Heartbeat
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.unit.sessions.kafka.transacting import Teller

NONE = ErrorCode.NONE


@pytest.fixture
def teller(tmp_path: Path) -> Teller:
    teller = Teller(str(tmp_path / "metadata"))
    teller.create("orders", 2)
    return teller


def plain_commit(teller: Teller, group: str, offset: int) -> None:
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[place])
    answer = teller.ask(OFFSET_COMMIT, OffsetCommitRequest(group_id=group, topics=[topic]), 8)
    assert answer.topics[0].partitions[0].error_code == NONE


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_they_go_with_the_decision(teller: Teller, commit: bool, crash: bool) -> None:
    plain_commit(teller, "g", 3)
    who = teller.open()
    assert teller.commit_offset(who, "g", 7, note="seven") == NONE
    if crash:
        teller.again()
    assert teller.committed("g") == (NONE, 3)
    assert teller.committed("g", stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    teller.done(who, commit=commit)
    if crash:
        teller.again()
    assert teller.committed("g", stable=True) == (NONE, 7 if commit else 3)
    assert teller.committed("other", stable=True) == (NONE, -1)


def test_a_restart_does_not_take_a_later_commit_back(teller: Teller) -> None:
    who = teller.open()
    teller.commit_offset(who, "g", 7)
    teller.done(who)
    plain_commit(teller, "g", 9)
    teller.again()
    assert teller.committed("g") == (NONE, 9)


def test_clients_of_before_add_the_group_first(teller: Teller) -> None:
    who = teller.open()
    assert teller.commit_offset(who, "g", 1, version=3) == ErrorCode.INVALID_TXN_STATE
    assert teller.commit_offset(who, "g", 1, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    assert teller.add_group(who, "") == ErrorCode.INVALID_GROUP_ID
    assert teller.add_group(who, "g") == NONE
    assert teller.commit_offset(who, "g", 1, version=3) == NONE
    assert teller.commit_offset(who, "h", 1, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    teller.again()
    assert teller.commit_offset(who, "g", 2, version=3) == NONE
    assert teller.end(who, version=3).error_code == NONE
    assert teller.committed("g") == (NONE, 2)


def test_members_that_are_none_are_refused(teller: Teller) -> None:
    who = teller.open()
    assert teller.commit_offset(who, "g", 1, generation_id=3, member_id="m") == ErrorCode.ILLEGAL_GENERATION
    assert teller.commit_offset(who, "", 1) == ErrorCode.INVALID_GROUP_ID
    assert teller.commit_offset(who, "g", 1, note="x" * 5000) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert teller.committed("g", stable=True) == (NONE, -1)


def test_members_of_consumer_groups_show_their_epochs(teller: Teller) -> None:
    who = teller.open()
    joining = Heartbeat(
        member_id="m", epoch=0, rebalance_timeout_ms=1000, topics=frozenset({"orders"}), owned=frozenset()
    )
    epoch = teller.wait(teller.broker.groups.beat("g", joining)).epoch
    stale = teller.commit_offset(who, "g", 1, generation_id=epoch + 1, member_id="m")
    assert stale == ErrorCode.ILLEGAL_GENERATION, "no version of this API knows STALE_MEMBER_EPOCH"
    assert teller.commit_offset(who, "g", 1, generation_id=epoch, member_id="m") == NONE


def test_too_much_text_for_one_transaction(teller: Teller) -> None:
    who = teller.open()
    codes = [teller.commit_offset(who, f"g{n}", 1, note="x" * 4000) for n in range(264)]
    assert set(codes) == {NONE, ErrorCode.POLICY_VIOLATION}
    assert codes.index(ErrorCode.POLICY_VIOLATION) == 262
    teller.done(who)
    assert teller.committed("g261") == (NONE, 1)
    assert teller.committed("g262") == (NONE, -1)


def test_two_transactions_of_one_group(teller: Teller) -> None:
    first = teller.open()
    teller.commit_offset(first, "g", 5)
    teller.name = "other"
    second = teller.open()
    teller.commit_offset(second, "g", 6)
    teller.done(second)
    assert teller.committed("g", stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert teller.committed("g") == (NONE, 6)
    teller.name = "teller"
    teller.done(first, commit=False)
    assert teller.committed("g", stable=True) == (NONE, 6)


def test_a_deleted_topic_takes_them_along(teller: Teller) -> None:
    who = teller.open()
    teller.commit_offset(who, "g", 5)
    teller.wait(teller.broker.delete_topic(teller.topic()))
    teller.again()
    teller.create("orders")
    assert teller.committed("g", stable=True) == (NONE, -1)
    teller.done(who)
    assert teller.committed("g", stable=True) == (NONE, -1)
