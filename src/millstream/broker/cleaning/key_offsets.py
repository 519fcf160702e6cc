"""The last offset of each key, within a bound on memory."""

from collections.abc import Iterable
from typing import Final

from millstream.broker.keyed_frames import KEY_BYTES_MAX, KeyedRecord, short_key

__all__ = ["KeyOffsets"]

_ENTRY_BYTES: Final = 200
"""Bytes of memory of a key at most: its bytes object has 50, its offset 32, and the table has up to 110 for it while
it grows."""


class KeyOffsets:
    """A map from keys to offsets.

    Args:
        bytes_max: how much memory it may take.
    """

    def __init__(self, bytes_max: int) -> None:
        self._count_max = max(bytes_max // _ENTRY_BYTES, 1)
        self._offsets: dict[bytes, int] = {}

    @property
    def is_full(self) -> bool:
        """Whether it is to be given no further keys."""
        return len(self._offsets) >= self._count_max

    def note(self, base_offset: int, records: Iterable[KeyedRecord]) -> None:
        """Note the records of a frame, which is behind all that were noted before."""
        offsets = self._offsets
        for place, key, _ in records:
            if key is not None:
                offsets[key if len(key) <= KEY_BYTES_MAX else short_key(key)] = base_offset + place

    def left(self, base_offset: int, records: Iterable[KeyedRecord]) -> list[KeyedRecord]:
        """Those of the records of a frame behind which no other is known with the same key; all without a key."""
        last = self._offsets.get
        return [
            record
            for record in records
            if (key := record[1]) is None
            or last(key if len(key) <= KEY_BYTES_MAX else short_key(key), -1) <= base_offset + record[0]
        ]
