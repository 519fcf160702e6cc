"""What open transactions have acknowledged on one subscription.

Offsets that a transaction has acknowledged are not delivered to anybody; they count as acknowledged once it is
committed, and come again if it is aborted. Nobody acknowledges the same offset in two transactions.
"""

from collections.abc import Iterable

from millstream.broker.subscriptions.cursor import Cursor
from millstream.broker.subscriptions.errors import AcknowledgementConflict
from millstream.broker.subscriptions.ranges import OffsetRanges

__all__ = ["PendingAcknowledgements"]


class PendingAcknowledgements:
    """The pending acknowledgements of one subscription, by the number of their transaction.

    Args:
        cursor: of the subscription; its `pending` is the union of all of them.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._of: dict[int, OffsetRanges] = {}

    def of(self, number: int) -> OffsetRanges | None:
        """What a transaction has acknowledged; to be looked at only."""
        return self._of.get(number)

    def add(self, number: int, runs: Iterable[tuple[int, int]]) -> list[int]:
        """Acknowledge ranges of offsets in a transaction: all of them, or none.

        Returns:
            For each range how many of its offsets are acknowledged in no transaction before.

        Raises:
            AcknowledgementConflict: a range is all acknowledged, or some of it in another transaction.
        """
        own = self._of.get(number) or OffsetRanges()
        open_runs = [self._open(start, end, own) for start, end in runs]
        added = []
        for gaps in open_runs:
            added.append(sum(own.add(start, end) for start, end in gaps))
            for start, end in gaps:
                self._cursor.pend(start, end)
        if own:
            self._of[number] = own
        return added

    def _open(self, start: int, end: int, own: OffsetRanges) -> list[tuple[int, int]]:
        """What of a range is not acknowledged."""
        cursor = self._cursor
        gaps = list(cursor.acknowledged.gaps(max(start, cursor.position), end))
        if not gaps:
            raise AcknowledgementConflict(f"the messages {start} to {end - 1} are acknowledged already")
        if cursor.pending.covered(start, end) > own.covered(start, end):
            raise AcknowledgementConflict(f"messages of {start} to {end - 1} are acknowledged in another transaction")
        return gaps

    def add_before(self, number: int, end: int) -> None:
        """Acknowledge everything before an offset that is not acknowledged; otherwise as `add`."""
        cursor = self._cursor
        if end <= cursor.position:
            raise AcknowledgementConflict(f"the messages before {end} are acknowledged already")
        self.add(number, [(cursor.position, end)])

    def restore(self, number: int, ranges: OffsetRanges) -> None:
        """Take over what is stored of a transaction, but for what is acknowledged."""
        for start, end in ranges:
            if end > self._cursor.position and self._cursor.acknowledged.covered(start, end) < end - start:
                self.add(number, [(start, end)])

    def end(self, number: int, *, commit: bool) -> tuple[OffsetRanges | None, int]:
        """A transaction is decided.

        Returns:
            What it had acknowledged, None if nothing; and how many offsets are acknowledged by that.
        """
        ranges = self._of.pop(number, None)
        acknowledged = 0
        if ranges is not None:
            for start, end in ranges:
                self._cursor.unpend(start, end)
                if commit:
                    acknowledged += self._cursor.acknowledge(start, end)
        return ranges, acknowledged
