"""OffsetFetch: versions 0 to 10.

Version 0 says so by an error where nothing is committed. From 2 on all topics may be asked for, from 8 on several
groups; from 9 on members of consumer groups show their epochs; from 10 on topics are named by id. From 7 on a client
may insist on what is stable: where a transaction has committed an offset and is not decided, it is told to ask again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.authorization import may, require, require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.storage.metadata import CommittedOffset
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

__all__ = ["handle"]

_CODE_SINCE: Final = 2
_GROUPS_SINCE: Final = 8
_IDS_SINCE: Final = 10
_UNSTABLE: Final = ErrorCode.UNSTABLE_OFFSET_COMMIT
_NOTHING: Final = CommittedOffset(offset=-1, leader_epoch=-1, note="", committed_ms=0)


def handle(call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Tell what groups have committed, in topics that the client may describe; -1 where they have not."""
    if call.version >= _GROUPS_SINCE:
        groups = {group.group_id: group for group in request.groups}
        return OffsetFetchResponse(groups=[_group(call, request, group) for group in groups.values()])
    try:
        require(call, Operation.DESCRIBE, ResourceType.GROUP, request.group_id)
    except MillstreamError as error:
        return _refused(call, request, code_of(error))
    committed = call.broker.groups.offsets.of_group(request.group_id)
    asked: Sequence[tuple[Topic | None, str, list[int]]]
    if request.topics is None:
        asked = _all_topics(call, committed)
    else:
        asked = [(call.topic(topic.name), topic.name, topic.partition_indexes) for topic in request.topics]
    no_offset = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if call.version == 0 else ErrorCode.NONE
    response = OffsetFetchResponse()
    for topic, name, indexes in asked:
        found = [(index, _offset(committed, topic, index)) for index in indexes]
        withheld = _withheld(call, request, request.group_id, topic, name, indexes)
        response.topics.append(
            OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, error_code=withheld[index]
                    )
                    if index in withheld
                    else OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=one.offset,
                        committed_leader_epoch=one.leader_epoch,
                        metadata=one.note,
                        error_code=no_offset if one is _NOTHING else ErrorCode.NONE,
                    )
                    for index, one in found
                ],
            )
        )
    return response


def _refused(call: Call, request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    """The answer to who may not see the group; the first versions have room for a code at partitions only."""
    if call.version >= _CODE_SINCE:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, error_code=code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def _group(call: Call, request: OffsetFetchRequest, asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    answer = OffsetFetchResponseGroup(group_id=asked.group_id)
    try:
        require(call, Operation.DESCRIBE, ResourceType.GROUP, asked.group_id)
        call.broker.groups.check_fetch(asked.group_id, asked.member_id, asked.member_epoch)
    except MillstreamError as error:
        answer.error_code = code_of(error)
        return answer
    committed = call.broker.groups.offsets.of_group(asked.group_id)
    if asked.topics is None:
        for topic, name, indexes in _all_topics(call, committed):
            found_topic = _topic(committed, topic, name, topic.id, indexes, ErrorCode.NONE)
            withheld = _withheld(call, request, asked.group_id, topic, name, indexes)
            answer.topics.append(_withholding(found_topic, withheld))
        return answer
    for wanted in asked.topics:
        found = call.topic(wanted.name, wanted.topic_id)
        unknown_id = found is None and call.version >= _IDS_SINCE
        code = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.NONE
        indexes = wanted.partition_indexes
        wanted_topic = _topic(committed, found, wanted.name, wanted.topic_id, indexes, code)
        withheld = _withheld(call, request, asked.group_id, found, wanted.name, indexes)
        answer.topics.append(_withholding(wanted_topic, withheld))
    return answer


def _withheld(
    call: Call, request: OffsetFetchRequest, group_id: str, topic: Topic | None, name: str, indexes: Iterable[int]
) -> dict[int, ErrorCode]:
    """The partitions whose offsets are not told, and why: the client may not see the topic, or, if that is to be
    told, a transaction is about to commit one."""
    try:
        require_topic(call, Operation.DESCRIBE, topic, name)
    except MillstreamError as error:
        return dict.fromkeys(indexes, code_of(error))
    if not request.require_stable or topic is None:
        return {}
    is_pending = call.broker.transactions.pending_offsets.is_pending
    return {index: _UNSTABLE for index in indexes if is_pending(group_id, (topic.id, index))}


def _withholding(topic: OffsetFetchResponseTopics, withheld: Mapping[int, ErrorCode]) -> OffsetFetchResponseTopics:
    for one in topic.partitions if withheld else ():
        code = withheld.get(one.partition_index)
        if code is not None:
            one.error_code, one.committed_offset, one.committed_leader_epoch, one.metadata = code, -1, -1, ""
    return topic


def _topic(
    committed: dict[tuple[UUID, int], CommittedOffset],
    topic: Topic | None,
    name: str,
    topic_id: UUID,
    indexes: Iterable[int],
    code: ErrorCode,
) -> OffsetFetchResponseTopics:
    found = [(index, _offset(committed, topic, index)) for index in indexes]
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=one.offset,
                committed_leader_epoch=one.leader_epoch,
                metadata=one.note,
                error_code=code,
            )
            for index, one in found
        ],
    )


def _offset(committed: dict[tuple[UUID, int], CommittedOffset], topic: Topic | None, index: int) -> CommittedOffset:
    return committed.get((topic.id, index), _NOTHING) if topic is not None else _NOTHING


def _all_topics(
    call: Call, committed: dict[tuple[UUID, int], CommittedOffset]
) -> Sequence[tuple[Topic, str, list[int]]]:
    by_topic: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(committed):
        by_topic.setdefault(topic_id, []).append(index)
    found = ((call.broker.topics.by_id(topic_id), indexes) for topic_id, indexes in by_topic.items())
    return [
        (topic, topic.name.flat, indexes)
        for topic, indexes in found
        if topic is not None and may(call, Operation.DESCRIBE, ResourceType.TOPIC, topic.name.flat)
    ]
