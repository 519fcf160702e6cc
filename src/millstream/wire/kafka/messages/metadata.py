"""Metadata (API key 3)."""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int16, int32, message, string, uuid_

__all__ = ["METADATA", "MetadataRequest", "MetadataResponse"]


@message
class MetadataRequestTopic:
    topic_id: UUID = uuid_(since=10)
    name: str | None = string(nullable=10)


@message
class MetadataRequest:
    """Metadata request, all versions."""

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable=1)
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)


@message
class MetadataResponseBroker:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(since=1, nullable=1, default=None)


@message
class MetadataResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(since=7, default=-1)
    replica_nodes: list[int] = array("int32")
    isr_nodes: list[int] = array("int32")
    offline_replicas: list[int] = array("int32", since=5)


@message
class MetadataResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable=12)
    topic_id: UUID = uuid_(since=10)
    is_internal: bool = boolean(since=1)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(since=8, default=-2147483648)


@message
class MetadataResponse:
    """Metadata response, all versions."""

    throttle_time_ms: int = int32(since=3)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(since=2, nullable=2, default=None)
    controller_id: int = int32(since=1, default=-1)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(since=8, until=10, default=-2147483648)
    error_code: int = int16(since=13)


METADATA = Api(
    key=3,
    name="Metadata",
    versions=range(14),
    flexible_since=9,
    request=MetadataRequest,
    response=MetadataResponse,
)
