"""What transactions have written to one partition: what is not decided, and what was aborted."""

from millstream.broker.partition import Partition
from millstream.broker.subscriptions.ranges import OffsetRanges
from millstream.model.frame import read_frame_header

__all__ = ["PartitionTransactions"]


class PartitionTransactions:
    """The transactional records of one partition that are not simply there.

    A transaction is *shown* if readers who do not insist on what is committed see its records from the beginning, and
    go on to see them when it is aborted.

    Args:
        partition: which.
    """

    __slots__ = ("_aborted", "_partition", "_shown_aborted", "_undecided", "_unshown")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        # Offsets only grow, so that the transaction that came first has the lowest.
        self._undecided: dict[int, OffsetRanges] = {}
        self._unshown: dict[int, OffsetRanges] = {}
        self._aborted = OffsetRanges()
        self._shown_aborted = OffsetRanges()

    @property
    def stable_offset(self) -> int:
        """The first offset of an open transaction, or the end of the log."""
        for ranges in self._undecided.values():
            return ranges.first[0]
        return self._partition.log.end_offset

    @property
    def uncommitted_offset(self) -> int:
        """The first offset of an open transaction that is not shown, or the end of the log."""
        for ranges in self._unshown.values():
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

    def written(self, number: int) -> OffsetRanges | None:
        """What a transaction that is not decided has written here; to be looked at only."""
        return self._undecided.get(number)

    def is_aborted(self, base_offset: int) -> bool:
        """Whether the frame at an offset is of an aborted transaction."""
        return base_offset in self._aborted

    def is_withheld(self, base_offset: int) -> bool:
        """Whether it is, and the transaction was not shown."""
        return base_offset in self._aborted and base_offset not in self._shown_aborted

    def has_aborted(self, start: int, end: int) -> bool:
        """Whether any offset from start to before end is of an aborted transaction."""
        found = self._aborted.range_at(start)
        return found is not None and found[0] < end

    def wrote(self, number: int, start: int, end: int, *, shown: bool = False) -> None:
        """A transaction has written the offsets from start to before end."""
        ranges = self._undecided.get(number)
        if ranges is None:
            ranges = self._undecided[number] = OffsetRanges()
            if not shown:
                self._unshown[number] = ranges
        ranges.add(start, end)

    def end(self, number: int, *, commit: bool) -> OffsetRanges | None:
        """A transaction is decided.

        Returns:
            What it has written here; None if that is nothing.
        """
        ranges = self._undecided.pop(number, None)
        if ranges is None:
            return None
        shown = self._unshown.pop(number, None) is None
        if not commit:
            self.abort(ranges, shown=shown)
        self._partition.announce()
        return ranges

    def abort(self, ranges: OffsetRanges, *, shown: bool = False) -> None:
        """Some offsets are of an aborted transaction."""
        for start, end in ranges:
            self._aborted.add(start, end)
            if shown:
                self._shown_aborted.add(start, end)

    def forget_before(self, offset: int) -> None:
        """The log begins at an offset now."""
        self._aborted.remove_before(offset)
        self._shown_aborted.remove_before(offset)

    def before(self, end: int, data: memoryview, offset: int, behind: int) -> tuple[memoryview, int]:
        """Leave out what lies behind an offset.

        Args:
            end: the first offset that is not to be read.
            data: whole frames, one behind the other.
            offset: from which they were read.
            behind: the offset behind them.

        Returns:
            The frames before it, and the offset behind them.
        """
        if behind <= end:
            return data, behind
        position = 0
        while position < len(data):
            header = read_frame_header(data, position)
            if header.base_offset >= end:
                break
            position += header.size
        return data[:position], max(offset, end)
