"""DeleteTopics (API key 20)."""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, message, string, uuid_

__all__ = ["DELETE_TOPICS", "DeleteTopicsRequest", "DeleteTopicsResponse"]


@message
class DeleteTopicState:
    name: str | None = string(since=6, nullable=6, default=None)
    topic_id: UUID = uuid_(since=6)


@message
class DeleteTopicsRequest:
    """DeleteTopics request, all versions."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = array("string", until=5)
    timeout_ms: int = int32()


@message
class DeletableTopicResult:
    name: str | None = string(nullable=6)
    topic_id: UUID = uuid_(since=6)
    error_code: int = int16()
    error_message: str | None = string(since=5, nullable=5, default=None)


@message
class DeleteTopicsResponse:
    """DeleteTopics response, all versions."""

    throttle_time_ms: int = int32(since=1)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)


DELETE_TOPICS = Api(
    key=20,
    name="DeleteTopics",
    versions=range(7),
    flexible_since=4,
    request=DeleteTopicsRequest,
    response=DeleteTopicsResponse,
)
