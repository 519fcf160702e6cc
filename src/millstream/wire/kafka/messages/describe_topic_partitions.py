"""DescribeTopicPartitions (API key 75)."""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int16, int32, message, string, struct_, uuid_

__all__ = ["DESCRIBE_TOPIC_PARTITIONS", "DescribeTopicPartitionsRequest", "DescribeTopicPartitionsResponse"]


@message
class TopicRequest:
    name: str = string()


@message
class RequestCursor:
    topic_name: str = string()
    partition_index: int = int32()


@message
class DescribeTopicPartitionsRequest:
    """DescribeTopicPartitions request, all versions."""

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: RequestCursor | None = struct_(RequestCursor, nullable=0, default=None)


@message
class DescribeTopicPartitionsResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1)
    replica_nodes: list[int] = array("int32")
    isr_nodes: list[int] = array("int32")
    eligible_leader_replicas: list[int] | None = array("int32", nullable=0, default=None)
    last_known_elr: list[int] | None = array("int32", nullable=0, default=None)
    offline_replicas: list[int] = array("int32")


@message
class DescribeTopicPartitionsResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable=0)
    topic_id: UUID = uuid_()
    is_internal: bool = boolean()
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(default=-2147483648)


@message
class ResponseCursor:
    topic_name: str = string()
    partition_index: int = int32()


@message
class DescribeTopicPartitionsResponse:
    """DescribeTopicPartitions response, all versions."""

    throttle_time_ms: int = int32()
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: ResponseCursor | None = struct_(ResponseCursor, nullable=0, default=None)


DESCRIBE_TOPIC_PARTITIONS = Api(
    key=75,
    name="DescribeTopicPartitions",
    versions=range(1),
    flexible_since=0,
    request=DescribeTopicPartitionsRequest,
    response=DescribeTopicPartitionsResponse,
)
