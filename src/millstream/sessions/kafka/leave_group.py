"""LeaveGroup: versions 0 to 5. From 3 on several members may leave at once."""

from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

__all__ = ["handle"]

_LISTS_SINCE: Final = 3


def handle(call: Call, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Let members go."""
    try:
        require(call, Operation.READ, ResourceType.GROUP, request.group_id)
    except MillstreamError as error:
        return LeaveGroupResponse(error_code=code_of(error))
    if call.version < _LISTS_SINCE:
        return LeaveGroupResponse(error_code=_leave(call, request.group_id, request.member_id, None))
    return LeaveGroupResponse(members=[_left(call, request.group_id, member) for member in request.members])


def _left(call: Call, group_id: str, member: MemberIdentity) -> MemberResponse:
    code = _leave(call, group_id, member.member_id, member.group_instance_id)
    return MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code)


def _leave(call: Call, group_id: str, member_id: str, instance_id: str | None) -> int:
    try:
        call.broker.groups.member_group(group_id).leave(member_id, instance_id)
    except MillstreamError as error:
        return code_of(error)
    return ErrorCode.NONE
