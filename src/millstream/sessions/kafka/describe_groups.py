"""DescribeGroups: versions 0 to 6. Every group asked for gets an entry: librdkafka aborts on an empty list.

A consumer group is none that this API knows: ConsumerGroupDescribe describes it.

Where clients of another protocol read under the group's name, they are shown as its members, and their protocol as
the group's assignor.
"""

from collections.abc import Sequence
from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.any_group import GroupState
from millstream.broker.group import Group
from millstream.broker.holders import Holder
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka import authorized_operations
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.consumer_assignment import encode_assignment
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.holders import PROTOCOL, assignors, by_client
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

__all__ = ["handle"]

_NOT_FOUND_SINCE: Final = 6


def handle(call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe groups and their members; a group that does not exist is Dead."""
    groups = [_described(call, group_id) for group_id in dict.fromkeys(request.groups)]
    response = DescribeGroupsResponse(groups=groups)
    if request.include_authorized_operations:
        for group in response.groups:
            if not group.error_code:
                group.authorized_operations = authorized_operations.of_group(call, group.group_id)
    return response


def _described(call: Call, group_id: str) -> DescribedGroup:
    try:
        require(call, Operation.DESCRIBE, ResourceType.GROUP, group_id)
    except MillstreamError as error:
        return DescribedGroup(error_code=code_of(error), group_id=group_id)
    group = call.broker.groups.find(group_id)
    others = call.broker.holders.of(group_id, besides=PROTOCOL)
    if group is not None and not isinstance(group, Group):
        return _missing(call, group_id, f"the group {group_id} is not a classic group")
    if group is not None and group.members:
        described = _group(group)
    elif group is not None or others or group_id in call.broker.holders.names():
        described = DescribedGroup(
            group_id=group_id,
            group_state=GroupState.EMPTY.value,
            protocol_type=(group.protocol_type if group is not None else None) or "consumer",
        )
    else:
        return _missing(call, group_id, f"there is no group {group_id}")
    if others:
        _add_others(described, others)
    return described


def _missing(call: Call, group_id: str, reason: str) -> DescribedGroup:
    told = call.version >= _NOT_FOUND_SINCE
    return DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if told else ErrorCode.NONE,
        error_message=reason if told else None,
        group_id=group_id,
        group_state=GroupState.DEAD.value,
    )


def _group(group: Group) -> DescribedGroup:
    settled = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "consumer",
        protocol_data=(group.protocol_name or "") if settled else "",
        members=[
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if settled else b"",
                member_assignment=member.assignment if settled else b"",
            )
            for member in group.members.values()
        ],
    )


def _add_others(described: DescribedGroup, holders: Sequence[Holder]) -> None:
    """Add the clients of other protocols that read under a group's name."""
    if not described.members:
        described.group_state, described.protocol_type = GroupState.STABLE.value, "consumer"
    described.protocol_data = assignors(described.protocol_data, holders)
    described.members += [
        DescribedGroupMember(
            member_id=client.member_id,
            group_instance_id=None,
            client_id=client.client_id,
            client_host=client.client_host,
            member_metadata=b"",
            member_assignment=encode_assignment(partitions),
        )
        for client, partitions in by_client(holders).items()
    ]
