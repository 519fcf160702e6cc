"""Record batches of magic 2: checking what a producer sent, taking one apart, building one.

A batch is the frame of `millstream.model.frame` with a body of records, compressed as a whole. A record is

    length: varint, attributes: int8, timestamp_delta: varlong, offset_delta: varint,
    key: varint length and bytes, value: the same, headers: varint count and (key, value) each

with lengths of -1 for null; all varints are zigzag.

Source: Apache Kafka documentation, "Record Batch" and "Record".
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from millstream.model.frame import (
    CODEC_MASK,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    Attributes,
    FrameHeader,
    Magic,
    frame_crc,
    read_frame_header,
)
from millstream.model.record import Record
from millstream.wire.compression import Codec, CompressionError, compress, decompress
from millstream.wire.kafka.errors import CorruptBatch, InvalidRecords, UnsupportedCodec
from millstream.wire.kafka.primitives import signed_varint
from millstream.wire.kafka.record_places import misplaced
from millstream.wire.limits import BATCH_RECORDS_MAX, INFLATED_BATCH_BYTES_MAX, INFLATED_REQUEST_BYTES_MAX

__all__ = [
    "InflationBudget",
    "PlacedBatch",
    "build_batch",
    "check_batch",
    "first_late_record",
    "frame_records",
    "has_null_key",
    "place_batch",
    "read_frame",
    "read_records",
    "seal_batch",
    "walk_frame",
]

_CODECS: Final = {int(codec): codec for codec in Codec}
_NULL: Final = 1
"""The first byte of a length of -1."""
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_TIME_END_MS: Final = 2**63
"""The first time that an int64 does not hold. A delta may lead there, and an answer could not carry it."""


class InflationBudget:
    """What the compressed batches of one request may unpack to, all together.

    Args:
        left_bytes: how much is left.
    """

    __slots__ = ("left_bytes",)

    def __init__(self, left_bytes: int = INFLATED_REQUEST_BYTES_MAX) -> None:
        self.left_bytes = left_bytes


def check_batch(batch: memoryview, budget: InflationBudget | None = None) -> FrameHeader:
    """Check that a batch may be stored: framing, checksum, counts, codec and every record's place.

    Args:
        batch: the records field of one partition in a Produce request.
        budget: is drawn on for what is unpacked; None for one batch's own limit.

    Returns:
        The header of the batch.

    Raises:
        CorruptBatch: too short, not the length it says, or a wrong checksum.
        UnsupportedCodec: the codec does not exist.
        InvalidRecords: anything else that a reader could not make sense of.
    """
    if len(batch) < HEADER_BYTES:
        if len(batch) > 16 and batch[16] < Magic.KAFKA_V2:
            raise InvalidRecords("nothing but a record batch of magic 2 is allowed")
        raise CorruptBatch(f"a batch of {len(batch)} bytes is shorter than its header")
    header = read_frame_header(batch)
    if header.magic != Magic.KAFKA_V2:
        raise InvalidRecords(f"a batch of magic {header.magic} where only 2 is allowed")
    if header.size > len(batch) or header.size < HEADER_BYTES:
        raise CorruptBatch(f"a batch says it has {header.size} bytes, and {len(batch)} were sent")
    if header.size < len(batch):
        raise InvalidRecords("more than one batch was sent for a partition")
    if frame_crc(batch) != header.crc:
        raise CorruptBatch("the checksum of a batch is wrong")
    codec = _CODECS.get(header.attributes & CODEC_MASK)
    if codec is None:
        raise UnsupportedCodec(f"there is no compression codec {header.attributes & CODEC_MASK}")
    if header.attributes & Attributes.CONTROL:
        raise InvalidRecords("a client may not write a control batch")
    if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
        raise InvalidRecords(
            f"a batch of {header.record_count} records has a last offset delta of {header.last_offset_delta}"
        )
    if header.record_count > BATCH_RECORDS_MAX:
        raise InvalidRecords(f"a batch has at most {BATCH_RECORDS_MAX} records, not {header.record_count}")
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise InvalidRecords("a batch has a producer id but no epoch or sequence")
    budget = budget or InflationBudget()
    try:
        body = decompress(codec, batch[HEADER_BYTES:], min(INFLATED_BATCH_BYTES_MAX, budget.left_bytes))
    except CompressionError as error:
        raise CorruptBatch(str(error)) from None
    if codec is not Codec.NONE:
        budget.left_bytes -= len(body)
    index = misplaced(body, header.record_count)
    if index >= 0:
        raise InvalidRecords(f"record {index} of a batch of {header.record_count} is not whole, or not in its place")
    return header


def _raw_varint(buf: memoryview, position: int) -> tuple[int, int]:
    """Read a varint without undoing the zigzag; IndexError at the end of the buffer."""
    value = shift = 0
    while True:
        byte = buf[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise InvalidRecords("a varint in a record has more than 64 bits")


def _varint(buf: memoryview, position: int) -> tuple[int, int]:
    value, position = _raw_varint(buf, position)
    return (value >> 1) ^ -(value & 1), position


def read_records(batch: memoryview) -> Iterator[Record]:
    """Take a stored batch apart.

    Args:
        batch: one whole frame of magic 2.

    Raises:
        CorruptBatch: the body cannot be decompressed.
        InvalidRecords: the records do not fit the body.
    """
    header, body = _opened(batch)
    append_time = bool(header.attributes & Attributes.LOG_APPEND_TIME)
    position = 0
    try:
        for _ in range(header.record_count):
            length, position = _varint(body, position)
            stop = position + length
            timestamp_delta, position = _varint(body, position + 1)
            offset_delta, position = _varint(body, position)
            key, position = _bytes(body, position)
            value, position = _bytes(body, position)
            count, position = _varint(body, position)
            headers = []
            for _ in range(count):
                name, position = _bytes(body, position)
                content, position = _bytes(body, position)
                headers.append((str(name or b"", "utf-8", "replace"), content))
            timestamp_ms = header.max_timestamp if append_time else header.first_timestamp + timestamp_delta
            if not -_TIME_END_MS <= timestamp_ms < _TIME_END_MS:
                raise InvalidRecords("the time of a record has more than 64 bits")
            yield Record(
                offset=header.base_offset + offset_delta,
                timestamp_ms=timestamp_ms,
                key=key,
                value=value,
                headers=tuple(headers),
                append_time=append_time,
            )
            position = stop
    except IndexError:
        raise InvalidRecords("a batch ends before its records do") from None


def walk_frame(frame: memoryview) -> Iterator[Record]:
    """The records of a stored batch for other protocols, none if it is a control batch; see `read_records`."""
    control = read_frame_header(frame).attributes & Attributes.CONTROL
    return iter(()) if control else read_records(frame)


def read_frame(frame: memoryview) -> Sequence[Record]:
    """All of `walk_frame`."""
    return tuple(walk_frame(frame))


def first_late_record(batch: memoryview, timestamp_ms: int, min_offset: int) -> tuple[int, int] | None:
    """Find the first record in a stored batch that is as late as a time, looking at nothing else of the records.

    Args:
        batch: one whole frame of magic 2.
        timestamp_ms: the time.
        min_offset: records before this offset do not count.

    Returns:
        Its offset and its time; None if there is none.

    Raises:
        CorruptBatch, InvalidRecords: as `read_records`.
    """
    header, body = _opened(batch)
    append_time = header.attributes & Attributes.LOG_APPEND_TIME
    position = 0
    for _ in range(header.record_count):
        length, position = _varint(body, position)
        time_delta, field = _varint(body, position + 1)
        offset_delta, _ = _varint(body, field)
        found_ms = header.max_timestamp if append_time else header.first_timestamp + time_delta
        if found_ms >= _TIME_END_MS:
            raise InvalidRecords("the time of a record has more than 64 bits")
        if found_ms >= timestamp_ms and header.base_offset + offset_delta >= min_offset:
            return header.base_offset + offset_delta, found_ms
        position += length
    return None


def has_null_key(batch: memoryview) -> bool:
    """Whether a batch that `check_batch` has let through holds a record without a key."""
    header, body = _opened(batch)
    position = 0
    for _ in range(header.record_count):
        length, position = _varint(body, position)
        field = position + 1  # behind the attributes
        for _ in range(2):  # the deltas of time and offset
            _, field = _raw_varint(body, field)
        if body[field] == _NULL:
            return True
        position += length
    return False


def _opened(batch: memoryview) -> tuple[FrameHeader, memoryview]:
    """The header and the decompressed body of a stored batch. Raises CorruptBatch."""
    header = read_frame_header(batch)
    try:
        return header, decompress(Codec(header.attributes & CODEC_MASK), batch[HEADER_BYTES : header.size])
    except CompressionError as error:
        raise CorruptBatch(str(error)) from None


def _bytes(body: memoryview, position: int) -> tuple[bytes | None, int]:
    length, position = _varint(body, position)
    if length < 0:
        return None, position
    if length > len(body) - position:
        raise InvalidRecords("a field of a record is longer than its batch")
    return bytes(body[position : position + length]), position + length


def build_batch(
    records: Iterable[Record],
    *,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytearray:
    """Build a batch of records, which get the offsets 0, 1, ... until the log places them.

    Args:
        records: at least one; their own offsets do not count.
        codec: how to compress the body.
        producer_id, producer_epoch, base_sequence: for idempotent producing.
    """
    records = list(records)
    if not records:
        raise ValueError("a batch has at least one record")
    first = records[0].timestamp_ms
    body = bytearray()
    for index, record in enumerate(records):
        body += _encoded_record(record, index, first)
    count = len(records)
    latest = max(record.timestamp_ms for record in records)
    fields = (codec, count - 1, first, latest, producer_id, producer_epoch, base_sequence, count)
    return _batch(0, fields, compress(codec, body))


def frame_records(
    body: bytes | bytearray, attributes: int, record_count: int, first_timestamp: int, max_timestamp: int
) -> bytearray:
    """Put the header before records that are encoded, and compressed as the attributes say.

    Args:
        body: the records, with the offset deltas 0, 1, ...
        attributes: the codec and the type of the timestamps.
        record_count: how many there are, at least one.
        first_timestamp, max_timestamp: in ms.
    """
    fields = (attributes, record_count - 1, first_timestamp, max_timestamp, -1, -1, -1, record_count)
    return _batch(0, fields, body)


class PlacedBatch:
    """A batch that takes the place of a frame of another encoding.

    Args:
        frame: the frame's header.
    """

    __slots__ = ("_append_time", "_body", "_count", "_first_ms", "_frame", "_latest_ms")

    def __init__(self, frame: FrameHeader) -> None:
        self._frame = frame
        self._body = bytearray()
        self._count = 0
        self._first_ms, self._latest_ms = frame.first_timestamp, frame.max_timestamp
        self._append_time = True

    def add(self, record: Record) -> None:
        """Add one of the frame's records, in their order. It keeps its offset: there may be gaps, as compaction
        leaves them."""
        time_ms = record.timestamp_ms
        if not self._count:
            self._first_ms = self._latest_ms = time_ms
        elif time_ms > self._latest_ms:
            self._latest_ms = time_ms
        self._append_time = self._append_time and record.append_time
        self._count += 1
        self._body += _encoded_record(record, record.offset - self._frame.base_offset, self._first_ms)

    @property
    def body_bytes(self) -> int:
        """Bytes of the records so far."""
        return len(self._body)

    def sealed(self) -> bytearray:
        """The batch; without records it has the times of the frame."""
        frame, count = self._frame, self._count
        attributes = Attributes.LOG_APPEND_TIME if count and self._append_time else 0
        times = self._first_ms, self._latest_ms
        return _batch(frame.base_offset, (attributes, frame.last_offset_delta, *times, -1, -1, -1, count), self._body)


def place_batch(records: Iterable[Record], frame: FrameHeader) -> bytearray:
    """Build a batch that takes the place of a frame of another encoding.

    Args:
        records: some or all of the frame's, perhaps none; see `PlacedBatch.add`.
        frame: the frame's header.
    """
    batch = PlacedBatch(frame)
    for record in records:
        batch.add(record)
    return batch.sealed()


def _batch(base_offset: int, fields: tuple[int, ...], body: bytes | bytearray) -> bytearray:
    """A batch with the fields from its attributes on."""
    batch = bytearray(HEADER_BYTES) + body
    seal_batch(memoryview(batch), base_offset, fields)
    return batch


def seal_batch(batch: memoryview, base_offset: int, fields: tuple[int, ...]) -> None:
    """Write the header before the records of a batch.

    Args:
        batch: room for the header, and the records.
        base_offset: of the batch.
        fields: those of the header from its attributes on.
    """
    _HEADER.pack_into(batch, 0, base_offset, len(batch) - LENGTH_OVERHEAD, 0, Magic.KAFKA_V2, 0, *fields)
    struct.pack_into(">I", batch, 17, frame_crc(batch))


def _encoded_record(record: Record, delta: int, first_timestamp: int) -> bytes:
    content = bytearray(1)
    content += signed_varint(record.timestamp_ms - first_timestamp) + signed_varint(delta)
    content += _encoded(record.key) + _encoded(record.value) + signed_varint(len(record.headers))
    for name, value in record.headers:
        content += _encoded(name.encode()) + _encoded(value)
    return signed_varint(len(content)) + content


def _encoded(data: bytes | None) -> bytes:
    return signed_varint(-1) if data is None else signed_varint(len(data)) + data
