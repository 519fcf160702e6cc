"""ConsumerGroupDescribe (API key 69)."""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int8, int16, int32, message, string, struct_, uuid_

__all__ = ["CONSUMER_GROUP_DESCRIBE", "ConsumerGroupDescribeRequest", "ConsumerGroupDescribeResponse"]


@message
class ConsumerGroupDescribeRequest:
    """ConsumerGroupDescribe request, all versions."""

    group_ids: list[str] = array("string")
    include_authorized_operations: bool = boolean()


@message
class DescribedPartitions:
    topic_id: UUID = uuid_()
    topic_name: str = string()
    partitions: list[int] = array("int32")


@message
class DescribedAssignment:
    topic_partitions: list[DescribedPartitions] = array(DescribedPartitions)


@message
class DescribedConsumer:
    member_id: str = string()
    instance_id: str | None = string(nullable=0, default=None)
    rack_id: str | None = string(nullable=0, default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array("string")
    subscribed_topic_regex: str | None = string(nullable=0, default=None)
    assignment: DescribedAssignment = struct_(DescribedAssignment)
    target_assignment: DescribedAssignment = struct_(DescribedAssignment)
    member_type: int = int8(since=1, default=-1)


@message
class DescribedConsumerGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable=0, default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[DescribedConsumer] = array(DescribedConsumer)
    authorized_operations: int = int32(default=-2147483648)


@message
class ConsumerGroupDescribeResponse:
    """ConsumerGroupDescribe response, all versions."""

    throttle_time_ms: int = int32()
    groups: list[DescribedConsumerGroup] = array(DescribedConsumerGroup)


CONSUMER_GROUP_DESCRIBE = Api(
    key=69,
    name="ConsumerGroupDescribe",
    versions=range(2),
    flexible_since=0,
    request=ConsumerGroupDescribeRequest,
    response=ConsumerGroupDescribeResponse,
)
