"""Which micro-batches a table holds: so that one which Spark runs again is not written again.

A table keeps, for each application that writes to it, the number of the last micro-batch it holds, in the same
transaction that published the batch. After a crash Spark runs the last micro-batch of a checkpoint again, with the
same number and the same input, and never one before that. Hence the rule: the number that is there is a repetition,
a greater one is new, and a smaller one means that the checkpoint is older than the table.
"""

from collections.abc import Callable
from dataclasses import dataclass

from millstream.spark.errors import StaleBatch

__all__ = ["Batch", "Ledger", "is_committed"]

Ledger = Callable[[str], int | None]
"""The number of the last micro-batch under a name; None if there was none."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch.

    Args:
        application: the id under which the ledger has its writer: by default that of the query, which stays the same
            as long as the checkpoint does.
        batch_id: its number, from 0.
        query: the id of the query; empty for a batch that no query wrote.
    """

    application: str
    batch_id: int
    query: str = ""

    def entries(self) -> dict[str, int]:
        """What the ledger has to hold once the batch is published, by name."""
        entries = {self.application: self.batch_id}
        if owner := self._owner():
            entries[owner] = self.batch_id
        return entries

    def _owner(self) -> str:
        """The name that tells the query behind an application whose id was given by the option applicationId."""
        return f"{self.application}@{self.query}" if self.query not in {"", self.application} else ""

    def is_committed(self, ledger: Ledger) -> bool:
        """Whether a table with this ledger holds the batch.

        Raises:
            StaleBatch: it is beyond it, or another checkpoint has written under the same id.
        """
        last = ledger(self.application)
        if last is None:
            return False
        owner = self._owner()
        if owner and ledger(owner) != last:
            raise StaleBatch(
                f"the table holds batches up to {last} of application {self.application!r} from another checkpoint; "
                "give the option applicationId another value, or leave it out"
            )
        if self.batch_id < last:
            raise StaleBatch(
                f"batch {self.batch_id} of application {self.application!r} comes though the table holds batch {last}"
                ": the checkpoint is older than the table, or was reset; to write its rows again, give the option "
                "applicationId another value"
            )
        return self.batch_id == last


def is_committed(batch: Batch | None, ledger: Ledger) -> bool:
    """Whether a table holds a batch; never, for rows that have no number. Raises StaleBatch."""
    return batch is not None and batch.is_committed(ledger)
