"""Heartbeat (API key 12)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import int16, int32, message, string

__all__ = ["HEARTBEAT", "HeartbeatRequest", "HeartbeatResponse"]


@message
class HeartbeatRequest:
    """Heartbeat request, all versions."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable=3, default=None)


@message
class HeartbeatResponse:
    """Heartbeat response, all versions."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()


HEARTBEAT = Api(
    key=12,
    name="Heartbeat",
    versions=range(5),
    flexible_since=4,
    request=HeartbeatRequest,
    response=HeartbeatResponse,
)
