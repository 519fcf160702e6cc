"""Entries that stand for frames of the log which follow each other, in one piece."""

from typing import NamedTuple

__all__ = ["EntryRun"]


class EntryRun(NamedTuple):
    """Some entries, one for each frame.

    Args:
        data: their bytes, one behind the other.
        starts: where each of them begins, and where the last one ends: numbers of 64 bits.
        offsets: the base offset of each frame, ascending: numbers of 64 bits.
        end_offset: behind the last frame.
    """

    data: memoryview
    starts: memoryview
    offsets: memoryview
    end_offset: int
