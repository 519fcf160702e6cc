"""CreateTopics (API key 19)."""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int8, int16, int32, message, string, uuid_

__all__ = ["CREATE_TOPICS", "CreateTopicsRequest", "CreateTopicsResponse"]


@message
class CreatableReplicaAssignment:
    partition_index: int = int32()
    broker_ids: list[int] = array("int32")


@message
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable=0)


@message
class CreatableTopic:
    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@message
class CreateTopicsRequest:
    """CreateTopics request, all versions."""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean(since=1)


@message
class CreatableTopicConfigs:
    name: str = string(since=5)
    value: str | None = string(since=5, nullable=5)
    read_only: bool = boolean(since=5)
    config_source: int = int8(since=5, default=-1)
    is_sensitive: bool = boolean(since=5)


@message
class CreatableTopicResult:
    name: str = string()
    topic_id: UUID = uuid_(since=7)
    error_code: int = int16()
    error_message: str | None = string(since=1, nullable=1)
    topic_config_error_code: int = int16(since=5, tag=0)
    num_partitions: int = int32(since=5, default=-1)
    replication_factor: int = int16(since=5, default=-1)
    configs: list[CreatableTopicConfigs] | None = array(CreatableTopicConfigs, since=5, nullable=5)


@message
class CreateTopicsResponse:
    """CreateTopics response, all versions."""

    throttle_time_ms: int = int32(since=2)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)


CREATE_TOPICS = Api(
    key=19,
    name="CreateTopics",
    versions=range(8),
    flexible_since=5,
    request=CreateTopicsRequest,
    response=CreateTopicsResponse,
)
