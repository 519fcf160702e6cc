"""ListOffsets (API key 2)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int8, int16, int32, int64, message, string

__all__ = ["LIST_OFFSETS", "ListOffsetsRequest", "ListOffsetsResponse"]


@message
class ListOffsetsPartition:
    partition_index: int = int32()
    current_leader_epoch: int = int32(since=4, default=-1)
    timestamp: int = int64()
    max_num_offsets: int = int32(until=0, default=1)


@message
class ListOffsetsTopic:
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@message
class ListOffsetsRequest:
    """ListOffsets request, all versions."""

    replica_id: int = int32()
    isolation_level: int = int8(since=2)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(since=10)


@message
class ListOffsetsPartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: list[int] = array("int64", until=0)
    timestamp: int = int64(since=1, default=-1)
    offset: int = int64(since=1, default=-1)
    leader_epoch: int = int32(since=4, default=-1)


@message
class ListOffsetsTopicResponse:
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@message
class ListOffsetsResponse:
    """ListOffsets response, all versions."""

    throttle_time_ms: int = int32(since=2)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)


LIST_OFFSETS = Api(
    key=2,
    name="ListOffsets",
    versions=range(12),
    flexible_since=6,
    request=ListOffsetsRequest,
    response=ListOffsetsResponse,
)
