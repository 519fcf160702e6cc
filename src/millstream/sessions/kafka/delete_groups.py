"""DeleteGroups: versions 0 to 2."""

from millstream.broker.acl import Operation, ResourceType
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

__all__ = ["handle"]


def handle(call: Call, request: DeleteGroupsRequest) -> Pending[DeleteGroupsResponse]:
    """Delete groups without members, and their offsets."""
    response = DeleteGroupsResponse()
    deleting = []
    for group_id in dict.fromkeys(request.groups_names):
        result = DeletableGroupResult(group_id=group_id)
        response.results.append(result)
        deleting.append(_delete(call, result))
    return gather(deleting).then(lambda _: response)


def _delete(call: Call, result: DeletableGroupResult) -> Pending[None]:
    def begin() -> Pending[None]:
        require(call, Operation.DELETE, ResourceType.GROUP, result.group_id)
        return call.broker.groups.delete(result.group_id)

    def refuse(error: MillstreamError) -> None:
        result.error_code = code_of(error)

    return Pending.attempt(begin).settle(lambda _: None, refuse)
