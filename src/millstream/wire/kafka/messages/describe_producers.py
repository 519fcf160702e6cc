"""DescribeProducers (API key 61)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, int64, message, string

__all__ = ["DESCRIBE_PRODUCERS", "DescribeProducersRequest", "DescribeProducersResponse"]


@message
class TopicRequest:
    name: str = string()
    partition_indexes: list[int] = array("int32")


@message
class DescribeProducersRequest:
    """DescribeProducers request, all versions."""

    topics: list[TopicRequest] = array(TopicRequest)


@message
class ProducerState:
    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@message
class PartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, default=None)
    active_producers: list[ProducerState] = array(ProducerState)


@message
class TopicResponse:
    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


@message
class DescribeProducersResponse:
    """DescribeProducers response, all versions."""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)


DESCRIBE_PRODUCERS = Api(
    key=61,
    name="DescribeProducers",
    versions=range(1),
    flexible_since=0,
    request=DescribeProducersRequest,
    response=DescribeProducersResponse,
)
