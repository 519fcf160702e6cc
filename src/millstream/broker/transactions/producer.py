"""A producer with a transactional id: what it is called now, and how its last transaction ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millstream.broker.transactions.transaction import Owner, ProducerEpoch, Transaction
from millstream.model.pending import Pending

__all__ = ["TransactionalProducer"]


@dataclass(slots=True, eq=False)
class TransactionalProducer:
    """A producer that goes by a name of its own, over restarts of its process.

    Args:
        transactional_id: the name.
        identity: the producer id and epoch under which it writes now.
        timeout_ms: how long its transactions may be open.
        changed_ms: when any of this changed last, ms since 1970.
        before: what it was called before, if a request of then may be repeated.
        committed: how its last transaction ended; None if it had none under its present name or the one before.
        transaction: the one that is open or being ended.
        beginning: the one that is about to be open.
        changing: resolves with its name once a change of that, or the end of its transaction, lasts.
        ending: whether that is the end of its transaction, and if so, whether with a commit.
    """

    transactional_id: str
    identity: ProducerEpoch
    timeout_ms: int
    changed_ms: int
    before: ProducerEpoch | None = None
    committed: bool | None = None
    transaction: Transaction | None = None
    beginning: Pending[Transaction] | None = None
    changing: Pending[ProducerEpoch] | None = None
    ending: bool | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing would be lost but its name, if it were forgotten."""
        return self.transaction is None and self.beginning is None and self.changing is None

    @property
    def owner(self) -> Owner:
        """It, as the owner of a transaction that begins now."""
        return Owner(self.transactional_id, self.identity)

    def document(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "producer": list(self.identity),
            "timeout_ms": self.timeout_ms,
            "changed_ms": self.changed_ms,
            "before": None if self.before is None else list(self.before),
            "committed": self.committed,
        }

    @classmethod
    def load(cls, transactional_id: str, document: Mapping[str, Any]) -> "TransactionalProducer":
        """Read the stored form."""
        before = document["before"]
        return cls(
            transactional_id,
            ProducerEpoch(*document["producer"]),
            document["timeout_ms"],
            document["changed_ms"],
            None if before is None else ProducerEpoch(*before),
            document["committed"],
        )
