"""CREATE_PARTITIONS, DELETE_PARTITIONS, DELETE_SEGMENTS."""

from typing import Final

from millstream.broker.permissions import Action
from millstream.model.pending import Pending, settled
from millstream.sessions.iggy.call import Call
from millstream.sessions.iggy.topics import PARTITIONS_MAX
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.messages.system import Empty
from millstream.wire.iggy.messages.topics import DeleteSegments, PartitionsRequest

__all__ = ["create", "delete", "delete_segments"]

_SEGMENTS_MIN: Final = 1


def _check_count(count: int) -> None:
    if not 1 <= count <= PARTITIONS_MAX:
        raise Refused(ErrorCode.TOO_MANY_PARTITIONS, f"{count} partitions")


def create(call: Call, request: PartitionsRequest) -> Pending[Empty]:
    """Give a topic more partitions."""
    place = call.place(request.stream, request.topic)
    call.permit(Action.MANAGE_TOPIC, place.stream.number, place.number)
    _check_count(request.count)
    topic = place.topic
    return call.broker.topics.add_partitions(topic, len(topic.partitions) + request.count).then(lambda _: Empty())


def delete(call: Call, request: PartitionsRequest) -> Pending[Empty]:
    """Take the last partitions of a topic away, with their messages and offsets. One partition stays."""
    place = call.place(request.stream, request.topic)
    call.permit(Action.MANAGE_TOPIC, place.stream.number, place.number)
    _check_count(request.count)
    left = len(place.topic.partitions) - request.count
    if left < 1:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS_COUNT, f"{request.count} of {len(place.topic.partitions)} partitions"
        )
    return call.broker.topics.remove_partitions(place.topic, left).then(lambda _: Empty())


def delete_segments(call: Call, request: DeleteSegments) -> Pending[Empty]:
    """Delete the oldest closed segments of a partition."""
    place = call.place(request.stream, request.topic)
    call.permit(Action.MANAGE_TOPIC, place.stream.number, place.number)
    partition = call.partition(place, request.partition)
    if request.count < _SEGMENTS_MIN:
        raise Refused(ErrorCode.INVALID_SEGMENTS_COUNT, "no segments")
    starts = [start for start, _ in partition.log.segment_starts]
    if len(starts) == 1:
        return settled(Empty())  # the one that is written to stays
    offset = starts[min(request.count, len(starts) - 1)]
    return call.broker.delete_records(partition, offset).then(lambda _: Empty())
