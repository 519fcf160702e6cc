"""The hot loop over the headers of small frames: which of them can be taken apart together, and where their bodies
stand.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `frame_heads.pxd`. The tests hold both to the same answers.
`millstream.model.frame_span` says what a span of frames is, and what the numbers of a head mean.
"""

from typing import Final

__all__ = ["COMPILED", "TOTALS", "own_frames", "take_heads"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
TOTALS: Final = 4
"""Numbers that `take_heads` tells beside the heads."""


def take_heads(
    data: memoryview,
    position: int,
    end_offset: int,
    records_max: int,
    bytes_max: int,
    heads: memoryview,
    totals: memoryview,
) -> int:
    """Fill in the heads of the frames of one span.

    Args:
        data: whole frames, one after the other.
        position: of the first frame, which is taken whatever it is.
        end_offset: frames from this offset on are left.
        records_max: records of all frames; the first may have more.
        bytes_max: bytes after which no frame follows.
        heads: room for the heads of as many frames as there may be, one at least.
        totals: gets where the frames end, their records, the offset behind them, and a number that follows from all
            of their checksums.

    Returns:
        The number of frames.
    """
    first = position
    magic = data[position + 16]
    count = records = digest = head = 0
    base = expected = _number(data, position, 8)
    while head < len(heads) and len(data) - position >= 61:
        offset = _number(data, position, 8)
        size = _number(data, position + 8, 4) + 12
        attributes = _number(data, position + 21, 2)
        record_count = _number(data, position + 57, 4)
        # Neither compressed nor a control batch, and small.
        joins = attributes & 0x27 == 0 and 0 < record_count <= 64 and size <= 16384
        if count and (
            not joins
            or data[position + 16] != magic
            or offset != expected
            or offset >= end_offset
            or offset >> 8 != base >> 8
            or records + record_count > records_max
            or position - first >= bytes_max
        ):
            break
        heads[head] = offset - base
        heads[head + 1] = position - first + 61
        heads[head + 2] = position - first + size
        heads[head + 3] = record_count
        heads[head + 4] = _number(data, position + 23, 4) + 1
        heads[head + 5] = _signed(data, position + 27)
        heads[head + 6] = _signed(data, position + 35)
        heads[head + 7] = attributes
        head += 9
        count += 1
        records += record_count
        expected = offset + heads[head - 5]
        digest = _mixed(digest, _number(data, position + 17, 4))
        position += size
        if not joins:
            break
    totals[0] = position
    totals[1] = records
    totals[2] = expected
    totals[3] = digest
    return count


def own_frames(data: memoryview, position: int, magic: int) -> int:
    """Where the first frame from a position on stands that has another magic value; the end if there is none."""
    while len(data) - position >= 61 and data[position + 16] == magic:
        position += _number(data, position + 8, 4) + 12
    return position


def _number(data: memoryview, position: int, size: int) -> int:
    """A number of some bytes, big-endian, that is not below 0."""
    value = 0
    for at in range(position, position + size):
        value = value << 8 | data[at]
    return value


def _signed(data: memoryview, position: int) -> int:
    """A number of 8 bytes, big-endian."""
    value = _number(data, position + 1, 7)
    return value + ((data[position] ^ 128) - 128) * 72057594037927936  # 2**56


def _mixed(digest: int, crc: int) -> int:
    return ((digest * 1000003) ^ crc) & 9223372036854775807
