"""Rows of Arrow as encoded records, the body of record batches of magic 2 (see `wire.kafka.records`).

All numbers of all records are written by NumPy, and Arrow joins them with keys, values and headers: no row is an
object of Python. Records of a batch stand one behind the other in the result, so that its body is a slice of it.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.spark.write.columns import Rows
from millstream.spark.write.varints import Ints, Unsigned, joined_varints, varint_sizes, zigzag

__all__ = ["Chunk", "EncodedRecords", "chunks_of", "encode_records"]

_NULL: Final = 1
"""The length -1 in zigzag."""
_NO_ATTRIBUTES: Final = b"\0"
_OVERHEAD_BYTES_MAX: Final = 5 + 1 + 10 + 3 + 5 + 5 + 5
"""What a record takes beside key, value and headers: its length, attributes, the deltas of time and offset, the
lengths of key and value, and the count of headers."""
_RECORDS_MAX: Final = 1_000_000
"""Records of one batch: as many as brokers take, and as the offset delta has room for above."""
_EMPTY: Final = pa.scalar(b"", pa.binary())


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that become one batch: from `start` up to `stop`."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class EncodedRecords:
    """Encoded records of rows.

    Args:
        data: all of them.
        begins: where each begins in it, and where the last ends.
    """

    data: memoryview
    begins: Ints

    def body(self, chunk: Chunk) -> memoryview:
        """The records of one batch."""
        return self.data[int(self.begins[chunk.start]) : int(self.begins[chunk.stop])]


def field_sizes(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """Bytes of key, value and headers of each row, without the lengths before key and value; -1 for null."""
    keys = np.full(len(rows), -1, dtype=np.int64) if rows.key is None else _lengths(rows.key)
    headers = np.zeros(len(rows), dtype=np.int64)
    if rows.headers is not None:
        # A name and a value for each, each behind a length of up to 5 bytes.
        structs = rows.headers.values
        sizes = np.maximum(_lengths(structs.field(0)), 0) + np.maximum(_lengths(structs.field(1)), 0) + 10
        upto = np.concatenate([[0], np.cumsum(sizes)])
        places = rows.headers.offsets.to_numpy()
        headers = upto[places[1:]] - upto[places[:-1]]
    return keys, _lengths(rows.value), headers


def chunks_of(rows: Rows, group_ends: list[int], batch_bytes: int) -> list[Chunk]:
    """Cut rows into batches.

    Args:
        rows: rows of one partition after those of another.
        group_ends: where the rows of each partition end.
        batch_bytes: about what the records of a batch take, before compression; a record that is larger gets a
            batch for itself.
    """
    keys, values, headers = field_sizes(rows)
    upto = np.cumsum(np.maximum(keys, 0) + np.maximum(values, 0) + headers + _OVERHEAD_BYTES_MAX)
    chunks = []
    start = 0
    for end in group_ends:
        while start < end:
            before = int(upto[start - 1]) if start else 0
            fits = int(np.searchsorted(upto, before + batch_bytes, side="right"))
            stop = min(max(fits, start + 1), start + _RECORDS_MAX, end)
            chunks.append(Chunk(start, stop))
            start = stop
    return chunks


def encode_records(rows: Rows, chunks: list[Chunk]) -> EncodedRecords:
    """Encode rows, of which each chunk becomes a batch.

    Args:
        rows: the rows.
        chunks: all rows, in their order.
    """
    starts = np.array([chunk.start for chunk in chunks], dtype=np.int64)
    counts = np.array([chunk.stop - chunk.start for chunk in chunks], dtype=np.int64)
    firsts = np.repeat(starts, counts)
    index = np.arange(len(rows), dtype=np.int64)
    time_deltas = zigzag(rows.timestamp_ms - rows.timestamp_ms[firsts])
    offset_deltas = zigzag(index - firsts)
    keys = np.full(len(rows), -1, dtype=np.int64) if rows.key is None else _lengths(rows.key)
    values = _lengths(rows.value)
    key_lengths, value_lengths = zigzag(keys), zigzag(values)
    key_bytes, value_bytes = np.maximum(keys, 0), np.maximum(values, 0)

    sizes = len(_NO_ATTRIBUTES) + varint_sizes(time_deltas) + varint_sizes(offset_deltas)
    sizes += varint_sizes(key_lengths) + key_bytes + varint_sizes(value_lengths) + value_bytes
    tail: Any = pa.scalar(b"\0", pa.binary())
    if rows.headers is None:
        sizes += 1
    else:
        tail, tail_sizes = _header_bytes(rows.headers)
        sizes += tail_sizes
    head: list[Unsigned | bytes] = [zigzag(sizes), _NO_ATTRIBUTES, time_deltas, offset_deltas]
    if not key_bytes.any():
        parts = [_varints([*head, key_lengths, value_lengths])]
    else:
        parts = [_varints([*head, key_lengths]), rows.key, _varints([value_lengths])]
    joined = pc.binary_join_element_wise(
        *parts, rows.value, tail, _EMPTY, null_handling="replace", null_replacement=b""
    )
    _, offsets, data = joined.buffers()
    begins = np.frombuffer(offsets, dtype=np.int32, count=len(joined) + 1).astype(np.int64)
    return EncodedRecords(memoryview(data) if data is not None else memoryview(b""), begins)


def _header_bytes(headers: Any) -> tuple[Any, Ints]:
    """The headers of each row behind their count, and how many bytes that is."""
    places = headers.offsets.to_numpy().astype(np.int64)
    first, last = int(places[0]), int(places[-1])
    structs = headers.values.slice(first, last - first)
    names, contents = structs.field(0), structs.field(1)
    counts = _varints([zigzag(np.diff(places))])
    if not len(structs):
        return counts, _lengths(counts)
    each = pc.binary_join_element_wise(
        _varints([zigzag(_lengths(names))]),
        names,
        _varints([zigzag(_lengths(contents))]),
        contents,
        _EMPTY,
        null_handling="replace",
        null_replacement=b"",
    )
    # The headers of a row follow each other already: its bytes are a slice of all of them.
    begins = np.frombuffer(each.buffers()[1], dtype=np.int32, count=len(each) + 1)
    offsets = pa.py_buffer(np.ascontiguousarray(begins[places - first], dtype=np.int32))
    of_rows = pa.Array.from_buffers(pa.binary(), len(headers), [None, offsets, each.buffers()[2]])
    tail = pc.binary_join_element_wise(counts, of_rows, _EMPTY)
    return tail, _lengths(tail)


def _lengths(column: Any) -> Ints:
    """Bytes of each element of a binary array, -1 for null."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(offsets).astype(np.int64)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return lengths


def _varints(fields: list[Unsigned | bytes]) -> Any:
    data, begins = joined_varints(fields)
    offsets = pa.py_buffer(begins.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(begins) - 1, [None, offsets, pa.py_buffer(data)])
