"""OffsetCommit (API key 8)."""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, int64, message, string, uuid_

__all__ = ["OFFSET_COMMIT", "OffsetCommitRequest", "OffsetCommitResponse"]


@message
class OffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(since=6, default=-1)
    commit_timestamp: int = int64(since=1, until=1, default=-1)
    committed_metadata: str | None = string(nullable=0)


@message
class OffsetCommitRequestTopic:
    name: str = string(until=9)
    topic_id: UUID = uuid_(since=10)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@message
class OffsetCommitRequest:
    """OffsetCommit request, all versions."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(since=1, default=-1)
    member_id: str = string(since=1)
    group_instance_id: str | None = string(since=7, nullable=7, default=None)
    retention_time_ms: int = int64(since=2, until=4, default=-1)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@message
class OffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@message
class OffsetCommitResponseTopic:
    name: str = string(until=9)
    topic_id: UUID = uuid_(since=10)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@message
class OffsetCommitResponse:
    """OffsetCommit response, all versions."""

    throttle_time_ms: int = int32(since=3)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)


OFFSET_COMMIT = Api(
    key=8,
    name="OffsetCommit",
    versions=range(11),
    flexible_since=8,
    request=OffsetCommitRequest,
    response=OffsetCommitResponse,
)
