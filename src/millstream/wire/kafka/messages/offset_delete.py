"""OffsetDelete (API key 47)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, message, string

__all__ = ["OFFSET_DELETE", "OffsetDeleteRequest", "OffsetDeleteResponse"]


@message
class OffsetDeleteRequestPartition:
    partition_index: int = int32()


@message
class OffsetDeleteRequestTopic:
    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@message
class OffsetDeleteRequest:
    """OffsetDelete request, all versions."""

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


@message
class OffsetDeleteResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@message
class OffsetDeleteResponseTopic:
    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@message
class OffsetDeleteResponse:
    """OffsetDelete response, all versions."""

    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)


OFFSET_DELETE = Api(
    key=47,
    name="OffsetDelete",
    versions=range(1),
    flexible_since=None,
    request=OffsetDeleteRequest,
    response=OffsetDeleteResponse,
)
