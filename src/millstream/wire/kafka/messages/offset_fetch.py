"""OffsetFetch (API key 9)."""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int16, int32, int64, message, string, uuid_

__all__ = ["OFFSET_FETCH", "OffsetFetchRequest", "OffsetFetchResponse"]


@message
class OffsetFetchRequestTopic:
    name: str = string(until=7)
    partition_indexes: list[int] = array("int32", until=7)


@message
class OffsetFetchRequestTopics:
    name: str = string(since=8, until=9)
    topic_id: UUID = uuid_(since=10)
    partition_indexes: list[int] = array("int32", since=8)


@message
class OffsetFetchRequestGroup:
    group_id: str = string(since=8)
    member_id: str | None = string(since=9, nullable=9, default=None)
    member_epoch: int = int32(since=9, default=-1)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, since=8, nullable=8)


@message
class OffsetFetchRequest:
    """OffsetFetch request, all versions."""

    group_id: str = string(until=7)
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, until=7, nullable=2)
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, since=8)
    require_stable: bool = boolean(since=7)


@message
class OffsetFetchResponsePartition:
    partition_index: int = int32(until=7)
    committed_offset: int = int64(until=7)
    committed_leader_epoch: int = int32(since=5, until=7, default=-1)
    metadata: str | None = string(until=7, nullable=0)
    error_code: int = int16(until=7)


@message
class OffsetFetchResponseTopic:
    name: str = string(until=7)
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, until=7)


@message
class OffsetFetchResponsePartitions:
    partition_index: int = int32(since=8)
    committed_offset: int = int64(since=8)
    committed_leader_epoch: int = int32(since=8, default=-1)
    metadata: str | None = string(since=8, nullable=8)
    error_code: int = int16(since=8)


@message
class OffsetFetchResponseTopics:
    name: str = string(since=8, until=9)
    topic_id: UUID = uuid_(since=10)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, since=8)


@message
class OffsetFetchResponseGroup:
    group_id: str = string(since=8)
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, since=8)
    error_code: int = int16(since=8)


@message
class OffsetFetchResponse:
    """OffsetFetch response, all versions."""

    throttle_time_ms: int = int32(since=3)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, until=7)
    error_code: int = int16(since=2, until=7)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, since=8)


OFFSET_FETCH = Api(
    key=9,
    name="OffsetFetch",
    versions=range(11),
    flexible_since=6,
    request=OffsetFetchRequest,
    response=OffsetFetchResponse,
)
