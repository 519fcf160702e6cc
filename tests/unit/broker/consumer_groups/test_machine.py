"""A consumer group under members of both protocols that come, go, fall silent, lose answers; and what always holds.

What members believe to have is kept apart from what the group knows: no partition may be in the hands of two of them,
as long as each does what it is told.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from millstream.broker.any_group import GroupState
from millstream.broker.consumer_groups import ConsumerGroup, Heartbeat, Reply
from millstream.broker.consumer_groups.environment import GroupEnvironment, GroupTimings
from millstream.broker.consumer_groups.memory import GroupMemory
from millstream.broker.documents import Documents
from millstream.broker.errors import FencedEpoch, GroupError, RebalanceInProgress, UnknownMember
from millstream.broker.offsets import Place
from millstream.broker.settings import BrokerSettings
from millstream.broker.topic import Topic
from millstream.model.pending import Pending, settled
from millstream.model.topic_name import TopicName
from millstream.storage.metadata import Change, MetadataStore
from tests.unit.broker.consumer_groups.crowd import REBALANCE_MS, SESSION_MS
from tests.unit.broker.consumer_groups.embedded import TextProtocol, classic_joining
from tests.unit.broker.members import CountingRuntime

TOPICS = ("orders", "payments", "later")
SUBSCRIPTIONS = st.sets(st.sampled_from(TOPICS))


@dataclass(eq=False)
class Client:
    """What a client believes: its epoch, and the partitions that it uses."""

    member_id: str
    instance_id: str | None
    is_classic: bool
    topics: frozenset[str]
    joined: bool = False
    epoch: int = 0
    owned: frozenset[Place] = frozenset()
    lost_answer: bool = False
    """Then it says everything again, as real clients do."""

    def lost_all(self) -> None:
        self.joined, self.epoch, self.owned, self.lost_answer = False, 0, frozenset(), False

    def take(self, reply: Reply) -> None:
        assert reply.epoch >= self.epoch, "epochs only grow"
        self.joined, self.epoch = True, reply.epoch
        if reply.assignment is not None:
            self.owned = reply.assignment


class Catalog:
    """Topics without anything in them."""

    def __init__(self, **counts: int) -> None:
        self.topics: dict[str, Topic] = {}
        self.watchers: dict[Callable[[], None], None] = {}
        self.made = 0
        for name, count in counts.items():
            self.add(name, count)

    def add(self, name: str, count: int) -> None:
        self.made += 1
        partitions: list[Any] = list(range(count))
        self.topics[name] = Topic(UUID(int=self.made), TopicName.from_flat(name), 0, {}, partitions)
        self.tell()

    def remove(self, name: str) -> None:
        del self.topics[name]
        self.tell()

    def tell(self) -> None:
        for watcher in list(self.watchers):
            watcher()

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.topics.values())

    def by_flat_name(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def by_id(self, topic_id: UUID) -> Topic | None:
        return next((topic for topic in self if topic.id == topic_id), None)

    def watch(self, callback: Callable[[], None]) -> None:
        self.watchers[callback] = None

    def unwatch(self, callback: Callable[[], None]) -> None:
        del self.watchers[callback]


class Unfailing:
    """A metadata store in which every change lasts at once."""

    def submit(self, changes: Sequence[Change]) -> Pending[None]:
        return settled(None)


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Random lives of a few members of one consumer group."""

    clients: Bundle[Client] = Bundle("clients")

    def __init__(self) -> None:
        super().__init__()
        self.runtime = CountingRuntime()
        self.catalog = Catalog(orders=6, payments=2)
        self.environment = GroupEnvironment(
            runtime=self.runtime,
            topics=self.catalog,
            settings=BrokerSettings({}).consumer_groups,
            timings=lambda _: GroupTimings(SESSION_MS, 5000),
            memory=GroupMemory(Documents(cast("MetadataStore", Unfailing()), {})),
            embedded=TextProtocol(),
        )
        self.group = ConsumerGroup("g", self.environment, lambda _: None)
        self.everybody: list[Client] = []
        self.epoch = 0

    @rule(
        target=clients,
        instance_id=st.sampled_from([None, None, "a", "b"]),
        is_classic=st.booleans(),
        topics=SUBSCRIPTIONS,
    )
    def appear(self, instance_id: str | None, is_classic: bool, topics: set[str]) -> Client:
        is_classic = is_classic and instance_id is None
        client = Client(f"c{len(self.everybody)}", instance_id, is_classic, frozenset(topics))
        self.everybody.append(client)
        return client

    @rule(client=clients, lost=st.sampled_from([False, False, False, True]))
    def act(self, client: Client, lost: bool) -> None:
        """Join or stay; the answer may be lost."""
        try:
            if client.is_classic:
                self.act_as_classic(client, lost)
            else:
                self.beat(client, lost)
        except RebalanceInProgress:
            self.join_by_the_classic_protocol(client)
        except (UnknownMember, FencedEpoch):
            client.lost_all()
        except GroupError:
            assert not client.joined or client.instance_id is not None

    def beat(self, client: Client, lost: bool) -> None:
        full = not client.joined or client.lost_answer
        reply = self.group.beat(
            Heartbeat(
                member_id=client.member_id,
                epoch=client.epoch,
                instance_id=client.instance_id,
                rebalance_timeout_ms=REBALANCE_MS if full else None,
                topics=client.topics if full else None,
                owned=client.owned,
            ),
        )
        self.group.keep()
        client.lost_answer = lost
        if not lost:
            client.take(reply)

    def act_as_classic(self, client: Client, lost: bool) -> None:
        if not client.joined:
            self.join_by_the_classic_protocol(client)
        self.group.heartbeat(client.member_id, None, client.epoch)

    def join_by_the_classic_protocol(self, client: Client) -> None:
        named = self.environment.by_name(client.owned)
        owned = " ".join(f"{name}:{index}" for name, indexes in named.items() for index in indexes)
        request = classic_joining(client.member_id, topics=" ".join(client.topics), owned=owned)
        joined = self.group.join(request).result()
        client.joined, client.epoch = True, joined.generation
        try:
            content = self.group.sync(client.member_id, None, joined.generation, None, None, {}).result().content
        except RebalanceInProgress:
            return
        partitions = TextProtocol().read_assignment(None, content)
        assert partitions is not None
        client.owned = self.environment.by_id(partitions)

    @rule(client=clients, topics=SUBSCRIPTIONS)
    def subscribe(self, client: Client, topics: set[str]) -> None:
        if client.is_classic or not client.joined:
            return
        client.topics = frozenset(topics)
        heartbeat = Heartbeat(member_id=client.member_id, epoch=client.epoch, topics=client.topics)
        try:
            reply = self.group.beat(heartbeat)
        except (UnknownMember, FencedEpoch):
            client.lost_all()
        else:
            self.group.keep()
            client.take(reply)

    @rule(client=clients, for_a_while=st.booleans())
    def leave(self, client: Client, for_a_while: bool) -> None:
        if not client.joined:
            return
        client_id, instance_id = client.member_id, client.instance_id
        client.lost_all()
        try:
            if client.is_classic:
                self.group.leave(client_id, None)
            else:
                self.group.depart(client_id, instance_id, for_a_while=for_a_while and instance_id is not None)
        except GroupError:
            return

    @rule(ms=st.sampled_from([100, 5000, REBALANCE_MS, SESSION_MS]))
    def wait(self, ms: int) -> None:
        """Members that are removed meanwhile stop using what they have: their own clocks tell them."""
        self.runtime.advance(ms / 1000)
        for client in self.everybody:
            if client.joined and client.member_id not in self.group.members:
                client.lost_all()

    @rule()
    def change_topics(self) -> None:
        if self.catalog.by_flat_name("later") is None:
            self.catalog.add("later", 3)
        else:
            self.catalog.remove("later")

    @rule()
    def restart(self) -> None:
        """The server stops and starts. All that a member was told lasts, and its epochs go on from there."""
        self.group.close()
        self.group, self.epoch = ConsumerGroup("g", self.environment, lambda _: None), 0
        assert self.environment.memory is not None
        documents = self.environment.memory.groups().get("g")
        if documents:
            self.group.resume(documents)
        there = {client.member_id for client in self.everybody if client.joined}
        assert there <= set(self.group.members)

    @invariant()
    def nobody_uses_what_another_uses(self) -> None:
        used = [place for client in self.everybody for place in client.owned]
        assert len(used) == len(set(used))

    @invariant()
    def the_roster_is_sound(self) -> None:
        group = self.group
        assert group.roster.epoch >= self.epoch
        self.epoch = group.roster.epoch
        assert group.roster.target_epoch <= group.roster.epoch
        had = [place for member in group.members.values() for place in member.assigned | member.revoking]
        assert len(had) == len(set(had))
        assert set(group.roster._owners) == set(had)

    def teardown(self) -> None:
        """All who are there come to rest, and every partition has its member."""
        group = self.group
        clients = [client for client in self.everybody if client.joined and client.member_id in group.members]
        gone = set(group.members) - {client.member_id for client in clients}
        for member_id in gone:
            group.leave(member_id, None)
        for _ in range(8):
            for client in clients:
                self.act(client, lost=False)
                self.nobody_uses_what_another_uses()
        there = {client.member_id for client in clients if client.joined}
        assert there == set(group.members)
        if there:
            assert group.state is GroupState.STABLE
            wanted = frozenset().union(*(client.topics for client in clients if client.joined))
            topics = [topic for topic in self.catalog if topic.name.flat in wanted]
            everything = {(topic.id, index) for topic in topics for index in range(len(topic.partitions))}
            used = {place for client in clients for place in client.owned}
            assert used == everything
        group.close()
        assert not self.runtime.timers
        assert not self.catalog.watchers


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
