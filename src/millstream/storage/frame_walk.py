"""The hot loop over frames of a log file: every one is verified before anything is done with it.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `frame_walk.pxd`. The tests hold both to the same answers.
"""

from typing import Final

from crc32c import crc32c

__all__ = ["COMPILED", "DAMAGED", "LIMIT", "SHORT", "WALKED", "walk"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
LIMIT: Final = 0
"""Why a walk ended: at the frame that would have been too much."""
SHORT: Final = 1
"""The next frame is not whole."""
DAMAGED: Final = 2
"""What stands there is no frame, or not the one that is due."""
WALKED: Final = 4
"""Numbers that `walk` tells beside why it ended."""


def walk(
    data: memoryview, view: memoryview, expected_offset: int, wanted_offset: int, max_bytes: int, walked: memoryview
) -> int:
    """Verify frames, one after the other.

    Args:
        data: a piece of a log file that begins with a frame.
        view: the same.
        expected_offset: the base offset which that frame must have.
        wanted_offset: frames that end before it are passed over.
        max_bytes: frames are taken up to this size together; the first is taken whatever its size.
        walked: gets where the first frame taken begins, or where the walk ended if there is none; where it ended;
            the base offset of the frame that is due there; and if it ended SHORT, what that says it takes.

    Returns:
        LIMIT, SHORT or DAMAGED.
    """
    position = needed = 0
    start = -1
    end = len(data)
    while True:
        if end - position < 61:
            reason = 1
            needed = 61
            break
        length = _number(data, position + 8, 4)
        size = length + 12
        magic = data[position + 16]
        if (
            _number(data, position, 8) != expected_offset
            or _number(data, position + 12, 4)  # the leader epoch
            or length < 49
            or length > 2147483647
            or (magic != 2 and magic != 4 and magic != 8 and magic != 16)
        ):
            reason = 2
            break
        if start >= 0 and position + size - start > max_bytes:
            reason = 0
            break
        if size > end - position:
            reason = 1
            needed = size
            break
        if crc32c(view[position + 21 : position + size]) != _number(data, position + 17, 4):
            reason = 2
            break
        expected_offset += _number(data, position + 23, 4) + 1
        if start < 0 and expected_offset > wanted_offset:
            start = position
        position += size
    walked[0] = position if start < 0 else start
    walked[1] = position
    walked[2] = expected_offset
    walked[3] = needed
    return reason


def _number(data: memoryview, position: int, size: int) -> int:
    """A number of some bytes, big-endian."""
    value = 0
    for at in range(position, position + size):
        value = value << 8 | data[at]
    return value
