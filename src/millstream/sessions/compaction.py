"""What compaction reads in frames whose encoding has no place for records that are missing.

Such a frame goes or stays as a whole, or becomes a Kafka batch of the records that stay.
"""

from collections.abc import Collection, Sequence

from millstream.broker.keyed_frames import Buffer, KeyedRecord
from millstream.model.frame import FrameHeader, set_delete_horizon
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.translation import batch_of, read_records

__all__ = ["NeutralFrameRecords", "marked"]


class NeutralFrameRecords:
    """Reads frames of any encoding, by their neutral records; see `FrameRecords`."""

    def keys(self, header: FrameHeader, frame: memoryview) -> Sequence[KeyedRecord]:
        """See `FrameRecords.keys`."""
        try:
            records = read_records(frame)
        except (WireError, CompressionError):
            return ()
        return [KeyedRecord(one.offset - header.base_offset, one.key, deletes=one.value is None) for one in records]

    def keep(self, header: FrameHeader, frame: memoryview, kept: Collection[int]) -> Buffer | None:
        """See `FrameRecords.keep`."""
        return batch_of([one for one in read_records(frame) if one.offset - header.base_offset in kept], header)

    def with_horizon(self, header: FrameHeader, frame: memoryview, horizon_ms: int) -> Buffer:
        """See `FrameRecords.with_horizon`."""
        return marked(frame, horizon_ms)


def marked(frame: memoryview, horizon_ms: int) -> bytearray:
    """A frame with a delete horizon, whose records have times of their own."""
    out = bytearray(frame)
    with memoryview(out) as view:
        set_delete_horizon(view, horizon_ms)
    return out
