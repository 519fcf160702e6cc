"""SEND_MESSAGES and FLUSH_UNSAVED_BUFFER."""

from typing import Final

import xxhash

from millstream.broker.partition import Partition
from millstream.broker.permissions import Action
from millstream.broker.recent_ids import RecentIds
from millstream.model.pending import Pending
from millstream.sessions.iggy.call import Call, Place
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.incoming import Stamp, take
from millstream.wire.iggy.kinds import Partitioning
from millstream.wire.iggy.messages.batches import FlushBuffer, Placed, SendMessages, SendReply
from millstream.wire.iggy.messages.system import Empty
from millstream.wire.iggy.murmur3 import murmur3_128
from millstream.wire.iggy.stored import BODY_POSITION, seal

__all__ = ["flush", "handle"]

_METADATA_LENGTH_BYTES: Final = 4


def handle(call: Call, request: SendMessages) -> SendReply | Pending[SendReply]:
    """Append a batch to one partition; answer when it is on the disk."""
    if request.metadata_bytes:
        _check_metadata(call, request)
    place = call.place(request.stream, request.topic)
    call.permit(Action.SEND, place.stream.number, place.number)
    partition = call.partition(place, _choose(call, place, request.partitioning))
    now_ms = call.broker.runtime.now_ms()
    stamp = Stamp(partition.index, partition.log.end_offset, now_ms * 1000)
    incoming = take(request, call.dialect, stamp, call.broker.runtime.random_bytes)
    recent = _recent_ids(call, place, partition)
    if recent is not None:
        kept = recent.fresh(incoming.ids(), call.broker.runtime.monotonic_ms())
        if not any(kept):
            # What came before may be under way to the disk still.
            return _answer(partition, SendReply(placed=[_placed(place, stamp)]))
        if not all(kept):
            incoming = incoming.only(kept, stamp)
    frame, header = seal(call.frame, incoming, now_ms)
    bytes_max = call.broker.settings.request_bytes_max + BODY_POSITION
    appended = partition.append(frame, header, all_replicas=True, bytes_max=bytes_max)
    assert appended.base_offset == stamp.base_offset, "nothing runs between the stamp and the append"
    if recent is not None:
        recent.remember(incoming.ids(), call.broker.runtime.monotonic_ms())
    return _answer(partition, SendReply(placed=[_placed(place, stamp)]))


def _answer(partition: Partition, reply: SendReply) -> SendReply | Pending[SendReply]:
    """Answer once all that stands in the partition is on the disk."""
    durable = partition.durable()
    return reply if durable is None else durable.then(lambda _: reply)


def _check_metadata(call: Call, request: SendMessages) -> None:
    """Hold the length of the metadata against where the messages begin."""
    payload_position = 256 if call.dialect.long_headers else 8
    metadata_bytes = len(call.frame) - payload_position - len(request.messages) - _METADATA_LENGTH_BYTES
    if request.metadata_bytes != metadata_bytes:
        raise Refused(
            ErrorCode.INVALID_COMMAND, f"metadata of {metadata_bytes} bytes that says {request.metadata_bytes}"
        )


def _choose(call: Call, place: Place, partitioning: Partitioning) -> int:
    """The partition of a batch, from 0."""
    count = len(place.topic.partitions)
    if not count:
        raise Refused(ErrorCode.NO_PARTITIONS)
    if partitioning.partition is not None:
        return partitioning.partition
    if partitioning.key is not None:
        return _hashed(partitioning.key, count, call.dialect)
    turns = call.shared.next_partition
    turn = turns.get(place.topic.id, 0) % count
    turns[place.topic.id] = turn + 1
    return turn


def _hashed(key: bytes, count: int, dialect: Dialect) -> int:
    """The partition of a key: its hash modulo their number, where dialects that count from 1 make 0 the last one."""
    hashed = murmur3_128(key) if dialect is Dialect.A else xxhash.xxh32_intdigest(key)
    return (hashed - dialect.first_id) % count


def _recent_ids(call: Call, place: Place, partition: Partition) -> RecentIds | None:
    """The ids that a partition has seen of late; None if the server is set not to look."""
    bounds = call.shared.deduplication
    if bounds is None:
        return None
    key = place.topic.id, partition.index
    recent = call.shared.recent_ids.get(key)
    if recent is None:
        recent = call.shared.recent_ids[key] = RecentIds(*bounds)
    return recent


def _placed(place: Place, stamp: Stamp) -> Placed:
    return Placed(
        stream=place.stream.number, topic=place.number, partition=stamp.partition, base_offset=stamp.base_offset
    )


def flush(call: Call, request: FlushBuffer) -> Empty | Pending[Empty]:
    """Put a partition on the disk. What was acknowledged is there already."""
    place = call.place(request.stream, request.topic)
    call.permit(Action.SEND, place.stream.number, place.number)
    durable = call.partition(place, request.partition).durable()
    return Empty() if durable is None else durable.then(lambda _: Empty())
