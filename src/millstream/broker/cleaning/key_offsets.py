"""The last offset of each key, within a bound on memory."""

from typing import Final

from millstream.broker.keyed_frames import short_key

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

    def put(self, key: bytes, offset: int) -> None:
        """Note a record, which is behind all that were noted before."""
        self._offsets[short_key(key)] = offset

    def is_superseded(self, key: bytes, offset: int) -> bool:
        """Whether a later record with the key is known than that at an offset."""
        return self._offsets.get(short_key(key), -1) > offset
