"""What tests ask of groups of both kinds: the group is "g", and its topic "orders", where nothing else is said."""

from collections.abc import Iterable
from typing import Any

from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from millstream.wire.kafka.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from millstream.wire.kafka.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from millstream.wire.kafka.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.wire.kafka.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from millstream.wire.kafka.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.unit.sessions.kafka.conversation import Conversation

__all__ = [
    "SUBSCRIBED_TO_ORDERS",
    "commit",
    "committed",
    "delete_offsets",
    "fetch",
    "join_request",
    "leave",
    "listed",
]

SUBSCRIBED_TO_ORDERS = bytes.fromhex("0000 00000001 0006") + b"orders" + bytes.fromhex("ffffffff")
BY_NAME = 9
"""The last version of OffsetCommit and OffsetFetch that names topics, and the first that knows of epochs."""


def join_request(member_id: str = "", instance_id: str | None = None, group_id: str = "g") -> JoinGroupRequest:
    """A request to join by the classic protocol."""
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED_TO_ORDERS)],
    )


def leave(talk: Conversation, *members: tuple[str, str | None]) -> list[ErrorCode]:
    """Let members go, each with its id and its static id; gives their codes."""
    identities = [MemberIdentity(member_id=one, group_instance_id=instance_id) for one, instance_id in members]
    answer = talk.ask(LEAVE_GROUP, LeaveGroupRequest(group_id="g", members=identities))
    return [ErrorCode(one.error_code) for one in answer.members]


def listed(talk: Conversation, *types: str, states: Iterable[str] = ()) -> set[tuple[str, str, str]]:
    """The id, type and protocol's type of each group that is listed."""
    request = ListGroupsRequest(types_filter=list(types), states_filter=list(states))
    groups = talk.ask(LIST_GROUPS, request).groups
    return {(one.group_id, one.group_type, one.protocol_type) for one in groups}


def commit(
    talk: Conversation,
    offset: int = 5,
    *,
    member_id: str = "",
    epoch: int = -1,
    note: str | None = "",
    index: int = 0,
    version: int = BY_NAME,
) -> ErrorCode:
    """Commit an offset, as a member of a generation or epoch if one is told."""
    partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=note)
    request = OffsetCommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )
    return ErrorCode(talk.ask(OFFSET_COMMIT, request, version).topics[0].partitions[0].error_code)


def fetch(talk: Conversation, member_id: str | None = None, epoch: int = -1) -> Any:
    """What is answered for the group to who asks what is committed in two partitions."""
    topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0, 1])]
    group = OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch, topics=topics)
    return talk.ask(OFFSET_FETCH, OffsetFetchRequest(groups=[group]), BY_NAME).groups[0]


def committed(talk: Conversation) -> dict[int, int]:
    """What is committed, by partition."""
    return {one.partition_index: one.committed_offset for one in fetch(talk).topics[0].partitions}


def delete_offsets(talk: Conversation, *names: str) -> list[ErrorCode]:
    """Delete what is committed in the first partition of topics; gives the group's code, or those of the topics."""
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in names]
    answer = talk.ask(OFFSET_DELETE, OffsetDeleteRequest(group_id="g", topics=topics))
    codes = [one.partitions[0].error_code for one in answer.topics]
    return [ErrorCode(code) for code in ([answer.error_code] if answer.error_code else codes)]
