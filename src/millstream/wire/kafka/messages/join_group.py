"""JoinGroup (API key 11)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, bytes_, int16, int32, message, string

__all__ = ["JOIN_GROUP", "JoinGroupRequest", "JoinGroupResponse"]


@message
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = bytes_()


@message
class JoinGroupRequest:
    """JoinGroup request, all versions."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(since=1, default=-1)
    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable=5, default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(since=8, nullable=8, default=None)


@message
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable=5, default=None)
    metadata: bytes = bytes_()


@message
class JoinGroupResponse:
    """JoinGroup response, all versions."""

    throttle_time_ms: int = int32(since=2)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(since=7, nullable=7, default=None)
    protocol_name: str | None = string(nullable=7)
    leader: str = string()
    skip_assignment: bool = boolean(since=9)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)


JOIN_GROUP = Api(
    key=11,
    name="JoinGroup",
    versions=range(10),
    flexible_since=6,
    request=JoinGroupRequest,
    response=JoinGroupResponse,
)
