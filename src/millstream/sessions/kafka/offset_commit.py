"""OffsetCommit: versions 0 to 10. It is answered once the offsets last.

Version 0, which Apache Kafka kept in ZooKeeper, commits for the same group as all others, as one that is not a
member. Version 1 may say when the offset was committed; from 9 on members of consumer groups can be told that their
epoch is stale; from 10 on topics are named by id.
"""

from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.errors import GroupNotFound, NoteTooLarge, StaleEpoch
from millstream.broker.offsets import Place
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authorization import require, require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.storage.metadata import CommittedOffset
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

__all__ = ["handle"]

_EPOCHS_SINCE: Final = 9


def handle(call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
    """Commit offsets for a group."""
    response = OffsetCommitResponse()
    accepted: list[OffsetCommitResponsePartition] = []
    offsets: dict[Place, CommittedOffset] = {}
    for asked in request.topics:
        topic = call.topic(asked.name, asked.topic_id)
        answered = OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id)
        response.topics.append(answered)
        for partition in asked.partitions:
            answer = OffsetCommitResponsePartition(partition_index=partition.partition_index)
            answered.partitions.append(answer)
            try:
                require(call, Operation.READ, ResourceType.GROUP, request.group_id)
                require_topic(call, Operation.READ, topic, asked.name)
                committed = _committed(call, partition)
                call.partition(topic, partition.partition_index)
            except MillstreamError as error:
                unknown_id = topic is None and bool(asked.topic_id.int)
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else code_of(error)
                continue
            assert topic is not None
            offsets[topic.id, partition.partition_index] = committed
            accepted.append(answer)

    def refuse(error: MillstreamError) -> OffsetCommitResponse:
        for answer in accepted:
            answer.error_code = _code(error, call.version)
        return response

    if not accepted:
        return response
    try:
        done = call.broker.groups.commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            offsets,
        )
    except MillstreamError as error:
        return refuse(error)
    return done.settle(lambda _: response, refuse)


def _code(error: MillstreamError, version: int) -> ErrorCode:
    """The code for a commit that the group does not let its member make."""
    knows_epochs = version >= _EPOCHS_SINCE
    if isinstance(error, GroupNotFound):
        # Of classic groups no members are remembered over a restart. From these codes, clients join again.
        return ErrorCode.UNKNOWN_MEMBER_ID if knows_epochs else ErrorCode.ILLEGAL_GENERATION
    if isinstance(error, StaleEpoch) and not knows_epochs:
        return ErrorCode.UNSUPPORTED_VERSION
    return code_of(error)


def _committed(call: Call, partition: OffsetCommitRequestPartition) -> CommittedOffset:
    note = partition.committed_metadata or ""
    limit = call.broker.settings.offset_note_bytes_max
    if len(note.encode()) > limit:
        raise NoteTooLarge(f"the text kept with an offset has more than {limit} bytes")
    committed_ms = now_ms = call.broker.runtime.now_ms()
    if partition.commit_timestamp >= 0:  # only version 1 has it; no offset outlasts the others by it
        committed_ms = min(partition.commit_timestamp, now_ms)
    return CommittedOffset(partition.committed_offset, partition.committed_leader_epoch, note, committed_ms)
