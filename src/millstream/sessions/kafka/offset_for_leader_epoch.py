"""OffsetForLeaderEpoch: versions 2 to 4. There is one epoch, so it ends where the log ends."""

from millstream.broker.acl import Operation
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.authorization import may_with_cluster, require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.leader_epoch import LEADER_EPOCH, epoch_error
from millstream.wire.kafka.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

__all__ = ["handle"]


def handle(call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Tell where an epoch ended."""
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        ends = [_end(call, topic.topic, asked) for asked in topic.partitions]
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=ends))
    return response


def _end(call: Call, name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=asked.partition)
    topic = call.topic(name)
    try:
        if not may_with_cluster(call, Operation.CLUSTER_ACTION):
            require_topic(call, Operation.DESCRIBE, topic, name)
        partition = call.partition(topic, asked.partition)
    except MillstreamError as error:
        answer.error_code = code_of(error)
        return answer
    answer.error_code = epoch_error(asked.current_leader_epoch)
    if not answer.error_code and asked.leader_epoch == LEADER_EPOCH:
        answer.leader_epoch, answer.end_offset = LEADER_EPOCH, partition.log.end_offset
    return answer
