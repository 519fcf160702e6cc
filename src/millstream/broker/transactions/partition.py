"""What transactions have written to one partition: what is not decided, and what was aborted."""

from millstream.broker.partition import Partition
from millstream.broker.subscriptions.ranges import OffsetRanges
from millstream.model.frame import read_frame_header

__all__ = ["PartitionTransactions"]


class PartitionTransactions:
    """The transactional records of one partition that are not simply there.

    Args:
        partition: which.
    """

    __slots__ = ("_aborted", "_partition", "_undecided")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        # Offsets only grow, so that the transaction that came first has the lowest.
        self._undecided: dict[int, OffsetRanges] = {}
        self._aborted = OffsetRanges()

    @property
    def stable_offset(self) -> int:
        """The first offset of an open transaction, or the end of the log."""
        for ranges in self._undecided.values():
            return ranges.first[0]
        return self._partition.log.end_offset

    @property
    def aborted(self) -> OffsetRanges:
        """The offsets of aborted transactions; to be looked at only."""
        return self._aborted

    @property
    def undecided(self) -> list[int]:
        """The numbers of the transactions that have written here and are not decided."""
        return list(self._undecided)

    def is_aborted(self, base_offset: int) -> bool:
        """Whether the frame at an offset is of an aborted transaction."""
        return base_offset in self._aborted

    def wrote(self, number: int, start: int, end: int) -> None:
        """A transaction has written the offsets from start to before end."""
        ranges = self._undecided.get(number)
        if ranges is None:
            ranges = self._undecided[number] = OffsetRanges()
        ranges.add(start, end)

    def end(self, number: int, *, commit: bool) -> OffsetRanges | None:
        """A transaction is decided.

        Returns:
            What it has written here; None if that is nothing.
        """
        ranges = self._undecided.pop(number, None)
        if ranges is None:
            return None
        if not commit:
            self.abort(ranges)
        self._partition.announce()
        return ranges

    def abort(self, ranges: OffsetRanges) -> None:
        """Some offsets are of an aborted transaction."""
        for start, end in ranges:
            self._aborted.add(start, end)

    def forget_before(self, offset: int) -> None:
        """The log begins at an offset now."""
        self._aborted.remove_before(offset)

    def decided(self, data: memoryview, offset: int, behind: int) -> tuple[memoryview, int]:
        """Leave out what is not decided.

        Args:
            data: whole frames, one behind the other.
            offset: from which they were read.
            behind: the offset behind them.

        Returns:
            The frames before the stable offset, and the offset behind them.
        """
        stable_offset = self.stable_offset
        if behind <= stable_offset:
            return data, behind
        position = 0
        while position < len(data):
            header = read_frame_header(data, position)
            if header.base_offset >= stable_offset:
                break
            position += header.size
        return data[:position], max(offset, stable_offset)
