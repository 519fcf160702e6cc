"""Verified frames in a piece of a log, wherever it came from: a segment file or an answer to a fetch."""

import struct
from enum import Enum
from typing import Final, NamedTuple

from crc32c import crc32c

from millstream.model.frame import CRC_FROM, HEADER_BYTES, LENGTH_OVERHEAD, MAGICS, FrameHeader

__all__ = ["Frame", "Frames", "Stop", "walk"]

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_BODY_BYTES_MIN: Final = HEADER_BYTES - LENGTH_OVERHEAD


class Stop(Enum):
    """Why a walk over frames ended."""

    DONE = "the wanted end"
    SHORT = "the end of the piece"
    NOT_A_FRAME = "something that is not the next frame"


class Frame(NamedTuple):
    """One frame.

    Args:
        position: where it begins in its piece.
        header: its header.
        origin: the header that it has in the log, if it was translated since.
    """

    position: int
    header: FrameHeader
    origin: FrameHeader | None = None


class Frames(NamedTuple):
    """What a walk found.

    Args:
        found: the verified frames, in order, without those that end before the wanted offset.
        position: behind the last verified frame.
        next_offset: the base offset that a frame there must have.
        stop: why the walk ended.
        needed_bytes: if it ended SHORT, bytes from `position` on that the next frame takes; at least a header.
    """

    found: list[Frame]
    position: int
    next_offset: int
    stop: Stop
    needed_bytes: int


def walk(data: memoryview, expected_offset: int | None, wanted_offset: int, stop_offset: int) -> Frames:
    """Verify frame after frame, as the guard rules of `millstream.model.frame` say.

    Args:
        data: a piece of a log that begins with a frame.
        expected_offset: the base offset which that frame must have; None if any will do.
        wanted_offset: frames that end before it are verified and left out.
        stop_offset: the walk ends at the first frame that begins here or later.
    """
    found: list[Frame] = []
    position, end = 0, len(data)
    unpack = _HEADER.unpack_from
    stop, needed_bytes = Stop.DONE, 0
    next_offset = wanted_offset if expected_offset is None else expected_offset
    while next_offset < stop_offset:
        if end - position < HEADER_BYTES:
            stop, needed_bytes = Stop.SHORT, HEADER_BYTES
            break
        header = FrameHeader._make(unpack(data, position))
        length = header.length
        is_in_place = header.base_offset == expected_offset or expected_offset is None
        if not is_in_place or header.leader_epoch or header.magic not in MAGICS or length < _BODY_BYTES_MIN:
            stop = Stop.NOT_A_FRAME
            break
        size = length + LENGTH_OVERHEAD
        if size > end - position:
            stop, needed_bytes = Stop.SHORT, size
            break
        if crc32c(data[position + CRC_FROM : position + size]) != header.crc:
            stop = Stop.NOT_A_FRAME
            break
        next_offset = expected_offset = header.base_offset + header.last_offset_delta + 1
        if next_offset > wanted_offset:
            found.append(Frame(position, header))
        position += size
    return Frames(found, position, next_offset, stop, needed_bytes)
