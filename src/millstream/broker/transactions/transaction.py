"""One transaction: its state, what belongs to it, and its stored form."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from millstream.model.pending import Pending
from millstream.model.runtime import Timer

__all__ = ["Place", "SubscriptionPlace", "Transaction", "TransactionState"]

Place = tuple[UUID, int]
"""Topic id and partition."""


class SubscriptionPlace(NamedTuple):
    """A subscription of one partition."""

    topic_id: UUID
    partition: int
    name: str


class TransactionState(Enum):
    """What has become of a transaction.

    OPEN goes over into COMMITTING or ABORTING when the decision is taken, and from there into COMMITTED or ABORTED
    when it lasts. A decision that cannot be made to last leads back to OPEN.
    """

    OPEN = "open"
    COMMITTING = "committing"
    COMMITTED = "committed"
    ABORTING = "aborting"
    ABORTED = "aborted"

    @property
    def is_decided(self) -> bool:
        """Whether it is to be committed or aborted, and no longer either."""
        return self is not TransactionState.OPEN

    @property
    def commits(self) -> bool:
        """Whether it is decided to be committed."""
        return self in {TransactionState.COMMITTING, TransactionState.COMMITTED}


@dataclass(slots=True, eq=False)
class Transaction:
    """A transaction.

    Args:
        number: its own for ever.
        deadline_ms: when it is aborted if it is open then, ms since 1970.
        state: what has become of it.
        partitions: where it may write, and where the log of each ended when that was said.
        subscriptions: where it may acknowledge.
        timer: aborts it.
        ending: resolves once the decision lasts.
        settling: resolves once all that follows from the decision lasts; True if it does.
        ended_ms: when it was decided, by the clock that only goes forward.
    """

    number: int
    deadline_ms: int
    state: TransactionState = TransactionState.OPEN
    partitions: dict[Place, int] = field(default_factory=dict)
    subscriptions: set[SubscriptionPlace] = field(default_factory=set)
    timer: Timer | None = None
    ending: Pending[None] | None = None
    settling: Pending[bool] | None = None
    ended_ms: int = 0

    def document(self) -> dict[str, Any]:
        """The stored form.

        A decision is stored as the state that leads to it, COMMITTING or ABORTING; a start does again what follows
        from it, which changes nothing if it was done.
        """
        return {
            "state": self.state.value,
            "deadline_ms": self.deadline_ms,
            "partitions": [[str(topic_id), index, offset] for (topic_id, index), offset in self.partitions.items()],
            "subscriptions": sorted([str(topic_id), index, name] for topic_id, index, name in self.subscriptions),
        }

    @classmethod
    def load(cls, number: int, document: Mapping[str, Any]) -> "Transaction":
        """Read the stored form."""
        return cls(
            number,
            document["deadline_ms"],
            TransactionState(document["state"]),
            {(UUID(topic_id), index): offset for topic_id, index, offset in document["partitions"]},
            {SubscriptionPlace(UUID(topic_id), index, name) for topic_id, index, name in document["subscriptions"]},
        )
