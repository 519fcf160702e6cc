"""The last offset of each key, within a bound on memory."""

from collections.abc import Iterable
from typing import Final

from millstream.broker.keyed_frames import KEY_BYTES_MAX, KeyedRecord, short_key
from millstream.broker.steps import Steps

__all__ = ["KeyOffsets"]

_ENTRY_BYTES: Final = 200
"""Bytes of memory of a key at most: its bytes object has 50, its offset 32, and the table has up to 110 for it while
it grows."""
_TABLE_KEYS: Final = 8192
"""Keys of one table, about, when it is full: a table that grows is copied as a whole, and given back as a whole, and
one of a million keys takes some tens of milliseconds for that, in which everyone else waits."""
_HASH_BITS: Final = 64


class KeyOffsets:
    """A map from keys to offsets.

    Args:
        bytes_max: how much memory it may take.
    """

    def __init__(self, bytes_max: int) -> None:
        self._count_max = max(bytes_max // _ENTRY_BYTES, 1)
        bits = max((self._count_max // _TABLE_KEYS).bit_length(), 1)
        self._tables: list[dict[bytes, int]] = [{} for _ in range(1 << bits)]
        # By the high bits of the hash: those that share the low ones would be in each other's way within a table.
        self._shift, self._mask = _HASH_BITS - bits, (1 << bits) - 1
        self._count_bound = 0

    @property
    def is_full(self) -> bool:
        """Whether it is to be given no further keys."""
        if self._count_bound >= self._count_max:
            self._count_bound = sum(map(len, self._tables))
        return self._count_bound >= self._count_max

    def note(self, base_offset: int, records: Iterable[KeyedRecord]) -> None:
        """Note records of a frame, which are behind all that were noted before."""
        tables, shift, mask = self._tables, self._shift, self._mask
        for place, key, _ in records:
            if key is not None:
                short = key if len(key) <= KEY_BYTES_MAX else short_key(key)
                tables[hash(short) >> shift & mask][short] = base_offset + place
                self._count_bound += 1

    def left(self, base_offset: int, records: Iterable[KeyedRecord]) -> list[KeyedRecord]:
        """Those of some records of a frame behind which no other is known with the same key; all without a key."""
        tables, shift, mask = self._tables, self._shift, self._mask
        return [
            record
            for record in records
            if (key := record[1]) is None
            or tables[hash(short := key if len(key) <= KEY_BYTES_MAX else short_key(key)) >> shift & mask].get(
                short, -1
            )
            <= base_offset + record[0]
        ]

    def forget(self) -> Steps[None]:
        """Give the memory back, a table at a time."""
        while self._tables:
            self._tables.pop()
            yield None
