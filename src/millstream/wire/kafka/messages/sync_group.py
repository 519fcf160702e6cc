"""SyncGroup (API key 14)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, bytes_, int16, int32, message, string

__all__ = ["SYNC_GROUP", "SyncGroupRequest", "SyncGroupResponse"]


@message
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = bytes_()


@message
class SyncGroupRequest:
    """SyncGroup request, all versions."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable=3, default=None)
    protocol_type: str | None = string(since=5, nullable=5, default=None)
    protocol_name: str | None = string(since=5, nullable=5, default=None)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@message
class SyncGroupResponse:
    """SyncGroup response, all versions."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
    protocol_type: str | None = string(since=5, nullable=5, default=None)
    protocol_name: str | None = string(since=5, nullable=5, default=None)
    assignment: bytes = bytes_()


SYNC_GROUP = Api(
    key=14,
    name="SyncGroup",
    versions=range(6),
    flexible_since=4,
    request=SyncGroupRequest,
    response=SyncGroupResponse,
)
