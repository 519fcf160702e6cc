"""Varints of many numbers at once, as NumPy matrices of bytes."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["Bytes", "Ints", "Unsigned", "joined_varints", "varint_sizes", "zigzag"]

Ints = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_GROUP_BITS: Final = 7


def zigzag(values: Ints) -> Unsigned:
    """Signed numbers as unsigned ones that are small if the number is near to zero."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def varint_sizes(values: Unsigned) -> Ints:
    """Bytes of the varint of each number."""
    sizes = np.ones(len(values), dtype=np.int64)
    bits = _GROUP_BITS
    largest = int(values.max(initial=0))
    while largest >> bits:
        sizes += values >= np.uint64(1 << bits)
        bits += _GROUP_BITS
    return sizes


def joined_varints(fields: Sequence[Unsigned | bytes]) -> tuple[Bytes, Ints]:
    """Write some varints for each of many rows, one behind the other.

    Args:
        fields: numbers of all rows, or bytes that are the same for all rows; at least one of them numbers.

    Returns:
        The bytes of all rows, and where each row begins and the last ends.
    """
    columns: list[Bytes] = []
    used: list[npt.NDArray[np.bool_] | None] = []
    rows = next(len(field) for field in fields if not isinstance(field, bytes))
    for field in fields:
        if isinstance(field, bytes):
            columns += [np.full(rows, byte, dtype=np.uint8) for byte in field]
            used += [None] * len(field)
        else:
            _add_varint(field, columns, used)
    matrix = np.stack(columns, axis=1)
    begins = np.empty(rows + 1, dtype=np.int64)
    begins[0] = 0
    if all(mask is None for mask in used):
        begins[1:] = np.arange(1, rows + 1) * len(columns)
        return matrix.reshape(-1), begins
    everywhere = np.ones(rows, dtype=np.bool_)
    mask = np.stack([everywhere if one is None else one for one in used], axis=1)
    np.cumsum(mask.sum(axis=1), out=begins[1:])
    return matrix[mask], begins


def _add_varint(values: Unsigned, columns: list[Bytes], used: list[npt.NDArray[np.bool_] | None]) -> None:
    """Add the bytes of one varint of each row, and which rows have them; None if all do."""
    largest, smallest = int(values.max(initial=0)), int(values.min(initial=0) if not len(values) else values.min())
    shift = 0
    while True:
        more = largest >> (shift + _GROUP_BITS)
        byte = ((values >> np.uint64(shift)) & np.uint64(0x7F)).astype(np.uint8)
        if more:
            goes_on = values >= np.uint64(1 << (shift + _GROUP_BITS))
            byte |= goes_on.astype(np.uint8) << 7
        columns.append(byte)
        used.append(None if shift == 0 or smallest >> shift else values >= np.uint64(1 << shift))
        if not more:
            return
        shift += _GROUP_BITS
