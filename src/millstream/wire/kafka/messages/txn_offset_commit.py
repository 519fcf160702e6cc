"""TxnOffsetCommit (API key 28)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, int64, message, string

__all__ = ["TXN_OFFSET_COMMIT", "TxnOffsetCommitRequest", "TxnOffsetCommitResponse"]


@message
class TxnOffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=2, default=-1)
    committed_metadata: str | None = string(nullable=0)


@message
class TxnOffsetCommitRequestTopic:
    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


@message
class TxnOffsetCommitRequest:
    """TxnOffsetCommit request, all versions."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(since=3, default=-1)
    member_id: str = string(since=3)
    group_instance_id: str | None = string(since=3, nullable=3, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


@message
class TxnOffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@message
class TxnOffsetCommitResponseTopic:
    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


@message
class TxnOffsetCommitResponse:
    """TxnOffsetCommit response, all versions."""

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)


TXN_OFFSET_COMMIT = Api(
    key=28,
    name="TxnOffsetCommit",
    versions=range(6),
    flexible_since=3,
    request=TxnOffsetCommitRequest,
    response=TxnOffsetCommitResponse,
)
