"""LeaveGroup (API key 13)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, message, string

__all__ = ["LEAVE_GROUP", "LeaveGroupRequest", "LeaveGroupResponse"]


@message
class MemberIdentity:
    member_id: str = string(since=3)
    group_instance_id: str | None = string(since=3, nullable=3, default=None)
    reason: str | None = string(since=5, nullable=5, default=None)


@message
class LeaveGroupRequest:
    """LeaveGroup request, all versions."""

    group_id: str = string()
    member_id: str = string(until=2)
    members: list[MemberIdentity] = array(MemberIdentity, since=3)


@message
class MemberResponse:
    member_id: str = string(since=3)
    group_instance_id: str | None = string(since=3, nullable=3)
    error_code: int = int16(since=3)


@message
class LeaveGroupResponse:
    """LeaveGroup response, all versions."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, since=3)


LEAVE_GROUP = Api(
    key=13,
    name="LeaveGroup",
    versions=range(6),
    flexible_since=4,
    request=LeaveGroupRequest,
    response=LeaveGroupResponse,
)
