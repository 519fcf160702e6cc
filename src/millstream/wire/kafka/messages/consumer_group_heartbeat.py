"""ConsumerGroupHeartbeat (API key 68)."""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, message, string, struct_, uuid_

__all__ = ["CONSUMER_GROUP_HEARTBEAT", "ConsumerGroupHeartbeatRequest", "ConsumerGroupHeartbeatResponse"]


@message
class OwnedPartitions:
    topic_id: UUID = uuid_()
    partitions: list[int] = array("int32")


@message
class ConsumerGroupHeartbeatRequest:
    """ConsumerGroupHeartbeat request, all versions. Null and -1 stand for what has not changed."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable=0, default=None)
    rack_id: str | None = string(nullable=0, default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array("string", nullable=0, default=None)
    subscribed_topic_regex: str | None = string(since=1, nullable=1, default=None)
    server_assignor: str | None = string(nullable=0, default=None)
    topic_partitions: list[OwnedPartitions] | None = array(OwnedPartitions, nullable=0, default=None)


@message
class AssignedPartitions:
    topic_id: UUID = uuid_()
    partitions: list[int] = array("int32")


@message
class HeartbeatAssignment:
    topic_partitions: list[AssignedPartitions] = array(AssignedPartitions)


@message
class ConsumerGroupHeartbeatResponse:
    """ConsumerGroupHeartbeat response, all versions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, default=None)
    member_id: str | None = string(nullable=0, default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: HeartbeatAssignment | None = struct_(HeartbeatAssignment, nullable=0, default=None)


CONSUMER_GROUP_HEARTBEAT = Api(
    key=68,
    name="ConsumerGroupHeartbeat",
    versions=range(2),
    flexible_since=0,
    request=ConsumerGroupHeartbeatRequest,
    response=ConsumerGroupHeartbeatResponse,
)
