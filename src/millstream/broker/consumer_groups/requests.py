"""What a member of a consumer group says and is told, and what only its protocol can read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from millstream.broker.offsets import Place

__all__ = [
    "EMPTY_PATTERN",
    "EmbeddedProtocol",
    "Heartbeat",
    "PatternReader",
    "Reply",
    "Subscription",
    "TopicPattern",
]


class TopicPattern(NamedTuple):
    """A pattern of topic names that a member subscribes to.

    Args:
        text: the pattern as its client wrote it; empty for none.
        principal, host: who the client is, which decides what topics it may know of.
    """

    text: str
    principal: str = ""
    host: str = ""


EMPTY_PATTERN: Final = TopicPattern("")
"""Of a member that subscribes to names alone."""


class PatternReader(Protocol):
    """What reads patterns, and knows the rights of who wrote them."""

    @property
    def rights(self) -> int:
        """Another number whenever clients may have come to know of other topics."""

    def matching(self, patterns: Iterable[TopicPattern], names: Sequence[str]) -> dict[TopicPattern, frozenset[str]]:
        """Those names that match each pattern as a whole, and that its client may know of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What a member says of itself. None stands for what has not changed since it last said so.

    Args:
        member_id: its id; it chooses one itself.
        epoch: that it knows; 0 to join.
        instance_id: the static id.
        rack_id: where it is, for those who look.
        client_id, client_host: who it is, for those who look.
        rebalance_timeout_ms: how long the others wait for it to give up partitions.
        topics: that it subscribes to, by flat name.
        pattern: of further topics that it subscribes to.
        assignor: the one it would have the server use.
        owned: the partitions that it has at the moment.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    pattern: TopicPattern | None = None
    assignor: str | None = None
    owned: frozenset[Place] | None = None

    @property
    def is_full(self) -> bool:
        """Whether it says everything, as after an error: then the answer does so as well."""
        subscribes = self.topics is not None or self.pattern is not None
        return self.epoch == 0 or (self.rebalance_timeout_ms is not None and subscribes and self.owned is not None)


class Reply(NamedTuple):
    """What a member is told.

    Args:
        member_id: its id.
        epoch: that it has from now on.
        heartbeat_interval_ms: when it is to be heard of again.
        assignment: the partitions that it may use from now on; None for no change.
    """

    member_id: str
    epoch: int
    heartbeat_interval_ms: int
    assignment: frozenset[Place] | None


class Subscription(NamedTuple):
    """What a consumer of the classic protocol says of itself when it joins.

    Args:
        topics: that it subscribes to, by flat name.
        owned: the partitions that it keeps while it joins, by topic.
    """

    topics: frozenset[str]
    owned: frozenset[tuple[str, int]]


class EmbeddedProtocol(Protocol):
    """What members of the classic protocol tell each other, for a server that leads them in their leader's place."""

    @property
    def type(self) -> str:
        """The kind of classic groups that speak it."""

    def read_subscription(self, metadata: bytes) -> Subscription | None:
        """What a member says of itself; None if that cannot be read."""

    def read_assignment(self, protocol_name: str | None, content: bytes) -> frozenset[tuple[str, int]] | None:
        """The partitions that a member was assigned; None if that cannot be read, or is not all that it was told.

        Args:
            protocol_name: of the assignment protocol.
            content: what the leader assigned.
        """

    def write_assignment(self, metadata: bytes, partitions: Mapping[str, Sequence[int]]) -> bytes:
        """An assignment for a member.

        Args:
            metadata: what it says of itself.
            partitions: by topic.
        """
