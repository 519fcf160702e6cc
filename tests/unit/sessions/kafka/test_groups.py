"""The life of a consumer group as its members' requests and answers; the rules are tested with the broker."""

from typing import Any

import pytest

from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from millstream.wire.kafka.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from millstream.wire.kafka.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from millstream.wire.kafka.messages.join_group import JOIN_GROUP
from millstream.wire.kafka.messages.sync_group import SYNC_GROUP, SyncGroupRequest, SyncGroupRequestAssignment
from tests.unit.sessions.kafka.conversation import Conversation
from tests.unit.sessions.kafka.group_requests import (
    SUBSCRIBED_TO_ORDERS,
    commit,
    committed,
    delete_offsets,
    join_request,
    leave,
    listed,
)


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    talk.create("orders", 2)
    return talk


def joined(talk: Conversation) -> Any:
    """The only member of a stable group."""
    given = talk.ask(JOIN_GROUP, join_request())
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert given.member_id
    answer = talk.ask(JOIN_GROUP, join_request(given.member_id))
    assert answer.error_code == ErrorCode.NONE
    sync = SyncGroupRequest(
        group_id="g",
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"all of it")],
    )
    synced = talk.ask(SYNC_GROUP, sync)
    assert (synced.error_code, synced.protocol_name, synced.assignment) == (ErrorCode.NONE, "range", b"all of it")
    return answer


def beat(talk: Conversation, member_id: str, generation: int) -> int:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id, group_instance_id=None)
    return int(talk.ask(HEARTBEAT, request).error_code)


def test_a_member_from_its_first_request_to_its_last(talk: Conversation) -> None:
    member = joined(talk)
    assert (member.generation_id, member.leader, member.protocol_name) == (1, member.member_id, "range")
    assert [(one.member_id, one.metadata) for one in member.members] == [(member.member_id, SUBSCRIBED_TO_ORDERS)]
    assert beat(talk, member.member_id, 1) == ErrorCode.NONE
    assert beat(talk, member.member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    assert beat(talk, "stranger", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(talk, 7, member_id=member.member_id, epoch=member.generation_id) == ErrorCode.NONE
    assert commit(talk, 8) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(talk) == {0: 7, 1: -1}
    assert leave(talk, (member.member_id, None)) == [ErrorCode.NONE]
    assert leave(talk, (member.member_id, None)) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert beat(talk, member.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(talk, 9) == ErrorCode.NONE


@pytest.mark.parametrize("version", range(4))
def test_older_clients_join_without_being_given_an_id_first(talk: Conversation, version: int) -> None:
    answer = talk.ask(JOIN_GROUP, join_request(), version)
    assert (answer.error_code, answer.generation_id, answer.leader) == (ErrorCode.NONE, 1, answer.member_id)


def test_in_version_0_the_session_is_the_rebalance_timeout(talk: Conversation) -> None:
    first = talk.ask(JOIN_GROUP, join_request(), 0)
    pending = talk.send(JOIN_GROUP, join_request(), 0)
    assert pending is not None
    talk.pass_ms(10_000)
    assert pending.result().leader == pending.result().member_id != first.member_id


def test_a_refused_join_has_no_protocol(talk: Conversation) -> None:
    request = join_request()
    request.session_timeout_ms = 1
    for version, name in ((6, ""), (7, None), (9, None)):
        answer = talk.ask(JOIN_GROUP, request, version)
        assert (answer.error_code, answer.protocol_name) == (ErrorCode.INVALID_SESSION_TIMEOUT, name)


def test_a_static_leader_of_version_9_is_told_to_skip_the_assignment(talk: Conversation) -> None:
    first = talk.ask(JOIN_GROUP, join_request("", "i"))
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=first.member_id, group_instance_id="i")
    talk.ask(SYNC_GROUP, sync)
    for version, skip in ((9, True), (8, False)):
        back = talk.ask(JOIN_GROUP, join_request("", "i"), version)
        assert (back.error_code, back.generation_id, back.skip_assignment) == (ErrorCode.NONE, 1, skip)
        assert (back.leader == back.member_id) is skip
    assert talk.ask(SYNC_GROUP, sync).error_code == ErrorCode.FENCED_INSTANCE_ID


def test_offsets_that_are_refused_one_by_one(talk: Conversation) -> None:
    assert commit(talk, index=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(talk, note="ä" * 2048) == ErrorCode.NONE
    assert commit(talk, note="ä" * 2048 + "x") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    talk.store.failing = True
    assert commit(talk, 99) == ErrorCode.KAFKA_STORAGE_ERROR
    assert committed(talk) == {0: 5, 1: -1}


def test_what_is_described_and_listed(talk: Conversation) -> None:
    member = joined(talk)
    described, unknown = talk.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g", "none"])).groups
    assert (described.group_state, described.protocol_type, described.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    [one] = described.members
    assert (one.member_id, one.client_id, one.client_host) == (member.member_id, "client", "/127.0.0.1")
    assert (one.member_metadata, one.member_assignment) == (SUBSCRIBED_TO_ORDERS, b"all of it")
    assert (unknown.group_state, unknown.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    older = talk.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["none"]), 5).groups[0]
    assert (older.group_state, older.error_code) == ("Dead", ErrorCode.NONE)
    shown = {("g", "classic", "consumer")}
    assert listed(talk) == listed(talk, "Classic", states=["stable"]) == shown
    assert listed(talk, states=["Empty"]) == listed(talk, "consumer") == set()


def test_a_group_with_members_is_not_deleted(talk: Conversation) -> None:
    joined(talk)
    request = DeleteGroupsRequest(groups_names=["g", "none", ""])
    codes = [result.error_code for result in talk.ask(DELETE_GROUPS, request).results]
    assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID]
    talk.pass_ms(10_000)
    assert talk.ask(DELETE_GROUPS, DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == ErrorCode.NONE


def test_offsets_of_a_topic_that_members_subscribe_to_are_not_deleted(talk: Conversation) -> None:
    assert delete_offsets(talk, "orders") == [ErrorCode.GROUP_ID_NOT_FOUND]
    commit(talk)
    joined(talk)
    assert delete_offsets(talk, "orders") == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    talk.pass_ms(10_000)
    assert delete_offsets(talk, "orders") == [ErrorCode.NONE]
    assert committed(talk) == {0: -1, 1: -1}
