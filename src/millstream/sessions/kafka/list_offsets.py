"""ListOffsets: versions 0 to 11.

A time is looked up in the index, then record by record in one batch. In the index a frame of another protocol has the
time at which it was published or appended, which its records may precede. Version 0 knows no times of records: it is
answered with the offsets at which segments begin. From 2 on readers of what is committed say so: for them the log
ends where the first open transaction begins.
"""

from collections import Counter
from typing import Final

from millstream.broker.acl import Operation
from millstream.broker.partition import Partition
from millstream.model.errors import MillstreamError
from millstream.model.frame import Magic, read_frame_header
from millstream.sessions.kafka.authorization import require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.leader_epoch import LEADER_EPOCH, epoch_error
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from millstream.wire.kafka.records import first_late_record
from millstream.wire.translation import kafka_batch

__all__ = ["handle"]

_READ_COMMITTED: Final = 1
_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4


def handle(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Find an offset in each partition: the first, the last, that of the latest record, or by time."""
    response = ListOffsetsResponse()
    times = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    for topic in request.topics:
        found = [
            _segment_starts(call, topic.name, asked)
            if call.version == 0
            else _answer(call, request, topic.name, asked, once=times[topic.name, asked.partition_index] == 1)
            for asked in topic.partitions
        ]
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=found))
    return response


def _answer(
    call: Call, request: ListOffsetsRequest, name: str, asked: ListOffsetsPartition, *, once: bool
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    if not once:
        answer.error_code = ErrorCode.INVALID_REQUEST
        return answer
    try:
        partition = _partition(call, name, asked.partition_index)
        answer.error_code = epoch_error(asked.current_leader_epoch)
        if not answer.error_code:
            end = partition.end_for(committed=request.isolation_level == _READ_COMMITTED)
            answer.offset, answer.timestamp = _look_up(partition, asked.timestamp, end)
            answer.leader_epoch = LEADER_EPOCH if answer.offset >= 0 else -1
    except (MillstreamError, OSError) as error:
        answer.error_code = code_of(error)
    return answer


def _partition(call: Call, name: str, index: int) -> Partition:
    topic = call.topic(name)
    require_topic(call, Operation.DESCRIBE, topic, name)
    return call.partition(topic, index)


def _segment_starts(call: Call, name: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
    """The end of the log and the offsets at which its segments begin, latest first, as many as were asked for.

    Of a time, those segments count whose latest record is no later.
    """
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    try:
        partition = _partition(call, name, asked.partition_index)
    except MillstreamError as error:
        answer.error_code = code_of(error)
        return answer
    log, end = partition.log, partition.uncommitted_offset
    starts = [(max(offset, log.start_offset), latest_ms) for offset, latest_ms in log.segment_starts]
    if starts[-1][0] < end:
        starts.append((end, call.broker.runtime.now_ms()))
    if asked.timestamp == _EARLIEST:
        del starts[1:]
    elif asked.timestamp != _LATEST:
        while starts and starts[-1][1] > asked.timestamp:
            starts.pop()
    found = [offset for offset, _ in reversed(starts)]
    answer.old_style_offsets = found[: max(asked.max_num_offsets, 0)]
    return answer


def _look_up(partition: Partition, timestamp: int, end: int) -> tuple[int, int]:
    """An offset and the time of its record, -1 for none. Nothing is tiered, so -5 and -6 find nothing.

    Args:
        partition: where to look.
        timestamp: what for.
        end: the first offset that the client may not read.
    """
    log = partition.log
    if timestamp == _LATEST:
        return end, -1
    if timestamp in {_EARLIEST, _EARLIEST_LOCAL}:
        return log.start_offset, -1
    if timestamp == _MAX_TIMESTAMP:
        timestamp = log.max_timestamp[0]
    if timestamp < 0:
        return -1, -1
    frame = log.frame_for_time(timestamp)
    if frame is None:
        return -1, -1
    header = read_frame_header(frame)
    found = first_late_record(memoryview(kafka_batch(frame, header)), timestamp, log.start_offset)
    if found is None and header.magic != Magic.KAFKA_V2:
        # Its frame is as late, but an application has given its records earlier times: nothing is passed over.
        found = max(header.base_offset, log.start_offset), header.max_timestamp
    return found if found is not None and found[0] < end else (-1, -1)
