"""GET_CONSUMER_OFFSET, STORE_CONSUMER_OFFSET, DELETE_CONSUMER_OFFSET."""

from millstream.broker.permissions import Action
from millstream.model.pending import Pending
from millstream.sessions.iggy.call import Call
from millstream.sessions.iggy.consumers import Reader, reader_of
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.kinds import Consumer, Identifier
from millstream.wire.iggy.messages.offsets import DeleteOffset, GetOffset, OffsetInfo, StoreOffset
from millstream.wire.iggy.messages.system import Empty

__all__ = ["delete", "get", "store"]


def _reader(call: Call, consumer: Consumer, stream: Identifier, topic: Identifier, partition: int | None) -> Reader:
    place = call.place(stream, topic)
    call.permit(Action.POLL, place.stream.number, place.number)
    reader = reader_of(call, place, consumer, partition, polls=False)
    if reader is None:
        raise Refused(ErrorCode.NOT_RESOLVED_CONSUMER, "the member has no partition")
    return reader


def get(call: Call, request: GetOffset) -> OffsetInfo:
    """How far a consumer has come."""
    reader = _reader(call, request.consumer, request.stream, request.topic, request.partition)
    stored = reader.stored_offset(call)
    if stored is None:
        if call.dialect >= Dialect.B3:
            raise Refused(ErrorCode.CONSUMER_OFFSET_NOT_FOUND, "no offset is stored")
        stored = 0
    current = max(reader.partition.log.end_offset - 1, 0)
    return OffsetInfo(partition=reader.partition.index, current_offset=current, stored_offset=stored)


def store(call: Call, request: StoreOffset) -> Pending[Empty]:
    """Say how far a consumer has come; answered when it lasts."""
    reader = _reader(call, request.consumer, request.stream, request.topic, request.partition)
    if request.offset >= max(reader.partition.log.end_offset, 1):
        raise Refused(ErrorCode.INVALID_OFFSET, f"offset {request.offset} is behind the end")
    return reader.store(call, request.offset).then(lambda _: Empty())


def delete(call: Call, request: DeleteOffset) -> Pending[Empty]:
    """Forget how far a consumer has come."""
    reader = _reader(call, request.consumer, request.stream, request.topic, request.partition)
    if call.shared.positions.get(reader.name, reader.place) is None:
        raise Refused(ErrorCode.CONSUMER_OFFSET_NOT_FOUND, "no offset is stored")
    return call.shared.positions.delete(reader.name, [reader.place]).then(lambda _: Empty())
