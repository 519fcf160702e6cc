"""What compaction reads in frames, and what it leaves of them.

The key of a message is its partition key; a message without content deletes its key, whether it says so or not. Of a
batch, the messages that stay keep their places. Chunks and encrypted entries stay as they are: nobody can tell what
their messages are. Frames of other protocols become batches in which the records that are left out are missing.

Source: Pulsar binary protocol specification 3.0; compaction of Apache Pulsar.
"""

import struct
from collections.abc import Collection, Sequence
from typing import Final

from millstream.broker.keyed_frames import Buffer, KeyedRecord
from millstream.model.frame import HEADER_BYTES, LENGTH_OVERHEAD, FrameHeader, Magic, frame_crc
from millstream.sessions.compaction import marked
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.pulsar.entry import Entry, compact_entry, read_entry, read_messages
from millstream.wire.pulsar.pulsar_pb2 import NONE, SingleMessageMetadata
from millstream.wire.pulsar.sticky_key import partition_key
from millstream.wire.translation import batch_of, read_records

__all__ = ["PulsarFrameRecords"]

_INT32: Final = struct.Struct(">i")
_LENGTH_POSITION: Final = 8
_RECORD_COUNT_POSITION: Final = 57
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 17


class PulsarFrameRecords:
    """Reads the keys of any frame, as Pulsar clients see it."""

    def keys(self, header: FrameHeader, frame: memoryview) -> Sequence[KeyedRecord]:
        """See `FrameRecords.keys`."""
        try:
            if header.magic == Magic.PULSAR_ENTRY:
                return _entry_keys(read_entry(frame[HEADER_BYTES:]))
            base_offset = header.base_offset
            return [
                KeyedRecord(record.offset - base_offset, record.key, not record.value)
                for record in read_records(frame)
            ]
        except (WireError, CompressionError):
            return ()

    def keep(self, header: FrameHeader, frame: memoryview, kept: Collection[int]) -> bytearray | None:
        """See `FrameRecords.keep`."""
        if header.magic == Magic.PULSAR_ENTRY:
            entry = read_entry(frame[HEADER_BYTES:])
            return _reframed(frame, compact_entry(entry, kept), len(kept)) if entry.is_batch else None
        base_offset = header.base_offset
        return batch_of([one for one in read_records(frame) if one.offset - base_offset in kept], header)

    def with_horizon(self, header: FrameHeader, frame: memoryview, horizon_ms: int) -> Buffer:
        """See `FrameRecords.with_horizon`; of entries alone."""
        return marked(frame, horizon_ms)


def _entry_keys(entry: Entry) -> Sequence[KeyedRecord]:
    if entry.is_chunk or entry.is_encrypted:
        return (KeyedRecord(0, None, deletes=False),)
    metadata = entry.metadata
    if not entry.is_batch:
        size_bytes = len(entry.payload) if metadata.compression == NONE else metadata.uncompressed_size
        return (KeyedRecord(0, partition_key(metadata), metadata.null_value or not size_bytes),)
    return [
        KeyedRecord(index, partition_key(single), single.null_value or not content)
        for index, single, content in read_messages(entry)
        if not (isinstance(single, SingleMessageMetadata) and single.compacted_out)
    ]


def _reframed(frame: memoryview, body: bytearray, record_count: int) -> bytearray:
    """A frame with the header of another, around another body of fewer records."""
    out = bytearray(frame[:HEADER_BYTES]) + body
    _INT32.pack_into(out, _LENGTH_POSITION, len(out) - LENGTH_OVERHEAD)
    _INT32.pack_into(out, _RECORD_COUNT_POSITION, record_count)
    _CRC.pack_into(out, _CRC_POSITION, frame_crc(memoryview(out)))
    return out
