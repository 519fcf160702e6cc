"""OffsetForLeaderEpoch (API key 23)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, int64, message, string

__all__ = ["OFFSET_FOR_LEADER_EPOCH", "OffsetForLeaderEpochRequest", "OffsetForLeaderEpochResponse"]


@message
class OffsetForLeaderPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(default=-1)
    leader_epoch: int = int32()


@message
class OffsetForLeaderTopic:
    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


@message
class OffsetForLeaderEpochRequest:
    """OffsetForLeaderEpoch request, all versions."""

    replica_id: int = int32(since=3, default=-2)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


@message
class EpochEndOffset:
    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)


@message
class OffsetForLeaderTopicResult:
    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


@message
class OffsetForLeaderEpochResponse:
    """OffsetForLeaderEpoch response, all versions."""

    throttle_time_ms: int = int32()
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)


OFFSET_FOR_LEADER_EPOCH = Api(
    key=23,
    name="OffsetForLeaderEpoch",
    versions=range(2, 5),
    flexible_since=4,
    request=OffsetForLeaderEpochRequest,
    response=OffsetForLeaderEpochResponse,
)
