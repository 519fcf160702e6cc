"""Where the fields of many records stand, and Arrow arrays made of them.

Values are not copied one by one. An Arrow binary array is one buffer and a row of offsets into it; over the body
of a batch such an array can be laid so that its elements are a value, what stands behind it, the next value, ...
in turn, and Arrow's own `take` then copies every second element together.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.spark.read.varints import Bytes, Flags, Ints, OutOfBody, read_varints, unzigzag

__all__ = ["RecordFields", "Spans", "binary"]


class Spans(NamedTuple):
    """One field of many records: where it begins and ends, and whether it is there or null."""

    begins: Ints
    ends: Ints
    is_valid: Flags


def binary(body: bytes, spans: Spans) -> Any:
    """Stretches of a body, in order and without overlap, as a binary array."""
    count = len(spans.begins)
    if not spans.is_valid.any():
        return pa.nulls(count, pa.binary())
    offsets = np.empty(2 * count, dtype=np.int32)
    offsets[0::2], offsets[1::2] = spans.begins, spans.ends
    validity = None
    if not spans.is_valid.all():
        bits = np.ones(2 * count - 1, dtype=bool)
        bits[0::2] = spans.is_valid
        validity = pa.py_buffer(np.packbits(bits, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(body)]
    everything = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    return everything.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


class RecordFields:
    """The fields of some records.

    Args:
        body, buffer: the same bytes.
        begins: where each record begins.

    Raises:
        OutOfBody: a field runs out of its record.
    """

    def __init__(self, body: bytes, buffer: Bytes, begins: Ints) -> None:
        self._body = body
        self._buffer = buffer
        lengths, contents = read_varints(buffer, begins)
        self._ends: Ints = contents + unzigzag(lengths)
        deltas, positions = read_varints(buffer, contents + 1)  # behind the attributes, which mean nothing
        self.timestamp_deltas = unzigzag(deltas)
        self._offset_deltas, positions = read_varints(buffer, positions)
        self.key = self._field(positions, self._ends)
        self.value = self._field(self.key.ends, self._ends)
        counts, self._header_begins = read_varints(buffer, self.value.ends)
        self._header_counts = unzigzag(counts)
        is_plain = self._header_counts == 0
        if (self._header_begins[is_plain] != self._ends[is_plain]).any():
            raise OutOfBody("the fields of a record do not fill it")

    @property
    def offset_deltas(self) -> Ints:
        """Offsets of the records minus the base offset of their batch."""
        return unzigzag(self._offset_deltas)

    def _field(self, positions: Ints, limits: Ints) -> Spans:
        """Read a length at each position, and what it spans; that ends at the limits at the latest."""
        raw, begins = read_varints(self._buffer, positions)
        lengths = unzigzag(raw)
        # The length is compared, not the end: the end of a field with an impossible length could overflow.
        if ((lengths < -1) | (lengths > limits - begins)).any():
            raise OutOfBody("a field of a record runs out of it")
        return Spans(begins, begins + np.maximum(lengths, 0), lengths >= 0)

    def binary(self, spans: Spans) -> Any:
        """Stretches of the body, in order and without overlap, as a binary array."""
        return binary(self._body, spans)

    def headers(self, kind: Any) -> Any:
        """The headers of each record, null where it has none, as an array of a list type.

        Raises:
            OutOfBody: the headers of a record do not fill it.
        """
        counts = self._header_counts
        if ((counts < 0) | (counts > self._ends - self._header_begins)).any():
            raise OutOfBody("a record has an impossible number of headers")
        total = int(counts.sum())
        if not total:
            return pa.nulls(len(counts), kind)
        firsts = np.cumsum(counts) - counts
        names, values = self._header_spans(firsts, total)
        pairs = pa.StructArray.from_arrays(
            [_text(self.binary(names)), self.binary(values)], fields=list(kind.value_type)
        )
        offsets = pa.array(np.append(firsts, total).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, pairs, type=kind, mask=pa.array(counts == 0))

    def _header_spans(self, firsts: Ints, total: int) -> tuple[Spans, Spans]:
        """Where the names and values of all headers stand, record after record.

        The n-th header of all records that have so many is read in one go, for n = 0, 1, ...

        Args:
            firsts: how many headers stand before those of each record.
            total: how many there are.
        """
        counts = self._header_counts
        names, values = (
            Spans(np.zeros(total, np.int64), np.zeros(total, np.int64), np.ones(total, np.bool_)) for _ in range(2)
        )
        rows = np.flatnonzero(counts)
        positions = self._header_begins[rows]
        number = 0
        while rows.size:
            name = self._field(positions, self._ends[rows])
            value = self._field(name.ends, self._ends[rows])
            places = firsts[rows] + number
            names.begins[places], names.ends[places] = name.begins, name.ends
            values.begins[places], values.ends[places], values.is_valid[places] = value
            number += 1
            more = counts[rows] > number
            if (value.ends[~more] != self._ends[rows[~more]]).any():
                raise OutOfBody("the headers of a record do not fill it")
            rows, positions = rows[more], value.ends[more]
        return names, values


def _text(names: Any) -> Any:
    """Binary to text; bytes that are not UTF-8 are replaced."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([str(name, "utf-8", "replace") for name in names.to_pylist()], pa.string())
