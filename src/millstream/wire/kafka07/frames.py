"""Message sets of Kafka 0.7 as frames of the log, and as neutral records.

The body of a frame of magic KAFKA07_SET is a piece of a message set exactly as its producer sent it, cut at the
borders of messages; a compressed message is one message of it, and counts in offsets for every message inside. Its
times are those of the append, because the format has none.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from millstream.model.frame import HEADER_BYTES, LENGTH_OVERHEAD, FrameHeader, Magic, frame_crc, read_frame_header
from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.kafka07.errors import InvalidMessage
from millstream.wire.kafka07.message_walk import pass_over
from millstream.wire.kafka07.messages import (
    InflationBudget,
    Message,
    check_crc,
    count_messages,
    encode_message,
    inflated,
    message_at,
    payloads,
)
from millstream.wire.limits import BATCH_RECORDS_MAX

__all__ = [
    "CheckedSet",
    "build_frame",
    "encode_records",
    "message_position",
    "read_records",
    "take_set",
    "walk_records",
]

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 17


class CheckedSet(NamedTuple):
    """What is to be stored of a message set.

    Args:
        frames: one after the other; one, unless the set is more than a frame may hold or messages were dropped.
        dropped: messages that were too large, and are left out.
    """

    frames: list[bytearray]
    dropped: int


def take_set(
    messages: memoryview,
    *,
    now_ms: int,
    payload_bytes_max: int,
    frame_bytes_max: int,
    budget: InflationBudget,
) -> CheckedSet:
    """Check a message set and make frames of it.

    Args:
        messages: as sent. A message that is cut off at its end is left out.
        now_ms: the time of the append, ms since 1970.
        payload_bytes_max: bytes of the payload of one message, compressed or not; larger messages are dropped.
        frame_bytes_max: bytes of one frame; a message that alone exceeds it is dropped too.
        budget: is drawn on for what is unpacked.

    Raises:
        InvalidMessage: a message is damaged, or a wrapper unpacks to more than is allowed. Nothing is to be stored.
    """
    frames: list[bytearray] = []
    room_bytes = frame_bytes_max - HEADER_BYTES
    position = start = count = dropped = 0
    end = len(messages)

    def cut(next_start: int) -> None:
        nonlocal start, count
        if count:
            frames.append(build_frame(messages[start:position], count, now_ms))
        start, count = next_start, 0

    while True:
        position, passed = pass_over(messages, position, min(end, start + room_bytes), payload_bytes_max)
        count += passed
        message = message_at(messages, position)
        if message is None:
            if not position and end >= 4:
                raise InvalidMessage("the first message of a set is not whole")
            cut(end)
            return CheckedSet(frames, dropped)
        if message.payload_bytes > payload_bytes_max or message.stop - position > room_bytes:
            dropped += 1
            cut(message.stop)
        elif message.stop > start + room_bytes:
            cut(position)
            continue
        else:
            added = _count_in(messages, message, budget)
            if count + added > BATCH_RECORDS_MAX:
                cut(position)
            count += added
        position = message.stop


def _count_in(body: memoryview, message: Message, budget: InflationBudget) -> int:
    """Check one message that was not passed over, and count the messages that it stands for."""
    check_crc(body, message)
    count = count_messages(inflated(body, message, budget), budget, 1)
    if count > BATCH_RECORDS_MAX:
        raise InvalidMessage(f"a compressed message holds at most {BATCH_RECORDS_MAX} messages, not {count}")
    return count


def build_frame(body: bytes | memoryview, record_count: int, now_ms: int) -> bytearray:
    """Build a frame of a message set.

    Args:
        body: whole messages.
        record_count: how many they stand for, at least 1.
        now_ms: the time of the append.
    """
    frame = bytearray(HEADER_BYTES) + body
    size = len(frame) - LENGTH_OVERHEAD
    last = record_count - 1
    _HEADER.pack_into(frame, 0, 0, size, 0, Magic.KAFKA07_SET, 0, 0, last, now_ms, now_ms, -1, -1, -1, record_count)
    _CRC.pack_into(frame, _CRC_POSITION, frame_crc(memoryview(frame)))
    return frame


def walk_records(frame: memoryview) -> Iterator[Record]:
    """The records of a stored frame of magic KAFKA07_SET: payloads as values, no keys, the time of the append.

    Raises:
        InvalidMessage: the messages are not what the header says; the frame's checksum does not let it come to this.
    """
    header = read_frame_header(frame)
    count = 0
    for payload in payloads(frame[HEADER_BYTES : header.size]):
        yield Record(
            offset=header.base_offset + count,
            timestamp_ms=header.max_timestamp,
            key=None,
            value=bytes(payload),
            append_time=True,
        )
        count += 1
    if count != header.record_count:
        raise InvalidMessage(f"a frame of {header.record_count} messages holds {count}")


def read_records(frame: memoryview) -> list[Record]:
    """All of `walk_records`."""
    return list(walk_records(frame))


def encode_records(records: Iterable[Record], magic: int) -> bytes:
    """The message set that stands for records of another protocol: a message each, not compressed.

    A value of null becomes an empty payload; keys, headers and times have no place in the format.

    Args:
        records: in order.
        magic: 0 or 1, of every message.
    """
    return b"".join([encode_message(record.value or b"", magic) for record in records])


def message_position(frame: memoryview, header: FrameHeader, offset: int) -> int:
    """Where in the body of a stored frame the message with an offset begins; a wrapper for all messages inside.

    Args:
        frame: of magic KAFKA07_SET.
        header: of the frame.
        offset: one of the frame's.
    """
    body = frame[HEADER_BYTES : header.size]
    left = offset - header.base_offset
    position = 0
    while message := message_at(body, position):
        left -= 1 if message.codec is Codec.NONE else sum(1 for _ in payloads(body[position : message.stop]))
        if left < 0:
            break
        position = message.stop
    return position
