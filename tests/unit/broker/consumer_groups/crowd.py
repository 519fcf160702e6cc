"""Members of a consumer group as a test lets them act: a broker on virtual time, and a heartbeat at a time."""

from collections.abc import Iterable, Sequence

from millstream.broker.any_group import GroupState
from millstream.broker.consumer_groups import ConsumerGroup, Heartbeat, Reply, TopicPattern
from millstream.broker.offsets import Place
from tests.unit.broker.consumer_groups.embedded import TextProtocol
from tests.unit.broker.simulated_broker import SimulatedBroker

__all__ = ["GROUP", "REBALANCE_MS", "SESSION_MS", "Crowd", "Endings", "Fellow"]

GROUP = "g"
SESSION_MS = 45_000
REBALANCE_MS = 20_000


class Endings:
    """Reads patterns as what names end in, so that no regular expressions are needed here.

    `hidden` is what clients may not know of.
    """

    def __init__(self) -> None:
        self.rights = 0
        self.hidden: set[str] = set()

    def hide(self, *names: str) -> None:
        """Let clients know of all topics but some."""
        self.rights += 1
        self.hidden = set(names)

    def matching(self, patterns: Iterable[TopicPattern], names: Sequence[str]) -> dict[TopicPattern, frozenset[str]]:
        """Those names that end so."""
        known = [name for name in names if name not in self.hidden]
        return {pattern: frozenset(name for name in known if name.endswith(pattern.text)) for pattern in patterns}


class Crowd(SimulatedBroker):
    """A broker with the topic "orders" of six partitions. Arguments as for `SimulatedBroker`."""

    def __init__(self, database: str = "", **settings: str) -> None:
        super().__init__(database, **settings)
        self.create("orders", 6)

    def start(self) -> None:
        """Start a broker, and then what is loaded after it; see `SimulatedBroker.start`."""
        super().start()
        self.patterns = Endings()
        self.broker.groups.environment.patterns = self.patterns
        self.broker.groups.environment.embedded = TextProtocol()

    @property
    def group(self) -> ConsumerGroup:
        """The group."""
        return self.broker.groups.consumer_group(GROUP)

    def state(self) -> GroupState:
        """Where the group stands."""
        return self.group.state

    def joined(self, *member_ids: str) -> "list[Fellow]":
        """Members that all have what they are to have."""
        fellows = [Fellow(self, member_id) for member_id in member_ids]
        for fellow in fellows:
            fellow.join()
        self.settle(*fellows)
        return fellows

    def settle(self, *fellows: "Fellow") -> None:
        """Let members say what they have until nothing changes any more."""
        for _ in range(4):
            for fellow in fellows:
                fellow.beat()


class Fellow:
    """A member that does as it is told.

    Args:
        crowd: where it is.
        member_id, instance_id: who it is.
        topics: that it subscribes to.
        pattern: what the names of further topics end in.
    """

    def __init__(
        self,
        crowd: Crowd,
        member_id: str,
        instance_id: str | None = None,
        topics: Iterable[str] = ("orders",),
        pattern: str | None = None,
    ) -> None:
        self.crowd = crowd
        self.member_id = member_id
        self.instance_id = instance_id
        self.topics = frozenset(topics)
        self.pattern = None if pattern is None else TopicPattern(pattern)
        self.epoch = 0
        self.owned: frozenset[Place] = frozenset()

    def say(self, heartbeat: Heartbeat) -> Reply:
        """Send a heartbeat, and do what the answer says."""
        reply = self.crowd.wait(self.crowd.broker.groups.beat(GROUP, heartbeat))
        self.epoch = reply.epoch
        if reply.assignment is not None:
            self.owned = reply.assignment
        return reply

    def join(self, assignor: str | None = None) -> Reply:
        """Join, without any partitions."""
        self.owned = frozenset()
        return self.say(
            Heartbeat(
                member_id=self.member_id,
                epoch=0,
                instance_id=self.instance_id,
                client_id="client",
                client_host="/127.0.0.1",
                rebalance_timeout_ms=REBALANCE_MS,
                topics=self.topics,
                pattern=self.pattern,
                assignor=assignor,
                owned=frozenset(),
            )
        )

    def beat(self) -> Reply:
        """Say what it has."""
        return self.say(Heartbeat(member_id=self.member_id, epoch=self.epoch, owned=self.owned))

    def keep_quiet_about_partitions(self) -> Reply:
        """Say only that it lives."""
        return self.crowd.wait(
            self.crowd.broker.groups.beat(GROUP, Heartbeat(member_id=self.member_id, epoch=self.epoch))
        )

    def subscribe(self, *topics: str) -> Reply:
        """Subscribe to other topics."""
        self.topics = frozenset(topics)
        return self.say(Heartbeat(member_id=self.member_id, epoch=self.epoch, topics=self.topics, owned=self.owned))

    def leave(self, *, for_a_while: bool = False) -> None:
        """Leave."""
        self.crowd.broker.groups.depart(GROUP, self.member_id, self.instance_id, for_a_while=for_a_while)

    @property
    def indexes(self) -> list[int]:
        """The numbers of its partitions."""
        return sorted(index for _, index in self.owned)
