"""SyncGroup: versions 0 to 5."""

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.any_group import Assignment
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.messages.sync_group import SyncGroupRequest, SyncGroupResponse

__all__ = ["handle"]


def handle(call: Call, request: SyncGroupRequest) -> SyncGroupResponse | Pending[SyncGroupResponse]:
    """Bring or fetch assignments; the answer comes when the leader has brought them."""
    try:
        require(call, Operation.READ, ResourceType.GROUP, request.group_id)
        pending = call.broker.groups.member_group(request.group_id).sync(
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            request.protocol_type,
            request.protocol_name,
            {one.member_id: one.assignment for one in request.assignments},
        )
    except MillstreamError as error:
        return _refused(error)
    return pending.settle(_answer, _refused)


def _answer(assignment: Assignment) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=assignment.protocol_type,
        protocol_name=assignment.protocol_name,
        assignment=assignment.content,
    )


def _refused(error: MillstreamError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code_of(error))
