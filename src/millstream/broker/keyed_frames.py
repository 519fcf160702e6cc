"""What compaction has a session read in frames, and write; and how it holds their keys in memory."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from millstream.broker.steps import Steps
from millstream.model.frame import FrameHeader, read_frame_header

__all__ = [
    "KEY_BYTES_MAX",
    "SLICE_RECORDS",
    "Buffer",
    "FrameRecords",
    "KeyedRecord",
    "OpenFrame",
    "short_key",
    "steps_of",
]

Buffer = bytes | bytearray | memoryview
KEY_BYTES_MAX: Final = 16
"""Longer keys are kept in memory as digests, so that each takes no more than a short one."""
SLICE_RECORDS: Final = 500
"""What one step looks at: a millisecond at most, in which everyone else waits."""


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


class OpenFrame(Protocol):
    """A frame that was found to be readable from its first record to its last."""

    def records(self) -> Iterator[Sequence[KeyedRecord]]:
        """Its records in order, SLICE_RECORDS at a time at most, each of a place within the frame. Asked for once."""

    def left(self, stays: bytearray, horizon_ms: int | None) -> Steps[Buffer | None]:
        """A frame of the same offsets with some of its records only.

        Args:
            stays: a byte for each place in the frame, 1 for the records that stay, which are one at least, and 0.
            horizon_ms: the delete horizon that it is to be told, see `millstream.model.frame`; None for none.

        Returns:
            None if the frame is to stay as it is. One that cannot be told a horizon, so that its tombstones stay,
            comes without.
        """


class FrameRecords(Protocol):
    """What only a session can read in a frame, and write.

    A frame of some KB may unpack to a million records: what reads and writes it goes by steps.
    """

    def open(self, header: FrameHeader, frame: memoryview) -> Steps[OpenFrame | None]:
        """Read a frame with records; None if nobody can read it."""


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
