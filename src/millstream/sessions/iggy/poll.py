"""POLL_MESSAGES."""

import struct
from typing import Final
from uuid import UUID

from millstream.broker.partition import Partition
from millstream.broker.permissions import Action
from millstream.model.frame import HEADER_BYTES, Magic, read_frame_header
from millstream.model.frame_span import FrameSpan, frame_of, take_span
from millstream.sessions.iggy.call import Call
from millstream.sessions.iggy.consumers import Reader, reader_of
from millstream.sessions.iggy.foreign_frames import PolledFrames
from millstream.sessions.session import Buffer
from millstream.sessions.translated import is_kept, translated
from millstream.storage.log import PartitionLog
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.incoming import Layout, layout_of
from millstream.wire.iggy.messages.batches import PollMessages, Strategy
from millstream.wire.iggy.polled import Slice, native_slice, whole_batches
from millstream.wire.limits import BATCH_RECORDS_MAX
from millstream.wire.translation import read_records

__all__ = ["handle"]

_HEAD: Final = struct.Struct("<IQI")
_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of messages in one answer: what a client asks for is a number of messages, which is not its to size."""
_READ_BYTES_MIN: Final = 4 * 1024
_READ_BYTES_MAX: Final = 1024 * 1024
_SPARE: Final = 1.25
"""By how much more is read than messages of the average size would take, so that one read mostly does."""


def handle(call: Call, request: PollMessages) -> list[Buffer]:
    """Read messages of one partition, and move the consumer on if it asks for that."""
    if not request.count:
        raise Refused(ErrorCode.INVALID_MESSAGES_COUNT, "a poll of no messages")
    place = call.place(request.stream, request.topic)
    call.permit(Action.POLL, place.stream.number, place.number)
    reader = reader_of(call, place, request.consumer, request.partition, polls=True)
    if reader is None:  # a member of a group without a partition
        return [_HEAD.pack(call.dialect.first_id, 0, 0)]
    partition = reader.partition
    start = _start(call, request, reader)
    first_id = call.dialect.first_id
    current = max(partition.stable_offset - 1, 0)
    if start is None or start >= partition.stable_offset:
        return [_HEAD.pack(partition.index + first_id, current, 0)]
    found = _Found(call, partition, place.topic.id)
    found.read(start, request.count)
    if found.count:
        if reader.group is not None:
            reader.group.sharing.polled(partition.index, found.last_offset)
        if request.auto_commit:
            reader.store(call, found.last_offset)
    return [_HEAD.pack(partition.index + first_id, current, found.count), *found.buffers]


def _start(call: Call, request: PollMessages, reader: Reader) -> int | None:
    """The offset to begin at; None if there is nothing to be had."""
    partition = reader.partition
    log = partition.log
    match request.strategy:
        case Strategy.OFFSET:
            return max(request.value, log.start_offset)
        case Strategy.TIMESTAMP:
            return _offset_of_time(log, request.value, call.dialect)
        case Strategy.FIRST:
            return log.start_offset
        case Strategy.LAST:
            return max(partition.stable_offset - request.count, log.start_offset)
        case Strategy.NEXT:
            return max(reader.next_offset(call), log.start_offset)
    raise Refused(ErrorCode.INVALID_COMMAND, f"there is no polling strategy {request.strategy}")


def _offset_of_time(log: PartitionLog, timestamp_us: int, dialect: Dialect) -> int | None:
    """The first message as late as a time; None if there is none and, in dialect A, for a time before the first."""
    timestamp_ms = -(-timestamp_us // 1000)
    if timestamp_ms > log.max_timestamp[0]:
        return None
    frame = log.frame_for_time(timestamp_ms)
    if frame is None:
        return None
    header = read_frame_header(frame)
    if dialect is Dialect.A and header.base_offset <= log.start_offset and timestamp_us < header.early_ms * 1000:
        return None
    if header.magic == Magic.IGGY_BATCH:
        return max(header.base_offset, log.start_offset)  # all of it has one time
    try:
        records = read_records(frame)
    except (WireError, CompressionError):
        return header.base_offset
    late = (one.offset for one in records if one.timestamp_ms >= timestamp_ms and one.offset >= log.start_offset)
    return next(late, header.base_offset)


class _Found:
    """Messages that were found, as the asking dialect has them.

    Args:
        call: who asks.
        partition: where.
        topic_id: of its topic.
    """

    def __init__(self, call: Call, partition: Partition, topic_id: UUID) -> None:
        self.count = 0
        self.last_offset = -1
        self.buffers: list[Buffer] = []
        self._call = call
        self._partition = partition
        self._size_bytes = 0
        self._place = topic_id, partition.index
        self._taken_apart = 0
        self._room_bytes = min(_ANSWER_BYTES_MAX, call.client.room_bytes())
        id_seed = topic_id.bytes + partition.index.to_bytes(4, "big")
        self._form = PolledFrames(layout_of(call.dialect), partition.index, id_seed)

    def read(self, offset: int, wanted: int) -> None:
        """Read messages from an offset on, up to a number of them or as much as there is room for."""
        partition = self._partition
        log = partition.log
        layout = layout_of(self._call.dialect)
        average = log.size_bytes / max(log.end_offset - log.start_offset, 1)
        while self.count < wanted and offset < partition.stable_offset and self._size_bytes < self._room_bytes:
            likely = int((wanted - self.count) * average * _SPARE)
            data, next_offset = partition.read(offset, max(_READ_BYTES_MIN, min(likely, _READ_BYTES_MAX)))
            if not len(data):
                return
            position = 0
            while position < len(data) and self.count < wanted:
                run = None
                if layout is not Layout.PLAIN:
                    run = whole_batches(data, position, layout, offset, wanted - self.count)
                if run is not None:
                    found, position = run
                    self._add(found)
                    continue
                if data[position + 16] == Magic.IGGY_BATCH and data[position + HEADER_BYTES] == layout:
                    span = take_span(data, position, frames_max=1)
                else:
                    span = take_span(data, position, records_max=wanted - self.count)
                    if self._goes_one_by_one(span, layout):
                        span = frame_of(span.data)
                if not partition.is_aborted(span.base_offset) and not self._take(span, offset, wanted):
                    return  # perhaps with nothing, if nothing could be read: the next poll knows that, and goes on
                position += len(span.data)
            offset = next_offset

    def _goes_one_by_one(self, span: FrameSpan, layout: Layout) -> bool:
        """Whether some of the frames are not to be read, or have the layout that is asked for."""
        if span.magic == Magic.IGGY_BATCH and any(body[0] == layout for body in span.bodies()):
            return True
        return self._partition.has_aborted(span.base_offset, span.end_offset)

    def _take(self, span: FrameSpan, offset: int, wanted: int) -> bool:
        """Take the messages of some frames that are wanted; not if that would cost one answer too much."""
        if span.magic == Magic.IGGY_BATCH:
            try:
                found = native_slice(span.data, span.header, self._call.dialect, offset, wanted - self.count)
            except WireError:
                return True  # nobody could read it; what follows can be
            if found is not None:
                self._add(found)
                return True
        kept = self._call.broker.translated_frames
        if not is_kept(kept, self._place, span, self._form):
            if self._taken_apart and self._taken_apart + span.records > BATCH_RECORDS_MAX:
                return False
            self._taken_apart += span.records
        for _, polled in translated(kept, self._place, span, self._form):
            found = polled.part(offset, wanted - self.count) if polled is not None else None
            if found is not None:
                self._add(found)
        return True

    def _add(self, found: Slice) -> None:
        self.buffers += found.buffers
        self.count += found.count
        self.last_offset = found.last_offset
        self._size_bytes += sum(map(len, found.buffers))
