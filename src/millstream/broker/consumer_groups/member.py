"""A member of a consumer group."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from millstream.broker.any_group import Protocol
from millstream.broker.consumer_groups.requests import EMPTY_PATTERN, TopicPattern
from millstream.broker.deadline import Deadline
from millstream.broker.offsets import Place

__all__ = ["LEFT_EPOCH", "ClassicDetails", "ConsumerMember", "MemberState"]

LEFT_EPOCH: Final = -2
"""The epoch of a static member that has left for a while: its partitions wait for it until its session is over."""


class MemberState(Enum):
    """How far a member is on its way to its target."""

    STABLE = "stable"
    UNREVOKED = "unrevoked"
    """It is still to give up partitions, and keeps its epoch until it has."""
    UNRELEASED = "unreleased"
    """It has the target's epoch, and waits for partitions that others are still to give up."""


@dataclass(frozen=True, slots=True)
class ClassicDetails:
    """What a member of the classic protocol says besides.

    Args:
        session_timeout_ms: silence after which it is taken for dead.
        protocols: in order of preference; the first is used, because the server assigns.
    """

    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


@dataclass(slots=True, eq=False)
class ConsumerMember:
    """A member, what it has and what it is to have.

    Args:
        id, instance_id, rack_id, client_id, client_host, rebalance_timeout_ms, topics, pattern, assignor: as
            `Heartbeat`, which says so.
        session: by when it must be heard of again.
        progress: by when it must have done what the others wait for.
        matched: the topics that its pattern stands for.
        epoch, previous_epoch: those that it was last told, and before.
        assigned: the partitions that it may use.
        revoking: those that it is to give up.
        target: those that it is to have in the end.
        classic: what it says besides, None for a member of the protocol of consumer groups.
    """

    id: str
    instance_id: str | None
    session: Deadline = field(repr=False)
    progress: Deadline = field(repr=False)
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = 0
    topics: frozenset[str] = frozenset()
    pattern: TopicPattern = EMPTY_PATTERN
    matched: frozenset[str] = frozenset()
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: frozenset[Place] = frozenset()
    revoking: frozenset[Place] = frozenset()
    target: frozenset[Place] = frozenset()
    classic: ClassicDetails | None = None

    @property
    def subscribed(self) -> frozenset[str]:
        """All topics that it subscribes to, by flat name, whether there are such or not."""
        return self.topics | self.matched

    @property
    def said(self) -> tuple[object, ...]:
        """What it said of itself, but for what it subscribes to."""
        details = self.client_id, self.client_host, self.rack_id, self.rebalance_timeout_ms, self.assignor
        return *details, self.classic

    def has_reached(self, target_epoch: int) -> bool:
        """Whether it has all that a target gives to it, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch
