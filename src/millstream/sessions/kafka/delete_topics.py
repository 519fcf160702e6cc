"""DeleteTopics: versions 0 to 6. From 6 on topics may be named by id."""

from typing import Final
from uuid import UUID

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.authorizer import TopicNotAuthorized
from millstream.broker.errors import UnknownTopic
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather
from millstream.sessions.kafka.authorization import may, may_with_cluster, require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from millstream.wire.kafka.schema import NO_UUID

__all__ = ["handle"]

_IDS_SINCE: Final = 6


def handle(call: Call, request: DeleteTopicsRequest) -> Pending[DeleteTopicsResponse]:
    """Delete topics; answered once they cannot come back."""
    if call.version >= _IDS_SINCE:
        asked = [(topic.name, topic.topic_id) for topic in request.topics]
    else:
        asked = [(name, NO_UUID) for name in request.topic_names]
    response = DeleteTopicsResponse()
    deleting = []
    for name, topic_id in asked:
        topic = call.topic(name, topic_id)
        result = DeletableTopicResult(name=name if topic is None else topic.name.flat, topic_id=topic_id)
        response.responses.append(result)
        deleting.append(_delete(call, topic, name, topic_id, result))
    return gather(deleting).then(lambda _: response)


def _delete(
    call: Call, topic: Topic | None, name: str | None, topic_id: UUID, result: DeletableTopicResult
) -> Pending[None]:
    def begin() -> Pending[None]:
        if not may_with_cluster(call, Operation.DELETE):
            require_topic(call, Operation.DELETE, topic, name)
        if topic is None:
            raise UnknownTopic(f"there is no topic {name if name is not None else topic_id}")
        result.topic_id = topic.id
        return call.broker.delete_topic(topic)

    def refuse(error: MillstreamError) -> None:
        result.error_code, result.error_message = code_of(error), str(error)
        if isinstance(error, TopicNotAuthorized) and topic is not None and topic_id.int:
            seen = may(call, Operation.DESCRIBE, ResourceType.TOPIC, topic.name.flat)
            result.name = topic.name.flat if seen else None
        if isinstance(error, UnknownTopic) and topic_id.int:
            result.error_code = ErrorCode.UNKNOWN_TOPIC_ID

    return Pending.attempt(begin).settle(lambda _: None, refuse)
