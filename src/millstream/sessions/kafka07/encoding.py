"""What a partition looks like to a client of Kafka 0.7: the bytes of any frame as a message set.

A frame that such a client wrote is its own body. Any other is translated: a message without compression for each
record, of the magic that the setting `kafka07.magic` names, which is the *variant* of the encoding.
"""

from collections.abc import Sequence

from millstream.broker.address_index import Buffer
from millstream.model.frame import CODEC_MASK, HEADER_BYTES, Attributes, FrameHeader, Magic
from millstream.model.record import Record
from millstream.sessions.kafka07.batch_values import lay_out
from millstream.wire.compression import Codec, CompressionError, decompress
from millstream.wire.errors import WireError
from millstream.wire.kafka07.frames import encode_records, message_position
from millstream.wire.kafka07.message_walk import seal
from millstream.wire.kafka07.messages import MESSAGE_HEAD_BYTES
from millstream.wire.translation import read_records

__all__ = ["MessageSets"]


class MessageSets:
    """The encoding of `millstream.broker.address_index.Encoding` for Kafka 0.7.

    Args:
        magic: of messages that stand for what others wrote, 0 or 1.
    """

    def __init__(self, magic: int) -> None:
        self.variant = magic

    def size(self, frame: memoryview, header: FrameHeader, variant: int) -> int:
        """Bytes of a whole frame as a message set."""
        if header.magic == Magic.KAFKA07_SET:
            return header.size - HEADER_BYTES
        if header.magic == Magic.KAFKA_V2:
            return max(lay_out(_batch_body(frame, header), header.record_count, variant, None), 0)
        records = _records(frame)
        return sum([len(record.value or b"") for record in records]) + MESSAGE_HEAD_BYTES[variant] * len(records)

    def encode(self, frame: memoryview, header: FrameHeader, variant: int) -> Buffer:
        """A whole frame as a message set."""
        if header.magic == Magic.KAFKA07_SET:
            return frame[HEADER_BYTES:]
        if header.magic == Magic.KAFKA_V2:
            return _encode_batch(_batch_body(frame, header), header.record_count, variant)
        return encode_records(_records(frame), variant)

    def position(self, frame: memoryview, header: FrameHeader, variant: int, offset: int) -> int:
        """Where in the message set the message of an offset begins; a compressed message for all that are inside."""
        if header.magic == Magic.KAFKA07_SET:
            return message_position(frame, header, offset)
        before = [record for record in _records(frame) if record.offset < offset]
        return sum([len(record.value or b"") for record in before]) + MESSAGE_HEAD_BYTES[variant] * len(before)


def _batch_body(frame: memoryview, header: FrameHeader) -> memoryview:
    """The records of a Kafka batch, decompressed; none if they are a mark of a transaction, or cannot be read."""
    if header.attributes & Attributes.CONTROL:
        return memoryview(b"")
    try:
        return decompress(Codec(header.attributes & CODEC_MASK), frame[HEADER_BYTES : header.size])
    except (CompressionError, ValueError):
        return memoryview(b"")


def _encode_batch(body: memoryview, count: int, magic: int) -> Buffer:
    size = lay_out(body, count, magic, None)
    if size <= 0:
        return b""
    messages = bytearray(size)
    lay_out(body, count, magic, memoryview(messages))
    seal(messages)
    return messages


def _records(frame: memoryview) -> Sequence[Record]:
    """The records of another protocol's frame; none if its own clients could not read it either."""
    try:
        return read_records(frame)
    except (WireError, CompressionError):
        return ()
