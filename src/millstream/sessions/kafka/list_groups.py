"""ListGroups: versions 0 to 5. From 4 on by state, from 5 on by type."""

from typing import Final

from millstream.sessions.kafka.call import Call
from millstream.wire.kafka.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

__all__ = ["handle"]

_TYPE: Final = "classic"


def handle(call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    """List groups."""
    states = {state.lower() for state in request.states_filter}
    types = {one.lower() for one in request.types_filter}
    response = ListGroupsResponse()
    if types and _TYPE not in types:
        return response
    for group_id in call.broker.groups.ids():
        group = call.broker.groups.find(group_id)
        if group is None or (states and group.state.value.lower() not in states):
            continue
        response.groups.append(
            ListedGroup(
                group_id=group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=_TYPE,
            )
        )
    return response
