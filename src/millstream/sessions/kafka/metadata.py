"""Metadata: versions 0 to 13. Topics may be asked for by id from 10 on, and are made if asked for by name.

Of all topics only those are told that the client may describe.
"""

from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather
from millstream.model.topic_name import TopicName
from millstream.sessions.kafka import authorized_operations
from millstream.sessions.kafka.authorization import may, may_with_cluster, require, require_topic
from millstream.sessions.kafka.call import NODE_ID, Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.leader_epoch import LEADER_EPOCH
from millstream.sessions.kafka.names import check_topic_name
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

__all__ = ["handle"]

_NULL_NAME_SINCE: Final = 12


def handle(call: Call, request: MetadataRequest) -> MetadataResponse | Pending[MetadataResponse]:
    """Describe the cluster, which is this server, and topics; make those that do not exist if that is allowed."""
    everything = request.topics is None or (call.version == 0 and not request.topics)
    # Each once: an answer is larger than its question by the partitions of the topic.
    asked = list({(one.name, one.topic_id): one for one in request.topics or []}.values())
    made = _make_missing(call, request, asked)
    if made is None:
        return _respond(call, request, asked, everything=everything)
    return made.then(lambda _: _respond(call, request, asked, everything=everything))


def _make_missing(call: Call, request: MetadataRequest, asked: list[MetadataRequestTopic]) -> Pending[object] | None:
    if not _makes_missing(call, request):
        return None
    making: list[Pending[Topic]] = []
    for topic in asked:
        if topic.topic_id.int or topic.name is None or call.topic(topic.name) is not None:
            continue
        try:
            require_topic(call, Operation.DESCRIBE, None, topic.name)
            _require_creation(call, topic.name)
            check_topic_name(topic.name)
            making.append(call.broker.topics.get_or_create(TopicName.from_flat(topic.name)))
        except MillstreamError:
            continue  # told by `_answer`
    return gather(making).then(lambda done: done) if making else None


def _makes_missing(call: Call, request: MetadataRequest) -> bool:
    return request.allow_auto_topic_creation and call.broker.settings.auto_create_topics


def _require_creation(call: Call, name: str) -> None:
    if not may_with_cluster(call, Operation.CREATE):
        require(call, Operation.CREATE, ResourceType.TOPIC, name)


def _respond(
    call: Call, request: MetadataRequest, asked: list[MetadataRequestTopic], *, everything: bool
) -> MetadataResponse:
    broker = call.broker
    endpoint = call.client.endpoint
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=NODE_ID, host=endpoint.host, port=endpoint.port)],
        cluster_id=broker.cluster_id,
        controller_id=NODE_ID,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_operations.of_cluster(call)
    if everything:
        response.topics = [
            _described(call, topic, request)
            for topic in broker.topics
            if may(call, Operation.DESCRIBE, ResourceType.TOPIC, topic.name.flat)
        ]
        return response
    response.topics = [_answer(call, request, one) for one in asked]
    return response


def _answer(call: Call, request: MetadataRequest, asked: MetadataRequestTopic) -> MetadataResponseTopic:
    topic = call.topic(asked.name, asked.topic_id)
    try:
        require_topic(call, Operation.DESCRIBE, topic, asked.name)
        if topic is None and asked.name and _makes_missing(call, request):
            _require_creation(call, asked.name)
    except MillstreamError as error:
        name = _name_of_id(call) if asked.topic_id.int else asked.name
        return MetadataResponseTopic(error_code=code_of(error), name=name, topic_id=asked.topic_id)
    return _described(call, topic, request) if topic is not None else _missing(call, asked)


def _name_of_id(call: Call) -> str | None:
    """What stands for the name of a topic that was asked for by its id and is not told."""
    return None if call.version >= _NULL_NAME_SINCE else ""


def _described(call: Call, topic: Topic, request: MetadataRequest) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name.flat,
        topic_id=topic.id,
        partitions=[
            MetadataResponsePartition(
                partition_index=partition.index,
                leader_id=NODE_ID,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=[NODE_ID],
                isr_nodes=[NODE_ID],
            )
            for partition in topic.partitions
        ],
        topic_authorized_operations=authorized_operations.of_topic(call, topic.name.flat)
        if request.include_topic_authorized_operations
        else authorized_operations.NOT_ASKED,
    )


def _missing(call: Call, asked: MetadataRequestTopic) -> MetadataResponseTopic:
    if asked.topic_id.int:
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=_name_of_id(call), topic_id=asked.topic_id
        )
    name = asked.name or ""
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except MillstreamError as error:
        code = code_of(error)
    return MetadataResponseTopic(error_code=code, name=name)
