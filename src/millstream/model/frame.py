"""The frame that every batch of the log stands in, whoever wrote it.

It is the header of a Kafka record batch of magic 2, byte for byte, big-endian:

    byte  size  field
       0     8  base_offset        offset of the first record; the log writes it, no checksum covers it
       8     4  length             bytes that follow this field
      12     4  leader_epoch       always 0 in this log, which has one leader for ever; no checksum covers it
      16     1  magic              the encoding of the body, see below; no checksum covers it
      17     4  crc                crc32c of everything from byte 21 to the end
      21     2  attributes         bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
      23     4  last_offset_delta  offset of the last record minus base_offset
      27     8  first_timestamp    ms since 1970; with bit 6 the time from which on compaction drops tombstones
      35     8  max_timestamp      ms since 1970
      43     8  producer_id        -1 for none
      51     2  producer_epoch     -1 for none
      53     4  base_sequence      -1 for none
      57     4  record_count
      61        the body

The four fields that no checksum covers are still guarded: offsets in a log are dense, so a base offset must
follow from the batch before; a wrong length fails the checksum; the epoch is constant; and any two magic
values differ in two bits at least, so that no single flipped bit turns one encoding into another.

A frame may have fewer records than offsets, where compaction has taken some away. One that has none is *empty*: the
header alone, of magic 2 whatever stood there before. It keeps offsets dense, and tells what a producer wrote last.

A transactional frame whose producer_id is -1 belongs to a transaction of the broker's own coordinator: its number is
in the two fields behind, producer_epoch << 31 | base_sequence, see `transaction_of`.

Source: Apache Kafka documentation, "Record Batch"; KIP-534 for bit 6; the magic values other than 2 are ours.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from crc32c import crc32c

__all__ = [
    "CODEC_MASK",
    "CRC_FROM",
    "CRC_POSITION",
    "HEADER_BYTES",
    "LENGTH_OVERHEAD",
    "MAGICS",
    "Attributes",
    "FrameHeader",
    "Magic",
    "base_offset_at",
    "empty_frame",
    "frame_crc",
    "read_frame_header",
    "set_base_offset",
    "set_delete_horizon",
    "set_log_append_time",
    "transaction_fields",
    "transaction_of",
]

HEADER_BYTES: Final = 61
LENGTH_OVERHEAD: Final = 12
"""Bytes of a frame that its `length` does not count: the base offset and the length itself."""
CRC_POSITION: Final = 17
CRC_FROM: Final = 21
"""Position in the frame of the first byte that the checksum covers."""
CODEC_MASK: Final = 0x07

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_unpack: Final = _HEADER.unpack_from
_new: Final = tuple.__new__
"""Makes a header of as many fields as it has, in two thirds of the time that `FrameHeader._make` takes."""
_BASE_OFFSET: Final = struct.Struct(">q")
_LEADER_EPOCH: Final = struct.Struct(">i")
_ATTRIBUTES: Final = struct.Struct(">h")
_FIRST_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_UINT32: Final = struct.Struct(">I")
_SEQUENCE_BITS: Final = 31
TRANSACTION_NUMBERS_MAX: Final = 2**46
"""Numbers of transactions that a frame has room for."""


class Magic(IntEnum):
    """The encoding of a frame's body. Any two values differ in at least two bits."""

    KAFKA_V2 = 2
    """The records of a Kafka batch of magic 2."""
    PULSAR_ENTRY = 4
    """A Pulsar entry as its producer sent it: from its 0x0e01 on, or from its metadata size if it has no checksum."""
    IGGY_BATCH = 8
    """Messages of an Iggy client, behind a prefix that names their layout."""
    KAFKA07_SET = 16
    """A message set of the Kafka 0.7 format."""


MAGICS: Final = frozenset(int(magic) for magic in Magic)
"""The magic values that a frame may have, as plain numbers."""


class Attributes:
    """The bits of `attributes` above the codec: plain numbers, because every batch is tested for each."""

    LOG_APPEND_TIME: Final = 0x08
    TRANSACTIONAL: Final = 0x10
    CONTROL: Final = 0x20
    DELETE_HORIZON: Final = 0x40


class FrameHeader(NamedTuple):
    """The fields of a frame's header, in their order on disk; the module's text says what each means."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole frame."""
        return self.length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def early_ms(self) -> int:
        """A time of its records, in ms: of the first, as far as the header still tells."""
        return self.max_timestamp if self.attributes & Attributes.DELETE_HORIZON else self.first_timestamp

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which on compaction drops the frame's tombstones; None if it has not met them yet."""
        return self.first_timestamp if self.attributes & Attributes.DELETE_HORIZON else None


def read_frame_header(buf: bytes | bytearray | memoryview, position: int = 0) -> FrameHeader:
    """Read a header.

    Raises:
        struct.error: fewer than HEADER_BYTES bytes stand at the position.
    """
    return _new(FrameHeader, _unpack(buf, position))


def base_offset_at(buf: memoryview, position: int) -> int:
    """The base offset of the frame at a position."""
    offset: int = _BASE_OFFSET.unpack_from(buf, position)[0]
    return offset


def frame_crc(frame: memoryview) -> int:
    """The checksum that a frame should carry.

    Args:
        frame: the whole frame and nothing behind it.
    """
    return crc32c(frame[CRC_FROM:])


def set_base_offset(frame: memoryview, base_offset: int) -> None:
    """Give a frame its place in the log: its base offset, and the log's leader epoch 0."""
    _BASE_OFFSET.pack_into(frame, 0, base_offset)
    _LEADER_EPOCH.pack_into(frame, 12, 0)


def set_log_append_time(frame: memoryview, timestamp_ms: int) -> None:
    """Stamp a frame with the time of its append, as `message.timestamp.type=LogAppendTime` wants."""
    (attributes,) = _ATTRIBUTES.unpack_from(frame, CRC_FROM)
    _ATTRIBUTES.pack_into(frame, CRC_FROM, attributes | Attributes.LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(frame, 35, timestamp_ms)
    _UINT32.pack_into(frame, CRC_POSITION, frame_crc(frame))


def set_delete_horizon(frame: memoryview, horizon_ms: int) -> None:
    """Note from when on compaction drops the tombstones of a frame. Times that its records count from the first one
    are the caller's to change."""
    (attributes,) = _ATTRIBUTES.unpack_from(frame, CRC_FROM)
    _ATTRIBUTES.pack_into(frame, CRC_FROM, attributes | Attributes.DELETE_HORIZON)
    _FIRST_TIMESTAMP.pack_into(frame, 27, horizon_ms)
    _UINT32.pack_into(frame, CRC_POSITION, frame_crc(frame))


def empty_frame(base_offset: int, last_offset: int, producer: FrameHeader | None = None) -> bytes:
    """A frame without records that takes some offsets.

    Args:
        base_offset, last_offset: the first and the last; less than 2**31 apart.
        producer: the frame it stands for, if what its producer wrote there is to stay known.
    """
    attributes, time_ms, producer_fields = 0, -1, (-1, -1, -1)
    if producer is not None:
        attributes, time_ms = producer.attributes & Attributes.TRANSACTIONAL, producer.max_timestamp
        producer_fields = producer.producer_id, producer.producer_epoch, producer.base_sequence
    frame = bytearray(HEADER_BYTES)
    fields = attributes, last_offset - base_offset, time_ms, time_ms, *producer_fields, 0
    _HEADER.pack_into(frame, 0, base_offset, HEADER_BYTES - LENGTH_OVERHEAD, 0, Magic.KAFKA_V2, 0, *fields)
    _UINT32.pack_into(frame, CRC_POSITION, frame_crc(memoryview(frame)))
    return bytes(frame)


def transaction_fields(number: int) -> tuple[int, int]:
    """The producer_epoch and the base_sequence of the frames of a transaction.

    Args:
        number: of the transaction, from 0 to TRANSACTION_NUMBERS_MAX - 1.
    """
    return number >> _SEQUENCE_BITS, number & (1 << _SEQUENCE_BITS) - 1


def transaction_of(header: FrameHeader) -> int | None:
    """The number of the transaction that a frame belongs to; None if it is in none of the broker's own."""
    if not header.attributes & Attributes.TRANSACTIONAL or header.producer_id >= 0 or header.base_sequence < 0:
        return None
    return header.producer_epoch << _SEQUENCE_BITS | header.base_sequence
