"""What compaction has a session read in frames, and write; and how it holds their keys in memory."""

from collections.abc import Collection, Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from millstream.model.frame import FrameHeader, read_frame_header

__all__ = ["KEY_BYTES_MAX", "Buffer", "FrameRecords", "KeyedRecord", "short_key", "steps_of"]

Buffer = bytes | bytearray | memoryview
KEY_BYTES_MAX: Final = 16
"""Longer keys are kept in memory as digests, so that each takes no more than a short one."""


class KeyedRecord(NamedTuple):
    """One record, as far as compaction looks at it.

    Args:
        place: its offset, from its frame's.
        key: None for a record that stays whatever comes.
        deletes: whether it says that there is nothing any more under its key.
    """

    place: int
    key: bytes | None
    deletes: bool


class FrameRecords(Protocol):
    """What only a session can read in a frame, and write."""

    def keys(self, header: FrameHeader, frame: memoryview) -> Sequence[KeyedRecord]:
        """The records of a frame; none if nobody can read it."""

    def keep(self, header: FrameHeader, frame: memoryview, kept: Collection[int]) -> Buffer | None:
        """A frame of the same offsets with some of its records only; None if it is to stay as it is."""

    def with_horizon(self, header: FrameHeader, frame: memoryview, horizon_ms: int) -> Buffer | None:
        """The frame with a delete horizon, see `millstream.model.frame`, its records unchanged; None if it cannot be
        told one, so that its tombstones stay."""


def short_key(key: bytes) -> bytes:
    """A key, or its digest, which is longer than any key that stands for itself."""
    if len(key) <= KEY_BYTES_MAX:
        return key
    return blake2b(key, digest_size=KEY_BYTES_MAX + 1).digest()


def steps_of(data: memoryview, records_max: int) -> Iterator[memoryview]:
    """Cut frames into runs of few records, of one frame at least."""
    start = position = records = 0
    while position < len(data):
        header = read_frame_header(data, position)
        if position > start and records + header.record_count > records_max:
            yield data[start:position]
            start, records = position, 0
        position += header.size
        records += header.record_count
    yield data[start:]
