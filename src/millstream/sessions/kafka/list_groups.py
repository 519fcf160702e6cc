"""ListGroups: versions 0 to 5. From 4 on by state, from 5 on by type, classic or consumer.

Subscriptions and groups of other protocols are listed as well: a name is one position for all.
"""

from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.any_group import GroupKind, GroupState
from millstream.sessions.kafka.authorization import may, may_with_cluster
from millstream.sessions.kafka.call import Call
from millstream.wire.kafka.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

__all__ = ["handle"]

_CONSUMER: Final = "consumer"


def handle(call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    """List groups."""
    states = {state.lower() for state in request.states_filter}
    types = {one.lower() for one in request.types_filter}
    response = ListGroupsResponse()
    groups, others = call.broker.groups, call.broker.holders.names()
    sees_all = may_with_cluster(call, Operation.DESCRIBE)
    for group_id in sorted({*groups.ids(), *others}):
        if not sees_all and not may(call, Operation.DESCRIBE, ResourceType.GROUP, group_id):
            continue
        group = groups.find(group_id)
        state = GroupState.EMPTY if group is None else group.state
        protocol_type = "" if group is None else group.protocol_type or ""
        if others.get(group_id) and (group is None or not group.members):
            # Clients of another protocol have it, as DescribeGroups tells.
            state, protocol_type = GroupState.STABLE, _CONSUMER
        kind = GroupKind.CLASSIC if group is None else group.kind
        if (states and state.value.lower() not in states) or (types and kind.value not in types):
            continue
        response.groups.append(
            ListedGroup(
                group_id=group_id, protocol_type=protocol_type, group_state=state.value, group_type=kind.value
            )
        )
    return response
