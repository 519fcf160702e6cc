"""A span: frames that stand one behind the other in the log and are taken apart together.

What a frame costs beside its records counts where it has one record only. So the frames of clients that do not batch
are taken apart, translated and kept a span at a time. A span has one frame of any kind, or several small ones of one
encoding, without a gap between them, that are neither compressed nor control batches.

Whoever reads a log from wherever meets the same spans sooner or later, and so finds what others made of them: none
goes beyond a multiple of 256 offsets.

A frame's head in a span is HEAD_FIELDS numbers:

    0  its base offset, from the span's     5  first timestamp, ms since 1970
    1  where its body begins                6  max timestamp, ms since 1970
    2  where its body ends                  7  attributes
    3  how many records it has              8  the records of the span up to its end, once a `RecordTable` is made
    4  how many offsets it takes
"""

from collections.abc import Iterator
from typing import Final

from millstream.model.frame import CRC_POSITION, HEADER_BYTES, FrameHeader, base_offset_at, read_frame_header
from millstream.model.frame_heads import COMPILED, TOTALS, take_heads
from millstream.model.numbers import numbers

__all__ = ["FRAME_BYTES_MAX", "HEAD_FIELDS", "FrameSpan", "frame_of", "spans_of", "take_span"]

HEAD_FIELDS: Final = 9
FRAME_BYTES_MAX: Final = 16 * 1024
"""Bytes of a frame that can be in a span with others; it has 64 records at most."""
SPAN_FRAMES_MAX: Final = 256 if COMPILED else 1
"""Where nothing is compiled every frame goes by itself."""
SPAN_BYTES_MAX: Final = 128 * 1024
"""Bytes after which a span ends: what one record batch made of it should not exceed by much."""
_NO_END: Final = 2**63 - 1


class FrameSpan:
    """Some frames.

    Args:
        data: their bytes.
        heads: their heads.
        count: how many there are.
        records: of all of them.
        end_offset: behind them.
        digest: follows from their checksums: tells them from what compaction has left of them.
    """

    __slots__ = ("count", "data", "digest", "end_offset", "heads", "records")

    def __init__(
        self, data: memoryview, heads: memoryview, count: int, records: int, end_offset: int, digest: int
    ) -> None:
        self.data = data
        self.heads = heads
        self.count = count
        self.records = records
        self.end_offset = end_offset
        self.digest = digest

    @property
    def header(self) -> FrameHeader:
        """The header of the first frame."""
        return read_frame_header(self.data)

    @property
    def magic(self) -> int:
        """The encoding."""
        return self.data[16]

    @property
    def base_offset(self) -> int:
        """Of the first frame."""
        return base_offset_at(self.data, 0)

    @property
    def last_crc(self) -> int:
        """The checksum of the last frame."""
        crc = self.heads[self.count * HEAD_FIELDS - HEAD_FIELDS + 1] - HEADER_BYTES + CRC_POSITION
        return int.from_bytes(self.data[crc : crc + 4], "big")

    def bodies(self) -> Iterator[memoryview]:
        """What stands behind the header of each frame."""
        for head in range(0, self.count * HEAD_FIELDS, HEAD_FIELDS):
            yield self.data[self.heads[head + 1] : self.heads[head + 2]]

    def with_body(self, body_bytes: int) -> "FrameSpan":
        """The same span of one frame where the body, decompressed, stands by itself."""
        heads = numbers(HEAD_FIELDS)
        heads[:] = self.heads[:HEAD_FIELDS]
        heads[1], heads[2] = 0, body_bytes
        return FrameSpan(self.data, heads, 1, self.records, self.end_offset, self.digest)

    def frames(self) -> Iterator["FrameSpan"]:
        """Each frame as a span of its own."""
        return spans_of(self.data, frames_max=1)


def take_span(
    data: memoryview,
    position: int = 0,
    *,
    end_offset: int = _NO_END,
    records_max: int = _NO_END,
    bytes_max: int = SPAN_BYTES_MAX,
    frames_max: int = SPAN_FRAMES_MAX,
) -> FrameSpan:
    """Take as many frames as belong together.

    Args:
        data: whole frames, one after the other.
        position: of the first frame, which is taken whatever it is.
        end_offset: frames from this offset on are left.
        records_max: of all frames; the first may have more.
        bytes_max: of frames after which no other follows.
        frames_max: how many there may be.
    """
    heads = numbers(HEAD_FIELDS * frames_max)
    totals = numbers(TOTALS)
    count = take_heads(data, position, end_offset, records_max, bytes_max, heads, totals)
    stop, records, behind, digest = totals.tolist()
    return FrameSpan(data[position:stop], heads, count, records, behind, digest)


def frame_of(frame: memoryview) -> FrameSpan:
    """A span of one frame.

    Args:
        frame: the whole frame.
    """
    return take_span(frame, frames_max=1)


def spans_of(data: memoryview, *, frames_max: int = SPAN_FRAMES_MAX) -> Iterator[FrameSpan]:
    """All spans of some whole frames, one after the other."""
    position = 0
    while position < len(data):
        span = take_span(data, position, frames_max=frames_max)
        yield span
        position += len(span.data)
