"""Message sets of magic 0 and 1, which Kafka's clients spoke before 0.11: to record batches, and from them.

A set is a row of messages (see `message_places`). A compressed message holds a set in its value; it has the offset
of the last message in there. Inside one of magic 0 offsets are absolute, inside one of magic 1 they count from 0, and
its time of append, if it has one, is that of all messages in it. The log stores batches only, so sets are converted
once, when they are produced, and batches each time such a client fetches them.

Source: Apache Kafka documentation of 0.8 to 0.10, "Message sets"; KIP-31, KIP-32.
"""

import struct
from typing import Final
from zlib import crc32

from millstream.model.frame import CODEC_MASK, HEADER_BYTES, Attributes, FrameHeader, Magic, read_frame_header
from millstream.wire.compression import Codec, CompressionError, decompress
from millstream.wire.kafka.errors import CorruptBatch, InvalidRecords, UnsupportedCodec
from millstream.wire.kafka.message_codecs import pack, unpack
from millstream.wire.kafka.message_places import RecordSpan, RecordsTail, write_messages, write_records
from millstream.wire.kafka.records import InflationBudget, frame_records
from millstream.wire.limits import BATCH_RECORDS_MAX, INFLATED_BATCH_BYTES_MAX

__all__ = ["is_message_set", "to_batches", "to_messages"]

_MAGIC_POSITION: Final = 16
"""Of a set's first message and of a batch alike."""
_CODECS: Final = {1: Codec.GZIP, 2: Codec.SNAPPY, 3: Codec.LZ4}
_SIZE: Final = struct.Struct(">i")
_MESSAGE: Final = (struct.Struct(">qiIbbii"), struct.Struct(">qiIbbqii"))
"""By magic: offset, size, crc, magic, attributes, [timestamp,] length of the key, length of the value."""
_FIRST_CHECKED: Final = 16
_RECORD_GROWTH_MAX: Final = 4
"""A record is longer than its message by a fourth at most: by 6 bytes at most, and no message has less than 26."""
_MESSAGE_GROWTH_BYTES_MAX: Final = 27
"""A record without key and value has 7 bytes at least, as a message of magic 1 it has 34."""
_WRAPPED_BYTES_MAX: Final = 1024 * 1024
"""Bytes of messages in one compressed message that is made here. A batch that unpacks to more becomes several, so
that a client that asks for little is not sent all of it at once."""
_TIME_MAX_MS: Final = 2**63 - 1


def is_message_set(records: memoryview) -> bool:
    """Whether the records field of a produce request holds messages of magic 0 or 1, or nothing at all."""
    return len(records) <= _MAGIC_POSITION or records[_MAGIC_POSITION] < Magic.KAFKA_V2


def to_batches(messages: memoryview, batch_bytes_max: int, budget: InflationBudget) -> list[bytearray]:
    """Check a message set that was produced, and make batches of it.

    It becomes one batch, compressed as the last compressed message in it; more only where the messages, each of
    which the producer was free to make as large as a batch may be, are more than one batch holds.

    Args:
        messages: the set. The offsets in it do not count: producers of different years put different ones there.
        batch_bytes_max: how large a batch may be.
        budget: is drawn on for what is unpacked.

    Returns:
        Batches without a place in the log yet. If a message claims the time of its append, so does its batch.

    Raises:
        CorruptBatch: a message is cut off, or its size, checksum, magic or compression is wrong.
        UnsupportedCodec: a codec that messages of these magics do not have.
        InvalidRecords: a compressed message holds no messages, or compressed ones.
    """
    batches = []
    position = 0
    while position < len(messages):
        batch, position = _one_batch(messages, position, batch_bytes_max - HEADER_BYTES, budget)
        batches.append(batch)
    return batches


def _one_batch(
    messages: memoryview, position: int, room_bytes: int, budget: InflationBudget
) -> tuple[bytearray, int]:
    """Make one batch of as many messages as fit; gives the position behind them too."""
    stop = position + room_bytes
    tail, out, codec = RecordsTail(), bytearray(), Codec.NONE
    while True:
        _make_room(out, tail, _run_bytes(messages, position, stop))
        position = write_records(messages, position, stop, out, tail)
        if position == len(messages):
            break
        following = position + 12 + _SIZE.unpack_from(messages, position + 8)[0]
        if following > stop and tail.count:
            break
        # Only a compressed message stops the row while there is room.
        codec, inner = _unwrapped(messages[position:following], budget)
        before = tail.count
        _make_room(out, tail, len(inner))
        if write_records(inner, 0, len(inner), out, tail) != len(inner):
            raise InvalidRecords("a compressed message holds a compressed message")
        if tail.count == before:
            raise InvalidRecords("a compressed message holds no messages")
        if tail.written_bytes > INFLATED_BATCH_BYTES_MAX:
            raise InvalidRecords(f"messages unpack to more than the {INFLATED_BATCH_BYTES_MAX} bytes of a batch")
        if tail.count > BATCH_RECORDS_MAX:
            raise InvalidRecords(f"a batch has at most {BATCH_RECORDS_MAX} records, not {tail.count}")
        position = following
    body: bytes | bytearray
    if codec is Codec.NONE:
        del out[tail.written_bytes :]
        body = out
    else:
        body = pack(codec, memoryview(out)[: tail.written_bytes], Magic.KAFKA_V2)
    attributes = codec | (Attributes.LOG_APPEND_TIME if tail.append_time else 0)
    return frame_records(body, attributes, tail.count, tail.first_ms, tail.latest_ms), position


def _run_bytes(messages: memoryview, position: int, stop: int) -> int:
    """Bytes of messages that may be taken before `stop`, or of the first message if it is larger."""
    left = len(messages) - position
    first = 0
    if left >= 12:
        first = 12 + max(_SIZE.unpack_from(messages, position + 8)[0], 0)
    return max(min(stop - position, left), min(first, left))


def _make_room(out: bytearray, tail: RecordsTail, message_bytes: int) -> None:
    missing = tail.written_bytes + message_bytes + message_bytes // _RECORD_GROWTH_MAX - len(out)
    if missing > 0:
        out += bytes(missing)


def _unwrapped(message: memoryview, budget: InflationBudget) -> tuple[Codec, memoryview]:
    """Check one compressed message, which is as long as it says, and unpack it; gives its codec and the set in it."""
    magic, attributes = message[_MAGIC_POSITION], message[_MAGIC_POSITION + 1]
    head = _MESSAGE[magic]
    if len(message) < head.size:
        raise CorruptBatch(f"a message of magic {magic} has {len(message)} bytes")
    *_, crc, _, _, key_size = struct.unpack_from(">qiIbbi" if magic == 0 else ">qiIbb8xi", message)
    if crc32(message[_FIRST_CHECKED:]) != crc:
        raise CorruptBatch("the checksum of a message is wrong")
    codec = _CODECS.get(attributes & CODEC_MASK)
    if codec is None:
        raise UnsupportedCodec(f"messages of magic {magic} have no compression codec {attributes & CODEC_MASK}")
    value_at = head.size + max(key_size, 0)
    if value_at > len(message):
        raise CorruptBatch("the key of a message is longer than the message")
    (value_size,) = _SIZE.unpack_from(message, value_at - 4)
    if value_size != len(message) - value_at:
        raise CorruptBatch("the key and the value of a message do not fill it")
    try:
        inner = unpack(codec, message[value_at:], magic, min(INFLATED_BATCH_BYTES_MAX, budget.left_bytes))
    except CompressionError as error:
        raise CorruptBatch(str(error)) from None
    budget.left_bytes -= len(inner)
    return codec, inner


def to_messages(
    batches: memoryview, magic: int, from_offset: int, room_bytes: int, budget: InflationBudget
) -> tuple[bytearray, int]:
    """Make a message set of stored batches, for a client that knows no batches.

    Headers of records are lost, as message sets have none. What is compressed with gzip, snappy or LZ4 is compressed
    with it again; the rest is not compressed. Control batches are left out.

    Args:
        batches: whole batches of magic 2, one after the other.
        magic: 0 or 1; messages of 0 have no time.
        from_offset: records before it are left out.
        room_bytes: how long the set is to be at most, but for its first message.
        budget: is drawn on for what is unpacked; once it is used up, no further batch is begun.

    Returns:
        The set, and the offset behind what is in there. The set is empty if there are no records.

    Raises:
        CorruptBatch, InvalidRecords: a batch cannot be taken apart.
    """
    out = bytearray()
    position, next_offset = 0, from_offset
    while position < len(batches):
        header = read_frame_header(batches, position)
        batch = batches[position : position + header.size]
        position += header.size
        if header.last_offset < from_offset:
            continue
        if out and (len(out) >= room_bytes or budget.left_bytes <= 0):
            break
        if not header.attributes & Attributes.CONTROL:
            stop_offset = _add_batch(out, batch, header, magic, from_offset, room_bytes, budget)
            if stop_offset is not None:
                return out, stop_offset
        next_offset = header.last_offset + 1
    return out, next_offset


def _add_batch(
    out: bytearray,
    batch: memoryview,
    header: FrameHeader,
    magic: int,
    from_offset: int,
    room_bytes: int,
    budget: InflationBudget,
) -> int | None:
    """Add the records of a batch to a set; gives the offset behind them if there was no room for all, else None."""
    codec = Codec(header.attributes & CODEC_MASK)
    try:
        body = decompress(codec, batch[HEADER_BYTES:])
    except CompressionError as error:
        raise CorruptBatch(str(error)) from None
    if codec is not Codec.NONE:
        budget.left_bytes -= len(body)
    append_ms = header.max_timestamp if header.attributes & Attributes.LOG_APPEND_TIME else -1
    wraps = codec in _CODECS.values()
    span = RecordSpan(
        header.record_count, header.base_offset, max(from_offset - header.base_offset, 0), wraps and magic == 1
    )
    while span.index < span.count:
        # The first message of a set is written even where there is no room.
        left_bytes = max(room_bytes - len(out), 0 if out else 1)
        largest = len(body) - span.position + _MESSAGE_GROWTH_BYTES_MAX * (span.count - span.index)
        piece = bytearray(min(largest, _WRAPPED_BYTES_MAX if wraps else left_bytes))
        before = span.index, span.last_delta
        written = write_messages(body, span, header.first_timestamp, append_ms, magic, piece)
        if not written and span.index < span.count and (wraps or not out):
            piece = bytearray(span.needed_bytes)
            written = write_messages(body, span, header.first_timestamp, append_ms, magic, piece)
        if not written:
            break
        made = memoryview(piece)[:written]
        offset = header.base_offset + span.last_delta
        wrapper = _wrapper(codec, made, magic, offset, span.latest_ms, append_ms) if wraps else None
        if out and len(wrapper or made) > left_bytes:
            span.index, span.last_delta = before
            break
        out += wrapper or made
    if span.index == span.count:
        return None
    return max(header.base_offset + span.last_delta + 1, from_offset)


def _wrapper(
    codec: Codec, messages: memoryview, magic: int, offset: int, latest_ms: int, append_ms: int
) -> bytearray:
    """A compressed message around a set."""
    packed = pack(codec, messages, magic)
    head = _MESSAGE[magic]
    size = head.size - 12 + len(packed)
    message = bytearray(head.size) + packed
    if magic == 0:
        head.pack_into(message, 0, offset, size, 0, 0, codec, -1, len(packed))
    else:
        attributes = codec | (Attributes.LOG_APPEND_TIME if append_ms >= 0 else 0)
        head.pack_into(message, 0, offset, size, 0, 1, attributes, min(latest_ms, _TIME_MAX_MS), -1, len(packed))
    struct.pack_into(">I", message, 12, crc32(memoryview(message)[_FIRST_CHECKED:]))
    return message
