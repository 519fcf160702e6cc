"""Frames to Arrow: whole pieces of a log become record batches without a Python object for any record.

Only the columns asked for are decoded: who wants offsets alone pays for the headers of the batches alone.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa

from millstream.model.frame import CODEC_MASK, HEADER_BYTES, Attributes, Magic, read_frame_header
from millstream.spark.errors import MalformedRecords
from millstream.spark.read.fields import RecordFields, binary
from millstream.spark.read.foreign import NotPlain, PlainFields, plain_fields
from millstream.spark.read.frames import Frame
from millstream.spark.read.origin import origin_columns
from millstream.spark.read.schema import HEADERS
from millstream.spark.read.varints import Ints, OutOfBody, record_begins
from millstream.wire.compression import Codec, CompressionError, decompress
from millstream.wire.translation import kafka_batch

__all__ = ["Decoder"]

_CODECS: Final = {int(codec): codec for codec in Codec}
_RECORDS_AT_ONCE_MAX: Final = 100_000
"""Records of one Arrow batch, about: 10,000 to 200,000 are equally fast."""
_BYTES_AT_ONCE_MAX: Final = 32 * 1024 * 1024
"""Unpacked bytes of one Arrow batch, about, so that well compressed batches do not fill the memory of a worker."""
_TIMESTAMP_MS_MAX: Final = (2**63 - 1) // 1000


class Decoder:
    """Makes Arrow record batches of the frames of one partition.

    Args:
        schema: the Arrow schema to be filled, a selection of `millstream.spark.read.schema.ALL_COLUMNS`.
        topic: the topic's name.
        partition: the partition's number.
    """

    def __init__(self, schema: Any, topic: str, partition: int) -> None:
        self._schema = schema
        self._topic = topic
        self._partition = partition
        self._needs_records = not {"key", "value", "timestamp", HEADERS}.isdisjoint(schema.names)

    def decode(self, data: bytes, frames: Sequence[Frame], start: int, stop: int) -> Iterator[Any]:
        """Decode some frames.

        Args:
            data: the piece that they stand in.
            frames: in order; control batches among them are passed over.
            start, stop: records before the first and from the second offset on are left out.

        Yields:
            pyarrow.RecordBatch of the schema, none of them empty.

        Raises:
            MalformedRecords: a body cannot be unpacked, or its records do not fit it.
        """
        for run in _runs(frames):
            if run[0].header.magic == Magic.KAFKA_V2:
                yield from self._records(data, run, start, stop)
            else:
                yield from self._messages(data, run, start, stop)

    def _messages(self, data: bytes, frames: Sequence[Frame], start: int, stop: int) -> Iterator[Any]:
        """Decode frames of another protocol."""
        if HEADERS not in self._schema.names and all(frame.header.record_count for frame in frames):
            try:
                batch = self._plain_batch(plain_fields(data, frames), frames)
            except NotPlain:
                pass
            else:
                yield from _within(batch, _Places(frames, data, []).offsets, start, stop)
                return
        data, frames = _translated(data, frames)
        yield from self._records(data, frames, start, stop)

    def _plain_batch(self, fields: PlainFields, frames: Sequence[Frame]) -> Any:
        places = _Places(frames, b"", [])
        if len(fields.value.begins) != places.count:
            raise NotPlain("as many messages as its header does not say")
        types = np.repeat(fields.is_append_time.astype(np.int32), fields.counts)
        columns: dict[str, Callable[[], Any]] = {
            **self._place_columns(places, frames),
            "timestampType": lambda: pa.array(types),
            "key": lambda: _keys(fields, places.count),
            "value": lambda: binary(fields.body, fields.value),
            "timestamp": lambda: _micros(fields.times),
        }
        return pa.RecordBatch.from_arrays([columns[name]() for name in self._schema.names], schema=self._schema)

    def _records(self, data: bytes, frames: Sequence[Frame], start: int, stop: int) -> Iterator[Any]:
        """Decode Kafka batches."""
        group: list[Frame] = []
        bodies: list[memoryview] = []
        records = unpacked_bytes = 0
        for frame in frames:
            header = frame.header
            if header.attributes & Attributes.CONTROL or not header.record_count:
                continue
            if header.record_count > header.last_offset_delta + 1:
                raise self._malformed(frame, "its header counts them in two ways")
            if header.record_count <= header.last_offset_delta:
                # Some of its records are nobody's to read; where the others are, only they themselves tell.
                yield from self._group(data, group, bodies, start, stop)
                yield from self._group(data, [frame], [self._body(data, frame)], start, stop)
                group, bodies, records, unpacked_bytes = [], [], 0, 0
                continue
            if self._needs_records:
                bodies.append(self._body(data, frame))
                unpacked_bytes += len(bodies[-1])
            group.append(frame)
            records += header.record_count
            if records >= _RECORDS_AT_ONCE_MAX or unpacked_bytes >= _BYTES_AT_ONCE_MAX:
                yield from self._group(data, group, bodies, start, stop)
                group, bodies, records, unpacked_bytes = [], [], 0, 0
        yield from self._group(data, group, bodies, start, stop)

    def _body(self, data: bytes, frame: Frame) -> memoryview:
        header = frame.header
        packed = memoryview(data)[frame.position + HEADER_BYTES : frame.position + header.size]
        try:
            return decompress(_CODECS[header.attributes & CODEC_MASK], packed)
        except KeyError:
            raise self._malformed(frame, "its codec is unknown") from None
        except CompressionError as error:
            raise self._malformed(frame, error) from None

    def _malformed(self, frame: Frame, reason: object) -> MalformedRecords:
        header = frame.header
        return MalformedRecords(
            f"the batch of records {header.base_offset} to {header.last_offset} of topic {self._topic!r} partition "
            f"{self._partition} cannot be taken apart: {reason}; startingOffsets and endingOffsets can leave it out"
        )

    def _group(
        self, data: bytes, frames: list[Frame], bodies: list[memoryview], start: int, stop: int
    ) -> Iterator[Any]:
        if not frames:
            return
        try:
            batch = self._batch(data, frames, bodies)
        except OutOfBody as error:
            if len(frames) == 1:
                raise self._malformed(frames[0], error) from None
            for frame, body in zip(frames, bodies, strict=True):
                yield from self._group(data, [frame], [body], start, stop)
            raise
        # The frames are whole, the range wanted may not be.
        behind = frames[-1].header.last_offset + 1
        if start <= frames[0].header.base_offset and behind <= stop:
            yield batch
            return
        yield from _within(batch, _Places(frames, data, bodies).offsets, start, stop)

    def _batch(self, data: bytes, frames: list[Frame], bodies: list[memoryview]) -> Any:
        places = _Places(frames, data, bodies)
        columns = self._place_columns(places, frames)
        if self._needs_records:
            fields = _fields(data, frames, bodies)
            columns["key"] = lambda: fields.binary(fields.key)
            columns["value"] = lambda: fields.binary(fields.value)
            columns["timestamp"] = lambda: _timestamps(places, fields.timestamp_deltas)
            columns[HEADERS] = lambda: fields.headers(self._schema.field(HEADERS).type)
        return pa.RecordBatch.from_arrays([columns[name]() for name in self._schema.names], schema=self._schema)

    def _place_columns(self, places: "_Places", frames: Sequence[Frame]) -> dict[str, Callable[[], Any]]:
        """The columns that the headers of frames are enough for."""
        headers = [frame.origin or frame.header for frame in frames]
        return {
            "topic": lambda: _constant(self._topic, places.count),
            "partition": lambda: pa.array(np.full(places.count, self._partition, dtype=np.int32)),
            "offset": lambda: pa.array(places.offsets),
            "timestampType": lambda: pa.array(places.timestamp_types),
            **origin_columns(headers, places.counts),
        }


def _runs(frames: Sequence[Frame]) -> Iterator[Sequence[Frame]]:
    """Frames in runs of one encoding; those of other protocols have no more records together than one Arrow batch."""
    for magic, same in groupby(frames, lambda frame: frame.header.magic):
        run: list[Frame] = []
        records = 0
        for frame in same:
            run.append(frame)
            records += frame.header.record_count
            if magic != Magic.KAFKA_V2 and records >= _RECORDS_AT_ONCE_MAX:
                yield run
                run, records = [], 0
        if run:
            yield run


def _within(batch: Any, offsets: Ints, start: int, stop: int) -> Iterator[Any]:
    """The rows of a batch from one offset to another, if there are any."""
    first, last = (int(place) for place in np.searchsorted(offsets, [start, stop]))
    if last > first:
        yield batch.slice(first, last - first)


def _keys(fields: PlainFields, count: int) -> Any:
    if fields.key is None:
        return pa.nulls(count, pa.binary())
    if isinstance(fields.key, list):
        return pa.array(fields.key, pa.binary())
    return binary(fields.body, fields.key)


def _fields(data: bytes, frames: Sequence[Frame], bodies: list[memoryview]) -> RecordFields:
    if any(frame.header.attributes & CODEC_MASK for frame in frames):
        body = b"".join(bodies)
        ends = list(accumulate(map(len, bodies)))
        begins = [0, *ends[:-1]]
    else:
        # Nothing was packed: the records are read where they stand.
        body = data
        begins = [frame.position + HEADER_BYTES for frame in frames]
    spans = [
        (begin, begin + len(unpacked), frame.header.record_count)
        for begin, unpacked, frame in zip(begins, bodies, frames, strict=True)
    ]
    buffer = np.frombuffer(body, dtype=np.uint8)
    return RecordFields(body, buffer, record_begins(body, buffer, spans))


class _Places:
    """Offset and time of the records of some frames, as far as the frames' headers tell.

    Args:
        frames: all of their records, or one frame of which some are left out.
        data: what the frames stand in.
        bodies: of the frames, unpacked; needed of one frame of which some records are left out.
    """

    def __init__(self, frames: Sequence[Frame], data: bytes, bodies: list[memoryview]) -> None:
        headers = [frame.header for frame in frames]
        self.counts = np.array([header.record_count for header in headers], dtype=np.int64)
        self.count = int(self.counts.sum())
        firsts = np.cumsum(self.counts) - self.counts
        bases = np.array([header.base_offset for header in headers], dtype=np.int64)
        self.offsets: Ints = np.repeat(bases - firsts, self.counts) + np.arange(self.count, dtype=np.int64)
        if headers[0].record_count <= headers[0].last_offset_delta:
            self.offsets = headers[0].base_offset + _fields(data, frames, bodies).offset_deltas
        self.is_append_time = np.array([bool(header.attributes & Attributes.LOG_APPEND_TIME) for header in headers])
        self.first_timestamps = np.array([header.first_timestamp for header in headers], dtype=np.int64)
        self.max_timestamps = np.array([header.max_timestamp for header in headers], dtype=np.int64)

    @property
    def timestamp_types(self) -> Any:
        """0 where the producer set the time, 1 where the log did."""
        return np.repeat(self.is_append_time.astype(np.int32), self.counts)


def _timestamps(places: _Places, deltas: Ints) -> Any:
    times = np.repeat(places.first_timestamps, places.counts) + deltas
    if places.is_append_time.any():
        is_append_time = np.repeat(places.is_append_time, places.counts)
        times[is_append_time] = np.repeat(places.max_timestamps, places.counts)[is_append_time]
    return _micros(times)


def _micros(times: Ints) -> Any:
    """Times in ms as Spark has them: it counts microseconds, and any number of milliseconds may stand in a record."""
    np.clip(times, -_TIMESTAMP_MS_MAX, _TIMESTAMP_MS_MAX, out=times)
    times *= 1000
    return pa.array(times).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))


def _translated(data: bytes, frames: Sequence[Frame]) -> tuple[bytes, list[Frame]]:
    """Frames, some of which other protocols wrote, as Kafka batches, and what those stand in."""
    view = memoryview(data)
    batches: list[bytes | bytearray | memoryview] = []
    translated: list[Frame] = []
    position = 0
    for frame in frames:
        batch = kafka_batch(view[frame.position : frame.position + frame.header.size], frame.header)
        batches.append(batch)
        translated.append(Frame(position, read_frame_header(batch), frame.header))
        position += len(batch)
    return b"".join(batches), translated


def _constant(text: str, count: int) -> Any:
    """A string array of one text, repeated."""
    encoded = text.encode()
    offsets = np.arange(0, len(encoded) * (count + 1), len(encoded), dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(encoded * count)])
