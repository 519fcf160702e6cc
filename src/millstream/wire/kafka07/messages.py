"""Messages and message sets of Kafka 0.7.

    magic 0: int32 length, uint8 0, uint32 crc, payload
    magic 1: int32 length, uint8 1, uint8 attributes, uint32 crc, payload

The length counts all behind it; the crc is CRC-32 as in zlib, over the payload alone. A set is messages one after
the other. Bits 0 and 1 of the attributes are a codec: 0 none, 1 gzip, 2 snappy. A compressed message is a wrapper:
its payload unpacks to a message set, in which every message counts.

Source: the Kafka 0.7 wire format page; kafka.message.Message and ByteBufferMessageSet of its 0.7 branch.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from zlib import crc32

from millstream.wire.compression import Codec, CompressionError, compress, decompress
from millstream.wire.kafka07.errors import InvalidMessage
from millstream.wire.kafka07.message_walk import pass_over
from millstream.wire.limits import INFLATED_BATCH_BYTES_MAX, INFLATED_REQUEST_BYTES_MAX

__all__ = [
    "MESSAGE_HEAD_BYTES",
    "NESTING_MAX",
    "InflationBudget",
    "Message",
    "check_crc",
    "count_messages",
    "encode_message",
    "encode_wrapper",
    "inflated",
    "message_at",
    "payloads",
]

MESSAGE_HEAD_BYTES: Final = (9, 10)
"""Bytes of a message before its payload, by its magic."""
NESTING_MAX: Final = 3
"""Wrappers that may stand inside each other. Clients write one; a mirror that compresses them again writes two."""
_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_HEADS: Final = (struct.Struct(">iBI"), struct.Struct(">iBBI"))
_CODEC_MASK: Final = 3
_CODECS: Final = (Codec.NONE, Codec.GZIP, Codec.SNAPPY)


class InflationBudget:
    """What the wrappers of one request may unpack to, all together.

    Args:
        left_bytes: how much is left.
    """

    __slots__ = ("left_bytes",)

    def __init__(self, left_bytes: int = INFLATED_REQUEST_BYTES_MAX) -> None:
        self.left_bytes = left_bytes


class Message(NamedTuple):
    """Where a message of a set stands.

    Args:
        codec: how its payload is compressed.
        start, stop: position in the set of its payload and behind it.
    """

    codec: Codec
    start: int
    stop: int

    @property
    def payload_bytes(self) -> int:
        """Bytes of its payload."""
        return self.stop - self.start


def message_at(body: memoryview, position: int) -> Message | None:
    """Read the head of a message. Its checksum is not looked at.

    Args:
        body: a message set.
        position: where the message begins.

    Returns:
        The message; None if the set ends before it does.

    Raises:
        InvalidMessage: its length, magic or codec is impossible.
    """
    left = len(body) - position
    if left < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(body, position)
    if length < 0:
        raise InvalidMessage(f"a message says that it has {length} bytes")
    stop = position + _LENGTH.size + length
    if stop > len(body):
        return None
    magic = body[position + 4] if length else 0
    if magic not in (0, 1):
        raise InvalidMessage(f"there is no magic {magic}")
    start = position + MESSAGE_HEAD_BYTES[magic]
    if stop < start:
        raise InvalidMessage(f"a message of {length} bytes is shorter than its head")
    codec = body[position + 5] & _CODEC_MASK if magic else 0
    if codec >= len(_CODECS):
        raise InvalidMessage(f"there is no compression codec {codec}")
    return Message(_CODECS[codec], start, stop)


def check_crc(body: memoryview, message: Message) -> None:
    """Check the payload of a message. Raises InvalidMessage."""
    (crc,) = _CRC.unpack_from(body, message.start - _CRC.size)
    if crc32(body[message.start : message.stop]) != crc:
        raise InvalidMessage("the checksum of a message is wrong")


def count_messages(body: memoryview, budget: InflationBudget, depth: int = 0) -> int:
    """Check a whole message set, and count the messages in it that are no wrappers.

    Args:
        body: the message set. A message that is cut off at the end does not count, unless it is the first.
        budget: is drawn on for what is unpacked.
        depth: wrappers around this set.

    Raises:
        InvalidMessage: a message is damaged, or a wrapper unpacks to more than is allowed.
    """
    position = count = 0
    end = len(body)
    while True:
        position, passed = pass_over(body, position, end, end)
        count += passed
        if position == end:
            return count
        message = message_at(body, position)
        if message is None:
            if not position and end >= _LENGTH.size:
                raise InvalidMessage("the first message of a set is not whole")
            return count
        check_crc(body, message)
        count += count_messages(inflated(body, message, budget, depth), budget, depth + 1)
        position = message.stop


def inflated(body: memoryview, message: Message, budget: InflationBudget, depth: int = 0) -> memoryview:
    """The message set inside a wrapper.

    Args:
        body: the set that holds the wrapper.
        message: the wrapper.
        budget: is drawn on.
        depth: wrappers around this one.

    Raises:
        InvalidMessage: it cannot be unpacked, unpacks to more than is allowed, or stands in too many others.
    """
    if depth >= NESTING_MAX:
        raise InvalidMessage(f"more than {NESTING_MAX} compressed messages stand inside each other")
    limit_bytes = min(INFLATED_BATCH_BYTES_MAX, budget.left_bytes)
    try:
        inner = decompress(message.codec, body[message.start : message.stop], limit_bytes)
    except CompressionError as error:
        raise InvalidMessage(str(error)) from None
    budget.left_bytes -= len(inner)
    return inner


def payloads(body: memoryview, budget: InflationBudget | None = None, depth: int = 0) -> Iterator[memoryview]:
    """The payloads of a message set that was checked, those inside wrappers in their place.

    Args:
        body: the message set.
        budget: is drawn on for what is unpacked; None for a new one for each wrapper, as the check has let all pass.
        depth: wrappers around this set.

    Raises:
        InvalidMessage: as `inflated`, and for a head that makes no sense.
    """
    position = 0
    while True:
        message = message_at(body, position)
        if message is None:
            return
        if message.codec is Codec.NONE:
            yield body[message.start : message.stop]
        else:
            yield from payloads(inflated(body, message, budget or InflationBudget(), depth), budget, depth + 1)
        position = message.stop


def encode_message(payload: bytes | memoryview, magic: int = 0, attributes: int = 0) -> bytes:
    """Encode one message.

    Args:
        payload: its bytes.
        magic: 0 or 1.
        attributes: for magic 1.
    """
    if magic:
        return _HEADS[1].pack(len(payload) + 6, 1, attributes, crc32(payload)) + payload
    return _HEADS[0].pack(len(payload) + 5, 0, crc32(payload)) + payload


def encode_wrapper(messages: Iterable[bytes], codec: Codec) -> bytes:
    """Encode messages as one compressed message; snappy as a raw block."""
    return encode_message(compress(codec, b"".join(messages)), 1, codec)
