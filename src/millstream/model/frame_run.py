"""Frames that one read of a socket brought, one behind the other, to be appended in one write."""

import struct
from typing import Final

from millstream.model.frame import set_log_append_time

__all__ = ["FrameRun"]

_BASE_OFFSET: Final = struct.Struct(">q")


class FrameRun:
    """Frames of one encoding, without producer ids, that go into a log together or not at all.

    Args:
        magic: their encoding.

    `data` holds their bytes, with the base offset of each still to be set; `sizes` their bytes, `counts` the offsets
    that each takes, `times` the latest timestamp of each, in ms.
    """

    __slots__ = ("counts", "data", "magic", "sizes", "times")

    def __init__(self, magic: int) -> None:
        self.magic = magic
        self.data = bytearray()
        self.sizes: list[int] = []
        self.counts: list[int] = []
        self.times: list[int] = []

    def place(self, base_offset: int) -> int:
        """Set the base offsets, the first frame's being given; returns the offset behind the last frame."""
        pack_into, data, position = _BASE_OFFSET.pack_into, self.data, 0
        for size, count in zip(self.sizes, self.counts, strict=True):
            pack_into(data, position, base_offset)
            base_offset += count
            position += size
        return base_offset

    def stamp(self, timestamp_ms: int) -> None:
        """Stamp all frames with the time of their append."""
        position = 0
        with memoryview(self.data) as view:
            for index, size in enumerate(self.sizes):
                set_log_append_time(view[position : position + size], timestamp_ms)
                self.times[index] = timestamp_ms
                position += size
