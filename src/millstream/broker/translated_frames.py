"""What frames were made into for readers of other protocols: the latest of it, within a limit.

Ten readers of a topic that somebody else's protocol wrote cost one translation, as long as they are not further apart
than what is kept. There is one limit for all topics and all protocols of a server.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

__all__ = ["TranslatedFrames"]

_ENTRY_BYTES: Final = 512
"""Bytes that one takes beside what was made: its name, its place, and the objects that hold it together."""


class TranslatedFrames:
    """The latest translations of all partitions, by whatever names whoever keeps them gives them.

    Args:
        bytes_max: of all that is kept; 0 to keep nothing.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._kept: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        """Bytes of all that is kept, about."""
        return self._bytes

    def find(self, name: Hashable) -> tuple[object, int] | None:
        """What was kept under a name, and the bytes that it was said to take; None if there is nothing any more."""
        found = self._kept.get(name)
        if found is not None:
            self._kept.move_to_end(name)
        return found

    def keep(self, name: Hashable, made: object, size_bytes: int) -> None:
        """Keep a translation, and let go of those that were not asked for longest; not if it alone is too much.

        Args:
            name: what `find` is given, with all in it that makes a difference.
            made: what the frame became; nobody may change it any more.
            size_bytes: bytes of memory that it takes.
        """
        size_bytes += _ENTRY_BYTES
        if size_bytes > self._bytes_max:
            return
        _, before = self._kept.pop(name, (None, 0))
        self._kept[name] = made, size_bytes
        self._bytes += size_bytes - before
        while self._bytes > self._bytes_max:
            _, (_, size_bytes) = self._kept.popitem(last=False)
            self._bytes -= size_bytes
