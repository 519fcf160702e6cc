"""The fields of the two messages that consumers of the classic protocol hide in JoinGroup and SyncGroup."""

import struct
from typing import Final

__all__ = ["ConsumerFields"]

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


class ConsumerFields:
    """Reads a message field by field. Every count is checked by the bytes there are, as none is believed beforehand.

    Methods raise struct.error, UnicodeDecodeError or ValueError where the bytes are not what they should be.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def int16(self) -> int:
        """The next int16."""
        (value,) = _INT16.unpack_from(self._data, self._position)
        self._position += _INT16.size
        return int(value)

    def int32(self) -> int:
        """The next int32."""
        (value,) = _INT32.unpack_from(self._data, self._position)
        self._position += _INT32.size
        return int(value)

    def string(self) -> str:
        """The next string."""
        return str(self._take(self.int16()), "utf-8")

    def strings(self) -> list[str]:
        """The next array of strings."""
        return [self.string() for _ in range(self.int32())]

    def skip_bytes(self) -> None:
        """Pass over bytes, which may be null."""
        size = self.int32()
        if size != -1:
            self._take(size)

    def bytes_follow(self) -> bool:
        """Whether the next are bytes, and not empty, null or left out."""
        return self._position < len(self._data) and self.int32() > 0

    def partitions(self) -> frozenset[tuple[str, int]]:
        """The next array of topics, each with an array of partitions."""
        found: set[tuple[str, int]] = set()
        for _ in range(self.int32()):
            topic = self.string()
            found.update((topic, self.int32()) for _ in range(self.int32()))
        return frozenset(found)

    def _take(self, size: int) -> bytes:
        stop = self._position + size
        if size < 0 or stop > len(self._data):
            raise ValueError("it is cut off")
        taken = self._data[self._position : stop]
        self._position = stop
        return taken
