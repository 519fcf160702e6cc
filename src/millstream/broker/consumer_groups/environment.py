"""What consumer groups need of the server around them."""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from millstream.broker.consumer_groups.memory import GroupMemory
from millstream.broker.consumer_groups.requests import EmbeddedProtocol, PatternReader
from millstream.broker.offsets import Place
from millstream.broker.settings import ConsumerGroupSettings
from millstream.broker.topic import Topic
from millstream.model.runtime import Runtime

__all__ = ["GroupEnvironment", "GroupTimings", "TopicCatalog"]


class TopicCatalog(Protocol):
    """The topics that there are, as `broker.topics.Topics` has them."""

    def __iter__(self) -> Iterator[Topic]:
        """All of them."""

    def by_flat_name(self, name: str) -> Topic | None:
        """The topic that flat-named protocols know under a name."""

    def by_id(self, topic_id: UUID) -> Topic | None:
        """The topic with an id."""

    def watch(self, callback: Callable[[], None]) -> None:
        """Call back whenever topics have come or gone or have another number of partitions."""

    def unwatch(self, callback: Callable[[], None]) -> None:
        """Stop calling back."""


class GroupTimings(NamedTuple):
    """How often the members of a group are heard of.

    Args:
        session_timeout_ms: silence after which a member is taken for dead.
        heartbeat_interval_ms: after which it is to be heard of again.
    """

    session_timeout_ms: int
    heartbeat_interval_ms: int


@dataclass(slots=True, kw_only=True)
class GroupEnvironment:
    """What all consumer groups share.

    Args:
        runtime: time and chance.
        topics: those that members may subscribe to.
        settings: the server's.
        timings: those of a group, by its name.
        held: topics that patterns leave out, by the group's name: clients of other protocols read them under it.
        memory: where members last; None if they need not.
        embedded: what reads and writes for members of the classic protocol; None to take none.
        patterns: what reads patterns; None if nothing does yet.
    """

    runtime: Runtime
    topics: TopicCatalog
    settings: ConsumerGroupSettings
    timings: Callable[[str], GroupTimings]
    held: Callable[[str], AbstractSet[str]] = lambda _: frozenset()
    memory: GroupMemory | None = None
    embedded: EmbeddedProtocol | None = None
    patterns: PatternReader | None = None

    def by_name(self, places: Iterable[Place]) -> dict[str, list[int]]:
        """Partitions by their topics' flat names, in ascending order; those of topics that are gone are left out."""
        named: dict[str, list[int]] = {}
        for topic_id, index in sorted(places):
            topic = self.topics.by_id(topic_id)
            if topic is not None:
                named.setdefault(topic.name.flat, []).append(index)
        return named

    def by_id(self, partitions: Iterable[tuple[str, int]]) -> frozenset[Place]:
        """The other way about."""
        found = ((self.topics.by_flat_name(name), index) for name, index in partitions)
        return frozenset((topic.id, index) for topic, index in found if topic is not None)
