"""One transaction: its state, what belongs to it, and its stored form."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from millstream.model.pending import Pending
from millstream.model.runtime import Timer
from millstream.storage.metadata import CommittedOffset

__all__ = ["Adding", "Owner", "Place", "ProducerEpoch", "SubscriptionPlace", "Transaction", "TransactionState"]

Place = tuple[UUID, int]
"""Topic id and partition."""


class SubscriptionPlace(NamedTuple):
    """A subscription of one partition."""

    topic_id: UUID
    partition: int
    name: str


class ProducerEpoch(NamedTuple):
    """Who writes: a producer id, and how often it was given out."""

    id: int
    epoch: int


class Owner(NamedTuple):
    """The producer with a transactional id whose transaction it is, as it was called when that began."""

    transactional_id: str
    producer: ProducerEpoch


@dataclass(slots=True, eq=False)
class Adding:
    """A partition that is being added.

    Args:
        offset: where its log ended when that was asked for.
        stored: resolves once that lasts.
    """

    offset: int
    stored: Pending[None]


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

    One that has an owner lasts as a document only while it is open: what becomes of it is written down with its
    owner, together with the end of the document.

    Args:
        number: its own for ever.
        deadline_ms: when it is aborted if it is open then, ms since 1970.
        state: what has become of it.
        partitions: where it may write, and where the log of each ended when that was said.
        subscriptions: where it may acknowledge.
        owner: whose it is; None for one that is known by its number.
        started_ms: when it began, ms since 1970.
        adding: partitions where it may write once that lasts.
        groups: the consumer groups that it may commit offsets of.
        offsets: what it has committed of them.
        writing: the flush that what it wrote to a partition last waits for; None if nobody waits for one.
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
    owner: Owner | None = None
    started_ms: int = 0
    adding: dict[Place, Adding] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    offsets: dict[str, dict[Place, CommittedOffset]] = field(default_factory=dict)
    writing: dict[Place, Pending[None] | None] = field(default_factory=dict)
    timer: Timer | None = None
    ending: Pending[None] | None = None
    settling: Pending[bool] | None = None
    ended_ms: int = 0

    @property
    def is_shown(self) -> bool:
        """Whether readers who do not insist on what is committed see what it writes."""
        return self.owner is not None

    def document(self) -> dict[str, Any]:
        """The stored form.

        A decision is stored as the state that leads to it, COMMITTING or ABORTING; a start does again what follows
        from it, which changes nothing if it was done.
        """
        places = self.partitions | {place: one.offset for place, one in self.adding.items()}
        document: dict[str, Any] = {
            "state": self.state.value,
            "deadline_ms": self.deadline_ms,
            "partitions": [[str(topic_id), index, offset] for (topic_id, index), offset in places.items()],
            "subscriptions": sorted([str(topic_id), index, name] for topic_id, index, name in self.subscriptions),
        }
        if self.owner is not None:
            document["state"] = TransactionState.OPEN.value  # no other is ever stored
            document["owner"] = [self.owner.transactional_id, *self.owner.producer]
            document["started_ms"] = self.started_ms
            document["groups"] = sorted(self.groups)
        return document

    @classmethod
    def load(cls, number: int, document: Mapping[str, Any]) -> "Transaction":
        """Read the stored form."""
        loaded = cls(
            number,
            document["deadline_ms"],
            TransactionState(document["state"]),
            {(UUID(topic_id), index): offset for topic_id, index, offset in document["partitions"]},
            {SubscriptionPlace(UUID(topic_id), index, name) for topic_id, index, name in document["subscriptions"]},
        )
        if "owner" in document:
            transactional_id, producer_id, epoch = document["owner"]
            loaded.owner = Owner(transactional_id, ProducerEpoch(producer_id, epoch))
            loaded.started_ms = document["started_ms"]
            loaded.groups = set(document["groups"])
        return loaded
