"""What compaction reads in frames, and what it leaves of them, in ways that several protocols share."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final

from millstream.broker.keyed_frames import SLICE_RECORDS, Buffer, KeyedRecord, OpenFrame
from millstream.broker.steps import Steps
from millstream.model.frame import CODEC_MASK, FrameHeader, set_delete_horizon
from millstream.model.record import Record
from millstream.wire.compression import Codec, CompressionError, decompress
from millstream.wire.errors import WireError
from millstream.wire.kafka.records import PlacedBatch
from millstream.wire.translation import walk_records

__all__ = [
    "IN_PLACE_BYTES",
    "KeylessFrameRecords",
    "NeutralFrame",
    "NeutralFrameRecords",
    "collected",
    "handed_over",
    "marked",
    "unpacked",
    "walked",
]

IN_PLACE_BYTES: Final = 128 * 1024
"""What is packed or unpacked where it is needed, in a millisecond or two; anything larger off the loop."""


def unpacked(codec: Codec, data: memoryview) -> Steps[memoryview]:
    """See `decompress`."""
    if codec is Codec.NONE:
        return data
    if len(data) <= IN_PLACE_BYTES:
        try:
            return decompress(codec, data, IN_PLACE_BYTES)
        except CompressionError:
            pass  # as much as anything, or damaged: the second time tells
    whole: memoryview = yield partial(decompress, codec, data)
    return whole


def walked(header: FrameHeader, frame: memoryview) -> Steps[Iterator[Record]]:
    """See `walk_records`; the first record of a packed body is read off the loop, since all is unpacked for it."""
    records = walk_records(frame)
    if not header.attributes & CODEC_MASK:
        return records
    first: list[Record] = yield partial(list, islice(records, 1))
    return chain(first, records)


def collected(records: Iterable[KeyedRecord]) -> Steps[list[list[KeyedRecord]]]:
    """Some records in slices, of which each takes a step."""
    slices: list[list[KeyedRecord]] = []
    each = iter(records)
    while slice_ := list(islice(each, SLICE_RECORDS)):
        if slices:
            yield None
        slices.append(slice_)
    return slices


def handed_over(slices: list[list[KeyedRecord]]) -> Iterator[list[KeyedRecord]]:
    """Slices one by one, each of which is let go of then: a million records take a while to go."""
    slices.reverse()
    while slices:
        yield slices.pop()


def marked(frame: Buffer, horizon_ms: int) -> bytearray:
    """A frame with a delete horizon, whose records have times of their own."""
    out = bytearray(frame)
    with memoryview(out) as view:
        set_delete_horizon(view, horizon_ms)
    return out


class NeutralFrame:
    """A frame whose encoding has no place for records that are missing, and no tombstones. It stays as it is, or
    becomes a Kafka batch of the records that stay.

    Args:
        header: of the frame.
        frame: the whole of it.
        slices: all its records.
    """

    def __init__(self, header: FrameHeader, frame: memoryview, slices: list[list[KeyedRecord]]) -> None:
        self._header = header
        self._frame = frame
        self._slices = slices

    def records(self) -> Iterator[Sequence[KeyedRecord]]:
        """See `OpenFrame.records`."""
        return handed_over(self._slices)

    def left(self, stays: bytearray, horizon_ms: int | None) -> Steps[Buffer | None]:
        """See `OpenFrame.left`."""
        batch = PlacedBatch(self._header)
        records = yield from walked(self._header, self._frame)
        for number, record in enumerate(records):
            if number and number % SLICE_RECORDS == 0:
                yield None
            if stays[record.offset - self._header.base_offset]:
                batch.add(record)
        if batch.body_bytes <= IN_PLACE_BYTES:
            return batch.sealed()
        sealed: bytearray = yield batch.sealed
        return sealed


class NeutralFrameRecords:
    """Reads frames of any encoding, by their neutral records; see `FrameRecords`."""

    def open(self, header: FrameHeader, frame: memoryview) -> Steps[OpenFrame | None]:
        """See `FrameRecords.open`."""
        try:
            records = yield from walked(header, frame)
            slices = yield from collected(_keyed(one, header) for one in records)
        except (WireError, CompressionError):
            return None
        return NeutralFrame(header, frame, slices)


def _keyed(record: Record, header: FrameHeader) -> KeyedRecord:
    return KeyedRecord(record.offset - header.base_offset, record.key, deletes=record.value is None)


class KeylessFrameRecords:
    """Reads frames of an encoding without keys, whose records all stay, so that there is nothing to look for."""

    def open(self, header: FrameHeader, frame: memoryview) -> Steps[OpenFrame | None]:
        """See `FrameRecords.open`."""
        yield from ()
        return None
