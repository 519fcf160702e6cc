"""What a group answers to members that speak out of turn, and to commits that it cannot take."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from millstream.wire.kafka.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from millstream.wire.kafka.messages.join_group import JOIN_GROUP, JoinGroupRequest, JoinGroupRequestProtocol
from millstream.wire.kafka.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from millstream.wire.kafka.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.wire.kafka.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from millstream.wire.kafka.messages.sync_group import SYNC_GROUP, SyncGroupRequest, SyncGroupRequestAssignment
from tests.conformance.raw.conftest import Connect
from tests.conformance.raw.log_client import LogClient


class Member:
    """One member of a group, on a connection of its own, step by step."""

    def __init__(self, client: LogClient, group: str, instance_id: str | None = None) -> None:
        self.client, self.group, self.instance_id = client, group, instance_id
        self.id = ""
        self.generation = -1

    def join_request(self, **fields: Any) -> JoinGroupRequest:
        given = {
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"m")],
            **fields,
        }
        return JoinGroupRequest(group_id=self.group, member_id=self.id, group_instance_id=self.instance_id, **given)

    def ask_to_join(self, **fields: Any) -> Any:
        return self.client.call(JOIN_GROUP, 9, self.join_request(**fields))

    def join(self) -> Any:
        """Join as KIP-394 wants it: a new member comes back with the id that it is given."""
        answer = self.ask_to_join()
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            answer = self.ask_to_join()
        assert answer.error_code == 0
        self.id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> Any:
        given = [
            SyncGroupRequestAssignment(member_id=member, assignment=content)
            for member, content in (assignments or {}).items()
        ]
        own: dict[str, Any] = {"generation_id": self.generation, "member_id": self.id, **fields}
        request = SyncGroupRequest(group_id=self.group, group_instance_id=self.instance_id, assignments=given, **own)
        return self.client.call(SYNC_GROUP, 5, request)

    def heartbeat(self, **fields: Any) -> int:
        own: dict[str, Any] = {"generation_id": self.generation, "member_id": self.id, **fields}
        request = HeartbeatRequest(group_id=self.group, group_instance_id=self.instance_id, **own)
        code: int = self.client.call(HEARTBEAT, 4, request).error_code
        return code

    def commit(self, topic: str, offset: int, note: str = "", partition: int = 0, **fields: Any) -> int:
        place = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=note
        )
        own: dict[str, Any] = {
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance_id,
            **fields,
        }
        topics = [OffsetCommitRequestTopic(name=topic, partitions=[place])]
        answer = self.client.call(OFFSET_COMMIT, 9, OffsetCommitRequest(group_id=self.group, topics=topics, **own))
        code: int = answer.topics[0].partitions[0].error_code
        return code

    def leave(self) -> int:
        members = [MemberIdentity(member_id=self.id, group_instance_id=self.instance_id)]
        answer = self.client.call(LEAVE_GROUP, 5, LeaveGroupRequest(group_id=self.group, members=members))
        assert answer.error_code == 0
        code: int = answer.members[0].error_code
        return code


@pytest.fixture
def member(connect: Connect, unique: Callable[[str], str]) -> Iterator[Member]:
    """The only member of a group, as its leader in a stable generation."""
    alone = Member(connect(), unique("raw-group"))
    joined = alone.join()
    assert joined.leader == alone.id
    assert [one.metadata for one in joined.members] == [b"m"]
    assert alone.sync({alone.id: b"work"}).assignment == b"work"
    yield alone
    alone.leave()


def committed(client: LogClient, group: str) -> dict[tuple[str, int], tuple[int, str | None]]:
    """All that a group has committed."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    [answer] = client.call(OFFSET_FETCH, 9, request).groups
    return {
        (topic.name, one.partition_index): (one.committed_offset, one.metadata)
        for topic in answer.topics
        for one in topic.partitions
    }


def test_members_that_are_none(member: Member) -> None:
    assert member.heartbeat() == 0
    assert member.heartbeat(member_id="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.heartbeat(generation_id=member.generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert member.heartbeat(generation_id=member.generation - 1) == ErrorCode.ILLEGAL_GENERATION
    assert member.sync(member_id="nobody").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.sync(generation_id=99).error_code == ErrorCode.ILLEGAL_GENERATION
    assert member.sync(protocol_name="sticky").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert member.sync().assignment == b"work"


def test_joins_that_are_refused(member: Member, connect: Connect) -> None:
    other = Member(connect(), member.group)
    other_protocol = [JoinGroupRequestProtocol(name="sticky", metadata=b"")]
    assert other.ask_to_join(protocols=other_protocol).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert other.ask_to_join(protocol_type="connect").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert other.ask_to_join(protocols=[]).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    for timeout_ms in (-1, 0, 5999, 1_800_001):
        refused = other.ask_to_join(session_timeout_ms=timeout_ms)
        assert refused.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    other.id = "nobody"
    assert other.ask_to_join().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert Member(connect(), "").ask_to_join().error_code == ErrorCode.INVALID_GROUP_ID
    assert member.heartbeat() == 0, "none of this has disturbed the group"


def test_a_second_member_makes_the_first_join_again(member: Member, connect: Connect) -> None:
    second = Member(connect(), member.group)
    second.id = second.ask_to_join().member_id
    sent = second.client.send(JOIN_GROUP, 9, second.join_request())
    while member.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    assert member.sync().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    before = member.generation
    joined = member.join()
    assert joined.generation_id == before + 1
    assert {one.member_id for one in joined.members} == {member.id, second.id}
    followed = second.client.receive(JOIN_GROUP, 9, sent)
    assert (followed.error_code, followed.leader, followed.members) == (0, member.id, [])
    second.generation = followed.generation_id
    assert member.sync({member.id: b"left", second.id: b"right"}).assignment == b"left"
    assert second.sync().assignment == b"right"
    assert second.leave() == 0
    assert second.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_whoever_takes_over_a_static_id_fences_the_other(connect: Connect, unique: Callable[[str], str]) -> None:
    group = unique("raw-group")
    first = Member(connect(), group, "static")
    first.join()
    first.sync({first.id: b"work"})
    second = Member(connect(), group, "static")
    joined = second.ask_to_join()
    assert (joined.error_code, joined.generation_id) == (0, first.generation)
    assert joined.skip_assignment
    second.id, second.generation = joined.member_id, joined.generation_id
    assert second.id != first.id
    assert second.sync().assignment == b"work"
    assert first.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert second.heartbeat() == 0
    assert second.leave() == 0


def test_commits(member: Member, client: LogClient, topic: str) -> None:
    note = "späti \u2713"
    assert member.commit(topic, 5, note) == 0
    assert committed(client, member.group) == {(topic, 0): (5, note)}
    stale = member.generation + 1
    assert member.commit(topic, 6, generation_id_or_member_epoch=stale) == ErrorCode.ILLEGAL_GENERATION
    assert member.commit(topic, 6, member_id="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.commit(topic, 6, "n" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert member.commit(topic, 6, partition=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert member.commit("no-such-topic", 6) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # Someone who is not a member cannot commit past those who are.
    outsider = Member(client, member.group)
    assert outsider.commit(topic, 6) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(client, member.group) == {(topic, 0): (5, note)}
    assert member.commit(topic, 7, "n" * 4096) == 0
    assert committed(client, member.group) == {(topic, 0): (7, "n" * 4096)}
    assert member.leave() == 0
    assert outsider.commit(topic, 8) == 0, "a group without members takes commits from anyone"
    assert outsider.commit(topic, 9, generation_id_or_member_epoch=3) != 0


def test_offsets_go_with_their_topic(client: LogClient, topic: str, unique: Callable[[str], str]) -> None:
    outsider = Member(client, unique("raw-group"))
    assert outsider.commit(topic, 5) == 0
    client.call(DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[topic]))
    assert committed(client, outsider.group) == {}
    client.create_topic(topic)
    assert committed(client, outsider.group) == {}
