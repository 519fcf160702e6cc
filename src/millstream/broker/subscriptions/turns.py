"""The turns of one partition's subscriptions: who may deliver now, and the frames that they read together."""

import logging
from bisect import bisect_left
from itertools import islice
from typing import Final, Protocol

from millstream.broker.partition import Partition
from millstream.broker.subscriptions.interface import FrameSource
from millstream.model.frame import LENGTH_OVERHEAD, FrameHeader, read_frame_header
from millstream.model.runtime import Runtime
from millstream.storage.errors import StorageError

__all__ = ["Chunk", "PartitionBounds", "PartitionTurns", "Subscriber"]

_log = logging.getLogger(__name__)
_READ_BYTES_MIN: Final = 4096
READ_BYTES_MAX: Final = 256 * 1024
"""Bytes read from the log at a time: what subscriptions at the same place share."""
_CHUNKS_KEPT: Final = 4
"""Pieces of the log that stay while turns follow each other, for subscriptions at about as many places."""
_SUBSCRIBERS_MAX: Final = 16
"""Subscriptions that have their turns in one go; then others on the loop have theirs."""


class PartitionBounds:
    """How far a partition may be read by consumers. This one is for logs without transactions."""

    def stable_offset(self, partition: Partition) -> int:
        """The first offset that may not be read yet; `Partition.announce` is to be called when it grows."""
        return partition.log.end_offset

    def is_terminated(self, partition: Partition) -> bool:
        """Whether nothing will ever be appended again; `Partition.announce` is to be called when that changes."""
        return partition.terminated


class Subscriber(Protocol):
    """A subscription, as turns see it."""

    def turn(self) -> None:
        """Deliver, within the limits of one turn, what can be delivered."""


class Chunk:
    """Some frames, one behind the other.

    Args:
        start: the offset from which they were read.
        end: the offset behind them.
        data: their bytes.
    """

    __slots__ = ("end", "frames", "start")

    def __init__(self, start: int, end: int, data: memoryview) -> None:
        self.start = start
        self.end = end
        self.frames: list[tuple[FrameHeader, memoryview]] = []
        append, position, size = self.frames.append, 0, len(data)
        while position < size:
            header = read_frame_header(data, position)
            behind = position + header.length + LENGTH_OVERHEAD
            append((header, data[position:behind]))
            position = behind

    def place(self, offset: int) -> int:
        """The place in `frames` of the frame that holds an offset, or else of the first behind it."""
        return bisect_left(self.frames, offset, key=_last_offset)


def _last_offset(frame: tuple[FrameHeader, memoryview]) -> int:
    return frame[0].last_offset


class PartitionTurns:
    """Gives the subscriptions of one partition their turns.

    Args:
        partition: which.
        runtime: what runs the turns.
        bounds: how far it may be read.
    """

    def __init__(self, partition: Partition, runtime: Runtime, bounds: PartitionBounds) -> None:
        self.partition = partition
        self.bounds = bounds
        self._runtime = runtime
        self._due: dict[Subscriber, None] = {}
        self._waiting: dict[Subscriber, None] = {}
        self._turn_due = False
        self._watching = False
        self._chunks: list[tuple[FrameSource | None, Chunk]] = []
        self._record_bytes = 1024.0

    @property
    def stable_offset(self) -> int:
        """The first offset that may not be read yet."""
        return self.bounds.stable_offset(self.partition)

    # Turns

    def schedule(self, subscriber: Subscriber) -> None:
        """Give a subscription a turn, once the work at hand is done."""
        self._due[subscriber] = None
        if not self._turn_due:
            self._turn_due = True
            self._runtime.call_soon(self._turn)

    def await_news(self, subscriber: Subscriber) -> None:
        """Give a subscription a turn when there is something new in the partition."""
        self._waiting[subscriber] = None
        if not self._watching:
            self._watching = True
            self.partition.watch(self._news)

    def forget(self, subscriber: Subscriber) -> None:
        """Give a subscription no turn any more."""
        self._due.pop(subscriber, None)
        self._waiting.pop(subscriber, None)
        if not self._waiting:
            self._unwatch()

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self.partition.unwatch(self._news)

    def _news(self) -> None:
        self._due.update(self._waiting)
        self._waiting.clear()
        self._turn()

    def _turn(self) -> None:
        self._turn_due = False
        due = list(islice(self._due, _SUBSCRIBERS_MAX))
        for subscriber in due:
            del self._due[subscriber]
        for subscriber in due:
            subscriber.turn()
        if not self._due:
            self._chunks.clear()
        elif not self._turn_due:
            self._turn_due = True
            self._runtime.call_soon(self._turn)
        if not self._waiting:
            self._unwatch()

    # Reading

    def read(self, offset: int, records: int, bytes_max: int, source: FrameSource | None = None) -> Chunk | None:
        """Frames from the one that holds an offset on, or from the next behind it; kept as long as turns follow.

        Args:
            offset: where; before the start of the log, what comes first is given.
            records: about how many are wanted.
            bytes_max: how much is wanted at most; one whole frame at least is given.
            source: read instead of the log before its horizon.

        Returns:
            None if there is nothing (yet), or it cannot be read.
        """
        if source is not None and offset >= source.horizon:
            source = None
        for whose, chunk in self._chunks:
            if whose is source and chunk.start <= offset < chunk.end:
                return chunk
        log = self.partition.log
        wanted = max(min(bytes_max, READ_BYTES_MAX, int(records * self._record_bytes)), _READ_BYTES_MIN)
        try:
            if source is not None:
                data, end = source.read(offset, wanted)
            elif offset < log.end_offset:
                data, end = log.read(max(offset, log.start_offset), wanted)
            else:
                return None
        except (StorageError, OSError) as error:
            _log.error("read failed directory=%s offset=%d reason=%s", log.directory, offset, error)
            return None
        if end <= offset:
            return None
        chunk = Chunk(offset, end, data)
        if chunk.frames:
            read_records = sum(header.record_count for header, _ in chunk.frames)
            self._record_bytes += (len(data) / max(read_records, 1) - self._record_bytes) / 4
        self._chunks.append((source, chunk))
        if len(self._chunks) > _CHUNKS_KEPT:
            self._chunks.pop(0)
        return chunk

    def header_at(self, base_offset: int) -> FrameHeader | None:
        """The header of the frame with a base offset, read from the log; None if there is none."""
        log = self.partition.log
        if not log.start_offset <= base_offset < log.end_offset:
            return None
        try:
            data, _ = log.read(base_offset, 1)
        except (StorageError, OSError) as error:
            _log.error("read failed directory=%s offset=%d reason=%s", log.directory, base_offset, error)
            return None
        if not data:
            return None
        header = read_frame_header(data)
        return header if header.base_offset == base_offset else None
