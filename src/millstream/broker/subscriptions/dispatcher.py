"""What all dispatch rules share: walking over the log behind a cursor, and acknowledging frames."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from millstream.broker.subscriptions.consumer import Consumer
from millstream.broker.subscriptions.cursor import Cursor
from millstream.broker.subscriptions.interface import FrameInspector, FrameSource, Subscribing, SubscriptionSettings
from millstream.broker.subscriptions.ranges import OffsetRanges
from millstream.broker.subscriptions.turns import PartitionTurns, Subscriber
from millstream.model.frame import Attributes, FrameHeader
from millstream.model.runtime import Runtime

__all__ = ["Context", "Dispatcher", "acknowledge_records", "acknowledged_runs"]

_RUN = re.compile("1+")
_ASKED_OR_HIDDEN = Attributes.TRANSACTIONAL | Attributes.CONTROL
_RECORD_BYTES = 8
"""Bytes that a record counts in a turn at least: a frame of some KB may unpack to a million records, and each of them
takes its time where the frame has to be taken apart for its consumer."""


@dataclass(slots=True)
class Context:
    """What a dispatch rule works on.

    Args:
        runtime: time and timers.
        settings: limits and delays.
        turns: gives turns, and reads the log.
        cursor: of the subscription.
        inspector: reads frames.
        subscriber: the subscription, as `turns` knows it.
        source: read instead of the log up to its horizon.
    """

    runtime: Runtime
    settings: SubscriptionSettings
    turns: PartitionTurns
    cursor: Cursor
    inspector: FrameInspector
    subscriber: Subscriber
    source: FrameSource | None = None

    def wake(self) -> None:
        """Ask for a turn."""
        self.turns.schedule(self.subscriber)


class Dispatcher(ABC):
    """A dispatch rule. `read_offset` is the offset behind the last frame that was read for a consumer.

    Args:
        context: what it works on.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.read_offset = context.cursor.position
        self._at_tail = False
        self._stalled = False
        self._entries_left = 0
        self._bytes_left = 0

    # What differs

    @abstractmethod
    def check(self, request: Subscribing) -> None:
        """Check that a consumer could come. Raises SubscriptionError."""

    @abstractmethod
    def add(self, consumer: Consumer) -> None:
        """A consumer comes that was checked."""

    @abstractmethod
    def remove(self, consumer: Consumer) -> None:
        """A consumer leaves."""

    @abstractmethod
    def turn(self) -> None:
        """Deliver, within the limits of one turn, what can be delivered."""

    @abstractmethod
    def acknowledge(self, consumer: Consumer, base_offset: int, wanted: int | None) -> int:
        """Acknowledge a frame or records of it; returns how many records were not acknowledged before."""

    @abstractmethod
    def acknowledge_cumulative(self, consumer: Consumer, base_offset: int, wanted: int | None) -> int:
        """Acknowledge everything up to a frame, where the rule allows it; as `acknowledge`."""

    @abstractmethod
    def count_of(self, base_offset: int) -> int:
        """Offsets of the frame with a base offset; 0 if there is none, or it is known to be all acknowledged."""

    @abstractmethod
    def pended(self, base_offset: int, records: int) -> None:
        """So many records of a frame are acknowledged in a transaction that is not decided."""

    @abstractmethod
    def unpended(self, ranges: OffsetRanges, *, commit: bool) -> None:
        """Such a transaction is decided: the offsets are acknowledged now, or are to be delivered again."""

    @abstractmethod
    def redeliver(self, consumer: Consumer, base_offsets: Iterable[int] | None) -> None:
        """Deliver frames again; see `Consumer.redeliver`."""

    @abstractmethod
    def moved(self, *, backwards: bool) -> None:
        """The cursor was moved by something else than acknowledgements of frames."""

    @abstractmethod
    def unacknowledged_of(self, consumer: Consumer) -> int:
        """Records delivered to a consumer and not acknowledged."""

    @property
    def unacknowledged(self) -> int:
        """Records delivered to anybody and not acknowledged."""
        return 0

    @property
    def blocked(self) -> bool:
        """Whether nothing is delivered because of what is not acknowledged."""
        return False

    @property
    def delayed(self) -> int:
        """Frames whose time has not come."""
        return 0

    @property
    def waiting(self) -> int:
        """Frames that were read, and are to be delivered."""
        return 0

    @abstractmethod
    def flowed(self, consumer: Consumer) -> None:
        """A consumer was given permits."""

    def key_ranges(self, consumer: Consumer) -> tuple[tuple[int, int], ...]:
        """Slots of the keys that a consumer gets."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Let no timer run any more."""

    # What is shared

    def _begin_turn(self) -> None:
        settings = self.context.settings
        self._entries_left = settings.turn_entries_max
        self._bytes_left = settings.turn_bytes_max
        self._at_tail = self._stalled = False
        cursor, start_offset = self.context.cursor, self.context.turns.partition.log.start_offset
        horizon = self.context.source.horizon if self.context.source is not None else 0
        if horizon <= cursor.position < start_offset:
            # Retention, or a deletion of records, took what nobody can get any more.
            cursor.acknowledge(cursor.position, start_offset)
            self.moved(backwards=False)
        self.read_offset = max(self.read_offset, cursor.position)

    def _count_given(self, frame_bytes: int, records: int) -> None:
        """Take a frame that is delivered off what this turn may deliver."""
        records_bytes = records * _RECORD_BYTES
        self._bytes_left -= frame_bytes if frame_bytes > records_bytes else records_bytes

    def _may_go_on(self) -> bool:
        """Whether the turn is within its limits."""
        return self._entries_left > 0 and self._bytes_left > 0 and not self._stalled

    def _new_frames(self, records: int) -> Iterator[tuple[FrameHeader, memoryview, int | None]]:
        """Walk over the frames from `read_offset` on that are for consumers, with the records wanted of each.

        The offset moves on when the next frame is asked for: a frame at which the walk is left comes again. What is
        not there, or is for no consumer, counts as acknowledged. `_at_tail` tells afterwards whether that was all.

        Args:
            records: about how many can be used.
        """
        context = self.context
        turns, cursor = context.turns, context.cursor
        stable_offset = turns.stable_offset
        while self._may_go_on():
            chunk = None
            if self.read_offset < stable_offset:
                chunk = turns.read(self.read_offset, records, self._bytes_left, context.source)
            if chunk is None:
                self._at_tail = True
                return
            frames = chunk.frames
            untouched_offset = cursor.untouched_offset
            for header, frame in islice(frames, chunk.place(self.read_offset), None):
                base_offset = header.base_offset
                if base_offset >= stable_offset:
                    self._at_tail = True
                    return
                if self._entries_left <= 0 or self._bytes_left <= 0 or self._stalled:
                    return
                if base_offset > self.read_offset:
                    cursor.acknowledge(self.read_offset, base_offset)
                self._entries_left -= 1
                behind = base_offset + header.last_offset_delta + 1
                if header.record_count <= 0 or (
                    header.attributes & _ASKED_OR_HIDDEN and self._is_hidden(header, frame)
                ):
                    cursor.acknowledge(base_offset, behind)
                else:
                    wanted = None
                    if base_offset < untouched_offset:
                        wanted = cursor.wanted(base_offset, behind - base_offset)
                    if wanted != 0:
                        yield header, frame, wanted
                    elif cursor.pending:
                        self._passed_over(header, frame)
                self.read_offset = behind
            if chunk.end > self.read_offset:
                # Damage, or what compaction left out, up to the end of what was read.
                cursor.acknowledge(self.read_offset, min(chunk.end, stable_offset))
                self.read_offset = min(chunk.end, stable_offset)

    def _passed_over(self, header: FrameHeader, frame: memoryview) -> None:  # noqa: B027 - most rules remember nothing
        """A frame was not delivered that may be all acknowledged, but for what transactions are to decide."""

    def _is_hidden(self, header: FrameHeader, frame: memoryview) -> bool:
        if header.attributes & Attributes.CONTROL or self.context.turns.partition.is_aborted(header.base_offset):
            return True
        return self.context.inspector.is_hidden(header, frame)

    def _header_at(self, base_offset: int) -> FrameHeader | None:
        """The header of the frame with a base offset, from the log; None if there is no such frame."""
        return self.context.turns.header_at(base_offset)


def acknowledge_records(cursor: Cursor, base_offset: int, count: int, wanted: int | None) -> int:
    """Acknowledge a frame, or the records of it that are not wanted any more.

    Args:
        cursor: where.
        base_offset, count: the offsets of the frame.
        wanted: bit n for record n that is still wanted; None for none of them.

    Returns:
        How many records were not acknowledged before.
    """
    return sum(cursor.acknowledge(*run) for run in acknowledged_runs(base_offset, count, wanted))


def acknowledged_runs(base_offset: int, count: int, wanted: int | None) -> Iterator[tuple[int, int]]:
    """The offsets of a frame that are not wanted any more, as ranges (start, end); arguments as above."""
    if wanted is None:
        yield base_offset, base_offset + count
        return
    # As text, because a batch may have a million records: taking bits off a number that long, run by run, would take
    # a minute where every second record is done. What lies behind the highest bit is one run: the cost is that of the
    # set as its sender wrote it, not that of the frame, or a thousand sets of a few bytes would hold everyone up.
    size = wanted.bit_length()
    if size > count:
        wanted &= (1 << count) - 1
        size = wanted.bit_length()
    for run in _RUN.finditer(f"{~wanted & ((1 << size) - 1):b}"[::-1]):
        yield base_offset + run.start(), base_offset + run.end()
    if size < count:
        yield base_offset + size, base_offset + count
