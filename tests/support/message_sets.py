"""Message sets of magic 0 and 1, built and taken apart by kafka-python: a codec that is not ours."""

import struct
import zlib
from collections.abc import Iterable, Sequence

from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from millstream.model.record import Record

__all__ = ["LOG_APPEND_TIME", "message", "message_set", "read_messages", "resealed"]

LOG_APPEND_TIME = 8
"""The bit of a message's attributes."""
_ROOM_BYTES = 100_000_000


def message_set(magic: int, codec: int, records: Iterable[Record]) -> bytearray:
    """A set as a producer sends it.

    Args:
        magic: 0 or 1.
        codec: Kafka's number; 0 for messages that are not compressed.
        records: their times count in magic 1 only.
    """
    builder = MemoryRecordsBuilder(magic, codec, _ROOM_BYTES)
    for one in records:
        assert builder.append(one.timestamp_ms, one.key, one.value) is not None
    builder.close()
    return bytearray(builder.buffer())


def read_messages(data: bytes | bytearray | memoryview) -> list[Record]:
    """The records of a set that was fetched; every checksum is verified."""
    found = []
    reader = MemoryRecords(bytes(data))
    while reader.has_next():
        batch = reader.next_batch()
        assert batch.validate_crc()
        found += [
            Record(
                offset=one.offset,
                timestamp_ms=-1 if one.timestamp is None else one.timestamp,
                key=one.key,
                value=one.value,
                append_time=one.timestamp_type == 1,
            )
            for one in batch
        ]
    return found


def message(
    value: bytes | None,
    *,
    magic: int = 0,
    key: bytes | None = None,
    attributes: int = 0,
    timestamp_ms: int = 1000,
    offset: int = 0,
) -> bytearray:
    """One message, field by field, which need not make sense."""
    content = struct.pack(">bb", magic, attributes)
    if magic == 1:
        content += struct.pack(">q", timestamp_ms)
    content += b"".join(_with_length(one) for one in (key, value))
    return bytearray(struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content)


def _with_length(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def resealed(messages: Sequence[int] | bytearray) -> bytearray:
    """A set of one message with a checksum that fits what was done to it."""
    made = bytearray(messages)
    made[12:16] = struct.pack(">I", zlib.crc32(made[16:]))
    return made
