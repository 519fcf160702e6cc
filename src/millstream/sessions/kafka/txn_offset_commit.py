"""TxnOffsetCommit: versions 0 to 5. The offsets are there once their transaction is committed, or never.

From 3 on the member that commits says which one it is, as with OffsetCommit. From 5 on its group need not have been
added to the transaction before.
"""

from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.errors import NoteTooLarge
from millstream.broker.offsets import Place
from millstream.broker.transactions import ProducerEpoch
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authorization import require, require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.transaction_codes import code_for_group
from millstream.storage.metadata import CommittedOffset
from millstream.wire.kafka.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

__all__ = ["handle"]

_ADDING_SINCE: Final = 5


def handle(call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse | Pending[TxnOffsetCommitResponse]:
    """Commit offsets for a group in the transaction of a producer."""
    response = TxnOffsetCommitResponse()
    accepted: list[TxnOffsetCommitResponsePartition] = []
    offsets: dict[Place, CommittedOffset] = {}
    for asked in request.topics:
        topic = call.topic(asked.name)
        answered = TxnOffsetCommitResponseTopic(name=asked.name)
        response.topics.append(answered)
        for partition in asked.partitions:
            answer = TxnOffsetCommitResponsePartition(partition_index=partition.partition_index)
            answered.partitions.append(answer)
            try:
                require(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
                require(call, Operation.READ, ResourceType.GROUP, request.group_id)
                require_topic(call, Operation.READ, topic, asked.name)
                committed = _committed(call, partition)
                call.partition(topic, partition.partition_index)
            except MillstreamError as error:
                answer.error_code = code_of(error)
                continue
            assert topic is not None
            offsets[topic.id, partition.partition_index] = committed
            accepted.append(answer)

    def refuse(error: MillstreamError) -> TxnOffsetCommitResponse:
        for answer in accepted:
            answer.error_code = code_for_group(error, call.version)
        return response

    if not accepted:
        return response
    return Pending.attempt(lambda: _commit(call, request, offsets)).settle(lambda _: response, refuse)


def _commit(call: Call, request: TxnOffsetCommitRequest, offsets: dict[Place, CommittedOffset]) -> Pending[None]:
    call.broker.groups.check_transactional_commit(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return call.broker.transactional_producers.commit_offsets(
        request.transactional_id,
        ProducerEpoch(request.producer_id, request.producer_epoch),
        request.group_id,
        offsets,
        adding=call.version >= _ADDING_SINCE,
    )


def _committed(call: Call, partition: TxnOffsetCommitRequestPartition) -> CommittedOffset:
    note = partition.committed_metadata or ""
    limit = call.broker.settings.offset_note_bytes_max
    if len(note.encode()) > limit:
        raise NoteTooLarge(f"the text kept with an offset has more than {limit} bytes")
    now_ms = call.broker.runtime.now_ms()
    return CommittedOffset(partition.committed_offset, partition.committed_leader_epoch, note, now_ms)
