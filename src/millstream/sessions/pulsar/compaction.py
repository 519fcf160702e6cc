"""What compaction reads in frames, and what it leaves of them.

The key of a message is its partition key; a message without content deletes its key, whether it says so or not. Of a
batch, the messages that stay keep their places. Chunks and encrypted entries stay as they are: nobody can tell what
their messages are. Frames of other protocols become batches in which the records that are left out are missing.

Source: Pulsar binary protocol specification 3.0; compaction of Apache Pulsar.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from millstream.broker.keyed_frames import SLICE_RECORDS, Buffer, KeyedRecord, OpenFrame
from millstream.broker.steps import Steps
from millstream.model.frame import HEADER_BYTES, LENGTH_OVERHEAD, FrameHeader, Magic, frame_crc
from millstream.sessions.compaction import IN_PLACE_BYTES, NeutralFrame, collected, handed_over, marked, walked
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.pulsar.entry import CompactedEntry, Entry, read_entry, read_messages, uncompressed_payload
from millstream.wire.pulsar.pulsar_pb2 import NONE, SingleMessageMetadata
from millstream.wire.pulsar.sticky_key import partition_key

__all__ = ["PulsarFrameRecords"]

_INT32: Final = struct.Struct(">i")
_LENGTH_POSITION: Final = 8
_RECORD_COUNT_POSITION: Final = 57
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 17


class PulsarFrameRecords:
    """Reads the keys of any frame, as Pulsar clients see it."""

    def open(self, header: FrameHeader, frame: memoryview) -> Steps[OpenFrame | None]:
        """See `FrameRecords.open`."""
        try:
            if header.magic == Magic.PULSAR_ENTRY:
                return (yield from _opened(header, frame))
            base_offset = header.base_offset
            records = yield from walked(header, frame)
            slices = yield from collected(
                KeyedRecord(record.offset - base_offset, record.key, not record.value) for record in records
            )
        except (WireError, CompressionError):
            return None
        return NeutralFrame(header, frame, slices)


def _opened(header: FrameHeader, frame: memoryview) -> Steps[OpenFrame]:
    entry = read_entry(frame[HEADER_BYTES:])
    metadata = entry.metadata
    if entry.is_chunk or entry.is_encrypted:
        return _OpenSingle(frame, KeyedRecord(0, None, deletes=False))
    if not entry.is_batch:
        size_bytes = len(entry.payload) if metadata.compression == NONE else metadata.uncompressed_size
        deletes = metadata.null_value or not size_bytes
        return _OpenSingle(frame, KeyedRecord(0, partition_key(metadata), deletes))
    payload = entry.payload
    if metadata.compression != NONE:
        unpack = partial(uncompressed_payload, entry)
        payload = unpack() if metadata.uncompressed_size <= IN_PLACE_BYTES else (yield unpack)
    slices = yield from collected(
        KeyedRecord(index, partition_key(single), single.null_value or not content)
        for index, single, content in read_messages(entry, payload)
        if not (isinstance(single, SingleMessageMetadata) and single.compacted_out)
    )
    return _OpenBatch(header, frame, entry, payload, slices)


class _OpenSingle:
    """An entry that stays or goes as a whole."""

    def __init__(self, frame: memoryview, record: KeyedRecord) -> None:
        self._frame = frame
        self._record = record

    def records(self) -> Iterator[Sequence[KeyedRecord]]:
        return iter(((self._record,),))

    def left(self, stays: bytearray, horizon_ms: int | None) -> Steps[Buffer | None]:
        yield from ()
        return None if horizon_ms is None else marked(self._frame, horizon_ms)


class _OpenBatch:
    def __init__(
        self,
        header: FrameHeader,
        frame: memoryview,
        entry: Entry,
        payload: memoryview,
        slices: list[list[KeyedRecord]],
    ) -> None:
        self._header = header
        self._frame = frame
        self._entry = entry
        self._payload = payload
        self._slices = slices

    def records(self) -> Iterator[Sequence[KeyedRecord]]:
        return handed_over(self._slices)

    def left(self, stays: bytearray, horizon_ms: int | None) -> Steps[Buffer | None]:
        count = stays.count(1)
        if count == self._header.record_count:
            return None if horizon_ms is None else marked(self._frame, horizon_ms)
        compacted = CompactedEntry(self._entry)
        for message in read_messages(self._entry, self._payload):
            if message.batch_index and message.batch_index % SLICE_RECORDS == 0:
                yield None
            compacted.add(message, stays=bool(stays[message.batch_index]))

        def seal() -> bytearray:
            framed = _reframed(self._frame, compacted.encode(), count)
            return framed if horizon_ms is None else marked(framed, horizon_ms)

        if compacted.payload_bytes <= IN_PLACE_BYTES:
            return seal()
        sealed: bytearray = yield seal
        return sealed


def _reframed(frame: memoryview, body: bytearray, record_count: int) -> bytearray:
    """A frame with the header of another, around another body of fewer records."""
    out = bytearray(frame[:HEADER_BYTES]) + body
    _INT32.pack_into(out, _LENGTH_POSITION, len(out) - LENGTH_OVERHEAD)
    _INT32.pack_into(out, _RECORD_COUNT_POSITION, record_count)
    _CRC.pack_into(out, _CRC_POSITION, frame_crc(memoryview(out)))
    return out
