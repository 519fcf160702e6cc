"""Stored batches with some of their records only, as compaction leaves them.

A batch keeps its offsets, its producer and its codec. Its records are not taken apart: those that stay are copied as
they are, so that only their times are written anew where the time changes that they are counted from.

Source: Apache Kafka documentation, "Record Batch" and "Log Compaction"; KIP-534.
"""

from collections.abc import Collection, Iterator
from typing import Final

from millstream.model.frame import CODEC_MASK, HEADER_BYTES, Attributes, FrameHeader
from millstream.model.numbers import numbers
from millstream.wire.compression import Codec, CompressionError, compress, decompress
from millstream.wire.kafka.errors import CorruptBatch, InvalidRecords
from millstream.wire.kafka.primitives import signed_varint
from millstream.wire.kafka.record_spans import RECORD_BYTES_MIN, SPAN_FIELDS, find_spans
from millstream.wire.kafka.records import seal_batch

__all__ = ["RecordSpans", "filtered_batch", "with_delete_horizon"]

_INT64_END: Final = 2**63


class RecordSpans:
    """Where the records of a stored batch stand.

    Args:
        header: of the batch.
        batch: the whole frame, of magic 2.

    Raises:
        CorruptBatch: it cannot be decompressed.
        InvalidRecords: the records do not fit the body.
    """

    def __init__(self, header: FrameHeader, batch: memoryview) -> None:
        try:
            self.body = decompress(Codec(header.attributes & CODEC_MASK), batch[HEADER_BYTES : header.size])
        except (CompressionError, ValueError) as error:
            raise CorruptBatch(str(error)) from None
        if not 0 <= header.record_count <= len(self.body) // RECORD_BYTES_MIN:
            raise InvalidRecords(f"{header.record_count} records in {len(self.body)} bytes")
        self.count = header.record_count
        spans = numbers(SPAN_FIELDS * self.count)
        if not find_spans(self.body, self.count, spans):
            raise InvalidRecords("the records of a batch do not fit it")
        self._spans: list[int] = spans.tolist()

    def keyed(self) -> Iterator[tuple[int, bytes | None, bool]]:
        """Offset from the batch's, key, and whether the value is null, of each record."""
        body, spans = bytes(self.body), self._spans
        begins, sizes = spans[4::SPAN_FIELDS], spans[5::SPAN_FIELDS]
        keys = [body[at : at + size] if size >= 0 else None for at, size in zip(begins, sizes, strict=True)]
        return zip(spans[3::SPAN_FIELDS], keys, [size < 0 for size in spans[6::SPAN_FIELDS]], strict=True)

    def records(self) -> list[tuple[int, int, memoryview]]:
        """Offset and time, from the batch's, and the bytes of each record."""
        spans = self._spans
        return [
            (spans[at + 3], spans[at + 2], self.body[spans[at] : spans[at + 1]])
            for at in range(0, len(spans), SPAN_FIELDS)
        ]


def filtered_batch(header: FrameHeader, batch: memoryview, kept: Collection[int]) -> bytearray:
    """A batch with some of its records.

    Args:
        header: of the batch.
        batch: the whole frame.
        kept: offsets of those records, from the batch's; one at least.

    Raises:
        CorruptBatch, InvalidRecords: as `RecordSpans`.
    """
    left = [one for one in RecordSpans(header, batch).records() if one[0] in kept]
    latest_ms = header.max_timestamp
    if not header.attributes & Attributes.LOG_APPEND_TIME:
        latest_ms = header.first_timestamp + max(time_delta for _, time_delta, _ in left)
        latest_ms = min(max(latest_ms, -_INT64_END), _INT64_END - 1)
    return _sealed(header._replace(max_timestamp=latest_ms, record_count=len(left)), b"".join(one[2] for one in left))


def with_delete_horizon(header: FrameHeader, batch: memoryview, horizon_ms: int) -> bytearray:
    """A batch with a delete horizon, from which the times of its records are counted then.

    Args:
        header: of the batch, which has none.
        batch: the whole frame.
        horizon_ms: ms since 1970.

    Raises:
        CorruptBatch, InvalidRecords: as `RecordSpans`; or a time is too far from the horizon to be counted from it.
    """
    shift_ms = header.first_timestamp - horizon_ms
    body = bytearray()
    for _, time_delta, record in RecordSpans(header, batch).records():
        delta = time_delta + shift_ms
        if not -_INT64_END <= delta < _INT64_END:
            raise InvalidRecords("a time is too far from the delete horizon")
        at = _behind_varint(record, 0)
        behind = _behind_varint(record, at + 1)
        content = bytes(record[at : at + 1]) + signed_varint(delta) + record[behind:]
        body += signed_varint(len(content)) + content
    attributes = header.attributes | Attributes.DELETE_HORIZON
    return _sealed(header._replace(attributes=attributes, first_timestamp=horizon_ms), body)


def _behind_varint(record: memoryview, position: int) -> int:
    while record[position] >= 128:
        position += 1
    return position + 1


def _sealed(header: FrameHeader, body: bytes | bytearray) -> bytearray:
    packed = compress(Codec(header.attributes & CODEC_MASK), body)
    batch = bytearray(HEADER_BYTES) + packed
    seal_batch(memoryview(batch), header.base_offset, header[5:])
    return batch
