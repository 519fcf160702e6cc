"""Produce (API key 0)."""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import (
    Buffer,
    array,
    int16,
    int32,
    int64,
    message,
    records,
    string,
    struct_,
    uuid_,
)

__all__ = ["PRODUCE", "ProduceRequest", "ProduceResponse"]


@message
class PartitionProduceData:
    index: int = int32()
    records: Buffer | None = records()


@message
class TopicProduceData:
    name: str = string(until=12)
    topic_id: UUID = uuid_(since=13)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@message
class ProduceRequest:
    """Produce request, all versions."""

    transactional_id: str | None = string(since=3, nullable=3, default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@message
class BatchIndexAndErrorMessage:
    batch_index: int = int32(since=8)
    batch_index_error_message: str | None = string(since=8, nullable=8, default=None)


@message
class LeaderIdAndEpoch:
    leader_id: int = int32(since=10, default=-1)
    leader_epoch: int = int32(since=10, default=-1)


@message
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(since=2, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, since=8)
    error_message: str | None = string(since=8, nullable=8, default=None)
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch, since=10, tag=0)


@message
class TopicProduceResponse:
    name: str = string(until=12)
    topic_id: UUID = uuid_(since=13)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@message
class NodeEndpoint:
    node_id: int = int32(since=10)
    host: str = string(since=10)
    port: int = int32(since=10)
    rack: str | None = string(since=10, nullable=10, default=None)


@message
class ProduceResponse:
    """Produce response, all versions."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(since=1)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=10, tag=0)


PRODUCE = Api(
    key=0,
    name="Produce",
    versions=range(14),
    flexible_since=9,
    request=ProduceRequest,
    response=ProduceResponse,
)
