"""What a partition looks like to a client of Kafka 0.7: the bytes of any frame as a message set.

A frame that such a client wrote is its own body. Any other is translated: a message without compression for each
record, of the magic that the setting `kafka07.magic` names, which is the *variant* of the encoding.
"""

from collections.abc import Hashable, Sequence
from typing import Final

from millstream.broker.address_index import Buffer
from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import HEADER_BYTES, FrameHeader, Magic
from millstream.model.frame_span import FrameSpan
from millstream.model.record import Record
from millstream.model.record_table import RecordTable
from millstream.sessions.translated import translated
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.kafka07.frames import encode_records, message_position
from millstream.wire.kafka07.message_tables import encode_table, encoded_bytes
from millstream.wire.kafka07.messages import MESSAGE_HEAD_BYTES, message_at
from millstream.wire.translation import read_records, translate

__all__ = ["MessageSets"]


class _MessageSet:
    """The form of message sets of one magic."""

    def __init__(self, magic: int) -> None:
        self._magic = magic
        self.name: Hashable = ("kafka07 message set", magic)

    def of_table(self, table: RecordTable) -> Buffer:
        return encode_table(table, self._magic)

    def of_records(self, records: Sequence[Record], header: FrameHeader) -> Buffer:
        return encode_records(records, self._magic)

    def size_bytes(self, made: Buffer) -> int:
        return len(made)


class _SetBytes:
    """How many bytes that would be, which is cheaper to tell."""

    def __init__(self, magic: int) -> None:
        self._magic = magic
        self.name: Hashable = ("bytes of a kafka07 message set", magic)

    def of_table(self, table: RecordTable) -> int:
        return encoded_bytes(table, self._magic)

    def of_records(self, records: Sequence[Record], header: FrameHeader) -> int:
        return sum(len(record.value or b"") for record in records) + MESSAGE_HEAD_BYTES[self._magic] * len(records)

    def size_bytes(self, made: int) -> int:
        return 0


_SETS: Final = (_MessageSet(0), _MessageSet(1))
_SET_BYTES: Final = (_SetBytes(0), _SetBytes(1))


class MessageSets:
    """The encoding of `millstream.broker.address_index.Encoding` for Kafka 0.7.

    Args:
        magic: of messages that stand for what others wrote, 0 or 1.
        frames: keeps what was translated.
    """

    def __init__(self, magic: int, frames: TranslatedFrames) -> None:
        self.variant = magic
        self._frames = frames

    def size(self, span: FrameSpan, variant: int) -> int:
        """Bytes of whole frames as a message set."""
        if span.magic == Magic.KAFKA07_SET:
            return len(span.data) - span.count * HEADER_BYTES
        try:
            size = translate(span, _SET_BYTES[variant])
        except (WireError, CompressionError):
            size = None
        if size is not None:
            return size
        return sum(self.size(frame, variant) for frame in span.frames()) if span.count > 1 else 0

    def encode(self, where: str, span: FrameSpan, variant: int) -> Buffer:
        """Whole frames as a message set; nothing of one that its own clients could not read either."""
        if span.magic == Magic.KAFKA07_SET:
            return span.data[HEADER_BYTES:] if span.count == 1 else b"".join(span.bodies())
        parts = [made for _, made in translated(self._frames, where, span, _SETS[variant]) if made is not None]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def position(self, frame: memoryview, header: FrameHeader, variant: int, offset: int) -> int:
        """Where in the message set the message of an offset begins; a compressed message for all that are inside."""
        if header.magic == Magic.KAFKA07_SET:
            return message_position(frame, header, offset)
        try:
            before = [record for record in read_records(frame) if record.offset < offset]
        except (WireError, CompressionError):
            return 0
        return sum(len(record.value or b"") for record in before) + MESSAGE_HEAD_BYTES[variant] * len(before)

    def boundary(self, content: memoryview, position: int) -> int:
        """The first position from one on at which a message begins; the end if there is none."""
        begins = 0
        while begins < position and (message := message_at(content, begins)):
            begins = message.stop
        return begins if begins >= position else len(content)
