"""DeleteRecords: versions 0 to 2."""

from typing import Final

from millstream.broker.acl import Operation
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather
from millstream.sessions.kafka.authorization import require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

__all__ = ["handle"]

_ALL: Final = -1


def handle(call: Call, request: DeleteRecordsRequest) -> Pending[DeleteRecordsResponse]:
    """Delete the records before an offset in each partition; answered once they cannot come back."""
    response = DeleteRecordsResponse()
    deleting = []
    seen: set[tuple[str, int]] = set()
    for topic in request.topics:
        answered = DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(answered)
        for asked in topic.partitions:
            result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
            answered.partitions.append(result)
            place = topic.name, asked.partition_index
            if place in seen:
                result.error_code = ErrorCode.INVALID_REQUEST
                continue
            seen.add(place)
            deleting.append(_delete(call, topic.name, asked, result))
    return gather(deleting).then(lambda _: response)


def _delete(
    call: Call, name: str, asked: DeleteRecordsPartition, result: DeleteRecordsPartitionResult
) -> Pending[None]:
    def begin() -> Pending[int]:
        topic = call.topic(name)
        require_topic(call, Operation.DELETE, topic, name)
        partition = call.partition(topic, asked.partition_index)
        offset = partition.log.end_offset if asked.offset == _ALL else asked.offset
        return call.broker.delete_records(partition, offset)

    def done(start_offset: int) -> None:
        result.low_watermark = start_offset

    def refuse(error: MillstreamError) -> None:
        result.error_code = code_of(error)

    return Pending.attempt(begin).settle(done, refuse)
