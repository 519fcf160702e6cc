"""Stored batches with some of their records only, as compaction leaves them.

A batch keeps its offsets, its producer and its codec. Its records are not taken apart: those that stay are copied as
they are, so that only their times are written anew where the time changes that they are counted from.

A batch may have a million records, so that all of this goes by slices of them.

Source: Apache Kafka documentation, "Record Batch" and "Log Compaction"; KIP-534.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final

from millstream.model.frame import CODEC_MASK, HEADER_BYTES, Attributes, FrameHeader
from millstream.model.numbers import numbers
from millstream.wire.compression import Codec, compress
from millstream.wire.kafka.errors import InvalidRecords
from millstream.wire.kafka.primitives import signed_varint
from millstream.wire.kafka.record_spans import SPAN_FIELDS, find_spans
from millstream.wire.kafka.records import seal_batch

__all__ = ["StoredRecords", "TimeTooFar", "sealed_batch"]

_INT64_END: Final = 2**63


class TimeTooFar(InvalidRecords):
    """A record's time is too far from a delete horizon to be counted from it."""


class StoredRecords:
    """The records of a stored batch.

    Args:
        header: of the batch, of magic 2.
        body: its records, decompressed.
        slice_records: how many are looked at a time, at most.
    """

    def __init__(self, header: FrameHeader, body: memoryview, slice_records: int) -> None:
        self._header = header
        self._body = body
        self._slice_records = slice_records

    def slices(self) -> Iterator[list[int]]:
        """Where the records stand, some of them at a time: see `record_spans`, whose numbers these are.

        Raises:
            InvalidRecords: the records do not fit the body or fill it, or have other offsets than the header says.
        """
        left, position, offset = self._header.record_count, 0, 0
        end_offset = self._header.last_offset_delta + 1
        spans = numbers(SPAN_FIELDS * min(left, self._slice_records))
        while left > 0:
            count = min(left, self._slice_records)
            position = find_spans(self._body, position, offset, end_offset, count, spans)
            if position < 0:
                raise InvalidRecords("the records of a batch do not fit it")
            found: list[int] = spans[: SPAN_FIELDS * count].tolist()
            yield found
            offset = found[3 - SPAN_FIELDS] + 1
            left -= count
        if position != len(self._body):
            raise InvalidRecords("there is more in a batch than its records")

    def keyed(self) -> Iterator[Iterator[tuple[int, bytes | None, bool]]]:
        """Offset from the batch's, key, and whether the value is null, of the records of each slice. Raises as
        `slices`."""
        for spans in self.slices():
            origin = spans[0]
            data = bytes(self._body[origin : spans[1 - SPAN_FIELDS]])
            keys = [
                data[at - origin : at - origin + size] if size >= 0 else None
                for at, size in zip(spans[4::SPAN_FIELDS], spans[5::SPAN_FIELDS], strict=True)
            ]
            yield zip(spans[3::SPAN_FIELDS], keys, [size < 0 for size in spans[6::SPAN_FIELDS]], strict=True)

    def left(
        self, stays: Sequence[int], horizon_ms: int | None
    ) -> Generator[None, None, tuple[FrameHeader, list[bytes]]]:
        """Some of the records, with a step for each slice.

        Args:
            stays: for each offset, from the batch's, whether its record stays; one of them does.
            horizon_ms: a delete horizon that the batch is told, from which the times of its records are counted
                then; None if it is told none, or has one.

        Returns:
            What `sealed_batch` makes a batch of.

        Raises:
            InvalidRecords: as `slices`. TimeTooFar.
        """
        header = self._header
        shift_ms = None if horizon_ms is None else header.first_timestamp - horizon_ms
        pieces: list[bytes] = []
        count, latest = 0, -_INT64_END
        for place, spans in enumerate(self.slices()):
            if place:
                yield None
            found = [at for at in range(0, len(spans), SPAN_FIELDS) if stays[spans[at + 3]]]
            if found:
                count += len(found)
                latest = max(latest, max(spans[at + 2] for at in found))
                pieces.append(self._copied(spans, found, shift_ms))
        latest_ms = header.max_timestamp
        if count < header.record_count and not header.attributes & Attributes.LOG_APPEND_TIME:
            latest_ms = min(max(header.first_timestamp + latest, -_INT64_END), _INT64_END - 1)
        header = header._replace(max_timestamp=latest_ms, record_count=count)
        if horizon_ms is not None:
            attributes = header.attributes | Attributes.DELETE_HORIZON
            header = header._replace(attributes=attributes, first_timestamp=horizon_ms)
        return header, pieces

    def _copied(self, spans: list[int], found: list[int], shift_ms: int | None) -> bytes:
        """The bytes of some records of a slice, their times moved."""
        origin = spans[0]
        data = bytes(self._body[origin : spans[1 - SPAN_FIELDS]])
        records = [data[spans[at] - origin : spans[at + 1] - origin] for at in found]
        if shift_ms is None:
            return b"".join(records)
        out = bytearray()
        for at, record in zip(found, records, strict=True):
            delta = spans[at + 2] + shift_ms
            if not -_INT64_END <= delta < _INT64_END:
                raise TimeTooFar("a time is too far from the delete horizon")
            attributes = _behind_varint(record, 0)
            behind = _behind_varint(record, attributes + 1)
            content = record[attributes : attributes + 1] + signed_varint(delta) + record[behind:]
            out += signed_varint(len(content)) + content
        return bytes(out)


def _behind_varint(record: bytes, position: int) -> int:
    while record[position] >= 128:
        position += 1
    return position + 1


def sealed_batch(header: FrameHeader, pieces: Sequence[bytes]) -> bytearray:
    """A whole batch.

    Args:
        header: its fields; what follows from the body is not looked at.
        pieces: of its body, which is not compressed.
    """
    codec = Codec(header.attributes & CODEC_MASK)
    body = pieces if codec is Codec.NONE else [compress(codec, b"".join(pieces))]
    batch = bytearray().join((bytes(HEADER_BYTES), *body))
    seal_batch(memoryview(batch), header.base_offset, header[5:])
    return batch
