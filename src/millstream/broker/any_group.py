"""What groups of both kinds have in common: their states, the requests of the classic protocol, and their shape.

A classic group's leader assigns; a consumer group (KIP-848) is assigned to by the server. Members of the classic
protocol may be in both, so both take its requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from typing import Protocol as Shape

from millstream.model.pending import Pending

__all__ = ["AnyGroup", "AnyMember", "Assignment", "GroupKind", "GroupState", "Joined", "Joining", "Protocol"]


class GroupKind(Enum):
    """The kinds of groups; the values are Kafka's names."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class GroupState(Enum):
    """Where a group stands; the values are Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class Protocol(NamedTuple):
    """An assignment protocol that a member can take part in, and what it tells the leader."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """A request to join.

    Args:
        member_id: empty for a new member.
        instance_id: the static id, None for a dynamic member.
        client_id, client_host: who it is, for those who look.
        session_timeout_ms: silence after which it is taken for dead.
        rebalance_timeout_ms: how long the others wait for it to join again.
        protocol_type: the kind of group, such as "consumer".
        protocols: in order of preference.
        topics: that it subscribes to, by flat name, as far as it says.
        id_required: whether a new dynamic member must come back with the id it is given.
        may_skip_assignment: whether a static leader understands that its assignment stands (KIP-814).
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    id_required: bool
    may_skip_assignment: bool
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The outcome of a join: the new generation. `members` is empty for all but the leader."""

    member_id: str
    generation: int
    protocol_type: str
    protocol_name: str
    leader_id: str
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


class Assignment(NamedTuple):
    """The outcome of a sync: what a member is assigned."""

    protocol_type: str
    protocol_name: str
    content: bytes


class AnyMember(Shape):
    """A member of a group of either kind."""

    @property
    def id(self) -> str:
        """Its name in the group."""

    @property
    def instance_id(self) -> str | None:
        """The static id, None for a dynamic member."""

    @property
    def client_id(self) -> str:
        """What it calls itself."""

    @property
    def client_host(self) -> str:
        """Where it is."""

    @property
    def subscribed(self) -> frozenset[str]:
        """The topics that it subscribes to, by flat name."""


class AnyGroup(Shape):
    """A group of either kind. Methods raise a GroupError, or return an answer that may come later."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def empty_since_ms(self) -> int:
        """When the last member left, or when it was made."""

    @property
    def kind(self) -> GroupKind:
        """Which kind it is."""

    @property
    def state(self) -> GroupState:
        """Where it stands."""

    @property
    def protocol_type(self) -> str | None:
        """What its members are to each other, such as "consumer"; None if it never had any."""

    @property
    def members(self) -> Mapping[str, AnyMember]:
        """Those in it, by id."""

    @property
    def idle(self) -> bool:
        """Whether there are no members, and none that were given an id to join with."""

    def join(self, request: Joining) -> Pending[Joined]:
        """Join, or join again, by the classic protocol."""

    def sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol_name: str | None,
        assignments: Mapping[str, bytes],
    ) -> Pending[Assignment]:
        """Fetch the assignment of a generation, and bring it as a leader."""

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Say that a member of the classic protocol lives. Raises RebalanceInProgress when it is to join again."""

    def leave(self, member_id: str, instance_id: str | None) -> None:
        """Leave, or be removed; a static member may be named by its instance id alone."""

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, in_transaction: bool = False
    ) -> None:
        """Check that a member may commit offsets.

        Args:
            generation: that of the group, or the member's epoch; -1 of who is no member.
            in_transaction: whether they are committed in a transaction, which may end while the group rebalances.
        """

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Check that a member may ask what is committed; None and -1 stand for anyone."""

    def close(self) -> None:
        """Let all members go and no timer run any more."""
