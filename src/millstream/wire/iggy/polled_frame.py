"""Frames of another encoding as the messages that the answer to a poll carries: made whole, handed out in parts.

The messages of a part are those of the whole; in BATCH, a batch of which only some are asked for gets a header of its
own, as with batches that were sent in that layout.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from millstream.model.frame import Magic
from millstream.model.frame_span import HEAD_FIELDS
from millstream.model.record_table import ROW_FIELDS, RecordTable
from millstream.wire.iggy.headers import write_headers
from millstream.wire.iggy.incoming import BATCH_HEADER_BYTES, Layout
from millstream.wire.iggy.message_rows import COMPILED
from millstream.wire.iggy.polled import Buffer, Message, Slice, encode_runs, message_of, part_of_batch
from millstream.wire.iggy.polled_rows import BATCH_BYTES, HEADER_BYTES_MAX, MESSAGE_BYTES_MAX, PolledRows

__all__ = ["PolledFrame", "poll_messages", "poll_table"]

_TIME_MAX_MS: Final = 2**50
"""Times up to which microseconds fit the loops."""
_BATCHES: Final = 64
"""Batches for which there is room at first, in BATCH. Messages of a time each are one each."""


@dataclass(frozen=True, slots=True)
class PolledFrame:
    """Messages of one span of frames.

    Args:
        layout: theirs.
        content: their bytes.
        offsets: of each of them, ascending.
        starts: where each of them begins in there, and where the last one ends. The header of a batch stands before
            its first message.
        firsts: the index of the first message of each batch, in BATCH.
    """

    layout: Layout
    content: memoryview
    offsets: Sequence[int]
    starts: "array[int]"
    firsts: "array[int]"

    @property
    def size_bytes(self) -> int:
        """Bytes that it takes in memory, about."""
        return len(self.content) + 8 * (len(self.starts) + len(self.firsts) + len(self.offsets))

    def part(self, first_offset: int, count: int) -> Slice | None:
        """Some of the messages, ready to be sent.

        Args:
            first_offset: of the first message wanted.
            count: how many are wanted at most.

        Returns:
            None if there are none.
        """
        first = bisect_left(self.offsets, first_offset)
        stop = min(first + count, len(self.offsets))
        if first >= stop:
            return None
        if self.layout is Layout.BATCH:
            buffers = self._batches(first, stop)
        else:
            buffers = [self.content[self.starts[first] : self.starts[stop]]]
        return Slice(stop - first, self.offsets[stop - 1], buffers)

    def _batches(self, first: int, stop: int) -> list[Buffer]:
        buffers: list[Buffer] = []
        place = bisect_right(self.firsts, first) - 1
        while first < stop:
            batch_first, batch_stop = self.firsts[place], self._stop_of(place)
            begin = self.starts[batch_first] - BATCH_HEADER_BYTES
            if first == batch_first and batch_stop <= stop:
                # As many whole batches as there are, in one piece.
                place = bisect_right(self.firsts, stop) - 1
                if self._stop_of(place) <= stop:
                    place += 1
                first = self._stop_of(place - 1)
                buffers.append(self.content[begin : self._end_of(place - 1)])
                continue
            part_stop = min(stop, batch_stop)
            starts = [at - begin for at in self.starts[first:part_stop]]
            end = self.starts[part_stop] if part_stop < batch_stop else self._end_of(place)
            buffers += part_of_batch(self.content[begin:end], [*starts, end - begin], range(len(starts)))
            first = part_stop
            place += 1
        return buffers

    def _stop_of(self, place: int) -> int:
        """The index behind the last message of a batch."""
        return self.firsts[place + 1] if place + 1 < len(self.firsts) else len(self.offsets)

    def _end_of(self, place: int) -> int:
        """Where a batch ends in the content."""
        stop = self._stop_of(place)
        return self.starts[stop] - (BATCH_HEADER_BYTES if stop < len(self.offsets) else 0)


def poll_messages(messages: Sequence[Message], layout: Layout, partition: int) -> PolledFrame:
    """Make messages of a frame ready to be polled.

    Args:
        messages: by offset, at least one.
        layout: of the dialect that asks.
        partition: whose they are.
    """
    content, starts, firsts = encode_runs(messages, layout, partition)
    offsets = _dense([message.offset for message in messages])
    return PolledFrame(layout, memoryview(content), offsets, starts, firsts)


def poll_table(
    table: RecordTable,
    layout: Layout,
    partition: int,
    id_seed: bytes,
    *,
    compiled: bool = COMPILED,
) -> PolledFrame | None:
    """Make the records of a span ready to be polled, as `message_of` and `poll_messages` would.

    Args:
        table: the records, at least one.
        layout, partition: as `poll_messages`.
        id_seed: as `message_of`.
        compiled: whether the loop is to be used; it is slow where it is not compiled.

    Returns:
        None if their times are out of the ordinary.
    """
    span = table.span
    heads = span.heads[: HEAD_FIELDS * span.count]
    appended = span.magic == Magic.IGGY_BATCH
    times = table.rows[1 : table.count * ROW_FIELDS : ROW_FIELDS]
    if not compiled or max(times) > _TIME_MAX_MS:
        return None
    if appended and not 0 <= min(heads[6::HEAD_FIELDS]) <= max(heads[6::HEAD_FIELDS]) < _TIME_MAX_MS:
        return None

    def describe(index: int, headers_before: int) -> bytes:
        message = message_of(table.record(index, headers_before), id_seed)
        block = write_headers(message.headers, kinded_keys=layout >= Layout.LONG)
        return message.id + message.origin_us.to_bytes(8, "little") + block

    room = table.content_bytes + MESSAGE_BYTES_MAX * table.count + HEADER_BYTES_MAX * table.header_count
    place = heads, table.base_offset, appended, partition, id_seed
    for batches_max in (_BATCHES, table.count):
        more = batches_max, room + BATCH_BYTES * batches_max
        writer = PolledRows(table.data, table.rows, table.headers, table.count, *place, describe, *more)
        size = writer.write(layout)
        if size >= 0:
            break
    offsets = _dense([table.base_offset + delta for delta in table.rows[0 : table.count * ROW_FIELDS : ROW_FIELDS]])
    content = memoryview(bytes(memoryview(writer.out)[:size]))
    return PolledFrame(layout, content, offsets, writer.starts, writer.firsts[: writer.batches])


def _dense(offsets: list[int]) -> Sequence[int]:
    """Offsets as a range if there are none missing."""
    if offsets[-1] - offsets[0] == len(offsets) - 1:
        return range(offsets[0], offsets[-1] + 1)
    return array("q", offsets)
