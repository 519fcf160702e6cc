"""What other protocols wrote, or Iggy's clients in another layout, as messages in the layout of whoever polls."""

from array import array
from collections.abc import Hashable, Sequence
from typing import Final

from millstream.model.frame import FrameHeader, Magic
from millstream.model.record import Record
from millstream.model.record_table import RecordTable
from millstream.wire.iggy.incoming import Layout
from millstream.wire.iggy.polled import message_of
from millstream.wire.iggy.polled_frame import PolledFrame, poll_messages, poll_table

__all__ = ["PolledFrames"]


class PolledFrames:
    """The form of messages in one layout.

    Args:
        layout: of the dialect that asks.
        partition: whose they are.
        id_seed: names the partition; ids of messages without one follow from it and their offsets.
    """

    def __init__(self, layout: Layout, partition: int, id_seed: bytes) -> None:
        self.name: Hashable = layout
        self._layout = layout
        self._partition = partition
        self._id_seed = id_seed

    def of_table(self, table: RecordTable) -> PolledFrame | None:
        if not table.count:
            return _NOTHING
        return poll_table(table, self._layout, self._partition, self._id_seed)

    def of_records(self, records: Sequence[Record], header: FrameHeader) -> PolledFrame:
        if not records:
            return _NOTHING
        append_time_ms = header.max_timestamp if header.magic == Magic.IGGY_BATCH else None
        messages = [message_of(record, self._id_seed, append_time_ms) for record in records]
        return poll_messages(messages, self._layout, self._partition)

    def size_bytes(self, made: PolledFrame) -> int:
        return made.size_bytes


_NOTHING: Final = PolledFrame(Layout.SHORT, memoryview(b""), (), array("q", (0,)), array("q"))
