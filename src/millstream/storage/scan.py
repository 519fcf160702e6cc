"""Walking over the frames of a log file: every frame is verified before anything is done with it."""

import struct
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from crc32c import crc32c

from millstream.model.frame import (
    CRC_FROM,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    MAGICS,
    FrameHeader,
    read_frame_header,
)
from millstream.model.numbers import numbers
from millstream.storage.frame_walk import COMPILED, DAMAGED, LIMIT, SHORT, WALKED, walk

__all__ = ["Stop", "Taken", "find_frame", "take_frames", "walk_frames"]

ReadAt = Callable[[int, int], bytes]
"""Reads (position, size) from a log file; shorter only at its end."""

_START: Final = struct.Struct(">qiibIhi")  # the header up to last_offset_delta
_OFFSET_MAX: Final = 2**63 - 1
_LIKELY_PLACES_MAX: Final = 64
_BODY_BYTES_MIN: Final = HEADER_BYTES - LENGTH_OVERHEAD
_CHUNK_BYTES: Final = 4 * 1024 * 1024
"""Read at a time when a file is scanned: large enough that the calls do not count, small beside the server."""


class Stop(Enum):
    """Why a walk ended."""

    LIMIT = "limit"
    SHORT = "short"
    DAMAGED = "damaged"


_REASONS: Final = {LIMIT: Stop.LIMIT, SHORT: Stop.SHORT, DAMAGED: Stop.DAMAGED}


class Taken(NamedTuple):
    """What a walk over a piece of a log file found.

    Args:
        start, stop: position in the piece of the first frame taken and behind the last; equal if none was.
        position: where the walk ended, behind the last verified frame.
        next_offset: the base offset that a frame at `position` must have.
        reason: why it ended there.
        needed_bytes: if it ended SHORT, what the next frame says it takes; at least a header.
    """

    start: int
    stop: int
    position: int
    next_offset: int
    reason: Stop
    needed_bytes: int


def take_frames(data: memoryview, expected_offset: int, wanted_offset: int, max_bytes: int) -> Taken:
    """Find the verified frames in a piece of a log file that a reader wants.

    Args:
        data: a piece that begins with a frame.
        expected_offset: the base offset which that frame must have.
        wanted_offset: frames that end before it are verified and passed over.
        max_bytes: frames are taken up to this size together; the first is taken whatever its size.
    """
    if not COMPILED:
        return _take_frames(data, expected_offset, wanted_offset, max_bytes)
    walked = numbers(WALKED)
    reason = walk(data, data, expected_offset, wanted_offset, max_bytes, walked)
    start, stop, next_offset, needed = walked.tolist()
    return Taken(start, stop, stop, next_offset, _REASONS[reason], needed)


def _take_frames(data: memoryview, expected_offset: int, wanted_offset: int, max_bytes: int) -> Taken:
    """`take_frames` where nothing is compiled: twice as fast as the loop that would be."""
    position = 0
    start = -1
    end = len(data)
    unpack = _START.unpack_from
    while True:
        left = end - position
        if left < HEADER_BYTES:
            reason, needed = Stop.SHORT, HEADER_BYTES
            break
        base, length, epoch, magic, crc, _, delta = unpack(data, position)
        size = length + LENGTH_OVERHEAD
        if base != expected_offset or epoch or magic not in MAGICS or length < _BODY_BYTES_MIN:
            reason, needed = Stop.DAMAGED, 0
            break
        if start >= 0 and position + size - start > max_bytes:
            reason, needed = Stop.LIMIT, 0
            break
        if size > left:
            reason, needed = Stop.SHORT, size
            break
        if crc32c(data[position + CRC_FROM : position + size]) != crc:
            reason, needed = Stop.DAMAGED, 0
            break
        expected_offset = base + delta + 1
        if start < 0 and expected_offset > wanted_offset:
            start = position
        position += size
    if start < 0:
        start = position
    return Taken(start, position, position, expected_offset, reason, needed)


def walk_frames(
    read: ReadAt, position: int, expected_offset: int, log_bytes: int
) -> Iterator[tuple[int, FrameHeader]]:
    """Go over the verified frames of a log file, in order, up to the first that is damaged or cut off.

    Args:
        read: reads the file.
        position: where a frame begins.
        expected_offset: its base offset.
        log_bytes: size of the file.

    Yields:
        The position and the header of each frame.
    """
    chunk_bytes = _CHUNK_BYTES
    while position < log_bytes:
        wanted_bytes = min(chunk_bytes, log_bytes - position)
        data = memoryview(read(position, wanted_bytes))
        if len(data) < wanted_bytes:
            log_bytes = position + len(data)  # the file has been cut since its size was taken
        taken = take_frames(data, expected_offset, expected_offset, len(data))
        at = 0
        while at < taken.stop:
            header = read_frame_header(data, at)
            yield position + at, header
            at += header.size
        position += taken.stop
        expected_offset = taken.next_offset
        if taken.reason is Stop.DAMAGED or position + taken.needed_bytes > log_bytes:
            return
        chunk_bytes = max(_CHUNK_BYTES, taken.needed_bytes)


def find_frame(
    read: ReadAt, position: int, expected_offset: int, next_offset: int | None, log_bytes: int
) -> tuple[int, int] | None:
    """Find the next frame behind damage that certainly stands where it belongs.

    A checksum covers neither a frame's base offset nor its place: the offset may be damaged too, and a record may
    hold what looks like a frame, such as a copy of a log file. So the base offset must be confirmed, by what the
    damaged header says of its own records, by the frame that follows, or by the end of the segment.

    Args:
        read: reads the file.
        position: where the damage begins.
        expected_offset: the base offset of the frame that should stand there.
        next_offset: the offset behind the segment; None if unknown.
        log_bytes: size of the file.

    Returns:
        Its position and base offset; None if there is none up to the end of the file.
    """
    marks = [bytes(4) + bytes([magic]) for magic in MAGICS]  # leader epoch 0 and the magic, at byte 12
    mark_at = 12
    likely = _places_behind(read, position, expected_offset)
    max_offset = _OFFSET_MAX if next_offset is None else next_offset - 1
    position += 1
    while position + HEADER_BYTES <= log_bytes:
        wanted_bytes = min(_CHUNK_BYTES, log_bytes - position)
        data = read(position, wanted_bytes)
        if len(data) < wanted_bytes:
            log_bytes = position + len(data)  # the file has been cut since its size was taken
        for candidate in sorted(_places(data, marks)):
            at = position + candidate - mark_at
            if candidate < mark_at or at + HEADER_BYTES > log_bytes:
                continue
            header = read_frame_header(read(at, HEADER_BYTES))
            stop = at + header.size
            plausible = expected_offset <= header.base_offset <= max_offset and header.length >= _BODY_BYTES_MIN
            if not plausible or stop > log_bytes or crc32c(read(at, header.size)[CRC_FROM:]) != header.crc:
                continue
            behind = int.from_bytes(read(stop, 8), "big") if stop < log_bytes else next_offset
            if behind == header.last_offset + 1 or not likely.isdisjoint(
                ((at, header.base_offset), (-1, header.base_offset))
            ):
                return at, header.base_offset
        position += max(len(data) - HEADER_BYTES, 1)
    return None


def _places_behind(read: ReadAt, position: int, expected_offset: int) -> set[tuple[int, int]]:
    """Where frames behind damage should stand, and their base offsets, as the damaged headers tell by their lengths
    and by the two fields in which each counts its records."""
    places: set[tuple[int, int]] = set()
    while len(places) < _LIKELY_PLACES_MAX and len(start := read(position, HEADER_BYTES)) == HEADER_BYTES:
        header = read_frame_header(start)
        counts = {header.record_count, header.last_offset_delta + 1}
        if header.magic not in MAGICS and len(counts) > 1:
            break  # not what is left of a header, but zeros or anything else
        next_offset = expected_offset + header.record_count
        next_offsets = {expected_offset + count for count in counts if count > 0}
        if not places:
            places |= {(-1, offset) for offset in next_offsets}  # behind the first, even if its length is damaged
        position += header.size
        places |= {(position, offset) for offset in next_offsets}
        if len(counts) > 1 or header.record_count < 1 or header.length < _BODY_BYTES_MIN:
            break
        expected_offset = next_offset
    return places


def _places(data: bytes, marks: list[bytes]) -> Iterator[int]:
    for mark in marks:
        at = data.find(mark)
        while at >= 0:
            yield at
            at = data.find(mark, at + 1)
