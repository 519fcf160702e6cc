"""DescribeTopicPartitions: version 0. Topics by name, in pages of at most 2000 partitions."""

from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka import authorized_operations
from millstream.sessions.kafka.authorization import may, require_topic
from millstream.sessions.kafka.call import NODE_ID, Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.leader_epoch import LEADER_EPOCH
from millstream.sessions.kafka.names import check_topic_name
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)

__all__ = ["handle"]

_PARTITIONS_MAX: Final = 2000
"""Partitions in one answer at most, as Kafka's max.request.partition.size.limit."""


def handle(call: Call, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """Describe topics, all if none is named, from the cursor on."""
    if request.topics:
        names = sorted({topic.name for topic in request.topics})
    else:
        every = (topic.name.flat for topic in call.broker.topics)
        names = sorted(name for name in every if may(call, Operation.DESCRIBE, ResourceType.TOPIC, name))
    left = min(max(request.response_partition_limit, 1), _PARTITIONS_MAX)
    response = DescribeTopicPartitionsResponse()
    cursor = request.cursor
    for name in names:
        if cursor is not None and name < cursor.topic_name:
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        topic = call.topic(name)
        try:
            require_topic(call, Operation.DESCRIBE, topic, name)
        except MillstreamError as error:
            response.topics.append(DescribeTopicPartitionsResponseTopic(error_code=code_of(error), name=name))
            continue
        if topic is None:
            response.topics.append(_missing(name))
            continue
        if not left:
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=first)
            break
        described = _described(call, topic, first, left)
        response.topics.append(described)
        left -= len(described.partitions)
        after = first + len(described.partitions)
        if after < len(topic.partitions):
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=after)
            break
    return response


def _described(call: Call, topic: Topic, first: int, limit: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name.flat,
        topic_id=topic.id,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=partition.index,
                leader_id=NODE_ID,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=[NODE_ID],
                isr_nodes=[NODE_ID],
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for partition in topic.partitions[max(first, 0) : max(first, 0) + limit]
        ],
        topic_authorized_operations=authorized_operations.of_topic(call, topic.name.flat),
    )


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except MillstreamError as error:
        code = code_of(error)
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)
