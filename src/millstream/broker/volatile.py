"""Topics that keep nothing: what is published goes to the consumers that can take it now, and is gone.

Such a topic is there as long as anybody is connected to it; what lasts of it is in `volatile_declarations`. A
subscription delivers what comes to one of its consumers, by the rule of its kind, if that one has permits and its
connection has room; what nobody can take is counted, and dropped. Nothing is acknowledged and nothing comes again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from millstream.broker.documents import Documents
from millstream.broker.producers import Producers
from millstream.broker.subscriptions.consumer import PERMITS_MAX
from millstream.broker.subscriptions.errors import KindMismatch, PolicyMismatch, SubscriptionInUse
from millstream.broker.subscriptions.interface import (
    ConsumerStats,
    Delivery,
    KeySharedPolicy,
    Receiver,
    Subscribing,
    SubscriptionKind,
)
from millstream.broker.subscriptions.key_ring import AutoSplit, KeyRing, StickyRanges
from millstream.broker.subscriptions.murmur3 import key_slot
from millstream.broker.volatile_declarations import VolatileDeclarations
from millstream.model.frame import FrameHeader, set_base_offset
from millstream.model.runtime import Runtime
from millstream.model.topic_name import TopicName

__all__ = ["VolatileConsumer", "VolatileSubscription", "VolatileTopic", "VolatileTopics"]

_POOLED = {SubscriptionKind.SHARED, SubscriptionKind.KEY_SHARED}


class VolatileConsumer:
    """A consumer of a topic that keeps nothing; it is acted on as a `subscriptions.Consumer` is.

    Args:
        subscription: whose it is.
        request: how it subscribed.
        receiver: its connection.
        number: tells it from the other consumers that the subscription ever had.
        now_ms: the time.
    """

    __slots__ = (
        "active",
        "closed",
        "connected_ms",
        "delivered_bytes",
        "delivered_records",
        "last_delivered_ms",
        "name",
        "number",
        "permits",
        "priority",
        "receiver",
        "request",
        "subscription",
        "told",
    )

    def __init__(
        self, subscription: "VolatileSubscription", request: Subscribing, receiver: Receiver, number: int, now_ms: int
    ) -> None:
        self.subscription = subscription
        self.request = request
        self.receiver = receiver
        self.number = number
        self.name = request.consumer_name
        self.priority = request.priority
        self.connected_ms = now_ms
        self.permits = 0
        self.active = False
        self.told: bool | None = None
        self.closed = False
        self.delivered_records = self.delivered_bytes = self.last_delivered_ms = 0

    def flow(self, permits: int) -> None:
        """Let so many records more be delivered; nothing happens below 1 or once the consumer is closed."""
        if permits > 0 and not self.closed:
            self.permits = min(self.permits + permits, PERMITS_MAX)
            self.subscription.flowed(self)

    def acknowledge(self, acknowledgements: Iterable[tuple[int, int | None]]) -> None:
        """Nothing: what was delivered is done with."""

    def acknowledge_cumulative(self, base_offset: int, wanted: int | None = None) -> None:
        """Nothing: what was delivered is done with."""

    def redeliver(self, base_offsets: Iterable[int] | None, epoch: int | None = None) -> None:
        """Nothing: there is nothing left to deliver again."""

    def resume(self) -> None:
        """Nothing: what there was no room for is gone."""

    def close(self) -> None:
        """Leave the subscription. Nothing happens a second time."""
        if not self.closed:
            self.subscription.remove(self)

    def can_take(self) -> bool:
        """Whether it can be given one frame more."""
        return self.permits > 0 and self.receiver.room_bytes() > 0

    def give(self, delivery: Delivery, now_ms: int) -> None:
        """Deliver a frame."""
        records = delivery.header.record_count
        self.permits -= records
        self.delivered_records += records
        self.delivered_bytes += len(delivery.frame)
        self.last_delivered_ms = now_ms
        self.receiver.deliver([delivery], self.request.epoch)

    def stats(self) -> ConsumerStats:
        """Its figures; rates are averages since it connected."""
        elapsed_s = max(self.subscription.now_ms() - self.connected_ms, 1000) / 1000
        return ConsumerStats(
            name=self.name,
            connected_ms=self.connected_ms,
            permits=self.permits,
            unacknowledged=0,
            blocked=False,
            active=self.active,
            delivered_records=self.delivered_records,
            delivered_bytes=self.delivered_bytes,
            redelivered_records=0,
            acknowledged_records=0,
            record_rate=self.delivered_records / elapsed_s,
            byte_rate=self.delivered_bytes / elapsed_s,
            redelivery_rate=0.0,
            acknowledge_rate=0.0,
            last_delivered_ms=self.last_delivered_ms,
            last_acknowledged_ms=0,
            key_ranges=self.subscription.key_ranges(self),
        )


class VolatileSubscription:
    """A subscription of a topic that keeps nothing: it is there as long as it has consumers.

    Args:
        name: of it.
        index: the number of the partition that the topic is, by which Failover may choose.
        runtime: time.
        ended: told when its last consumer has left.

    `dropped_records` counts what none of its consumers could take.
    """

    def __init__(
        self, name: str, index: int, runtime: Runtime, ended: Callable[["VolatileSubscription"], None]
    ) -> None:
        self.name = name
        self.kind: SubscriptionKind | None = None
        self.consumers: list[VolatileConsumer] = []
        self.dropped_records = 0
        self._index = index
        self._runtime = runtime
        self._ended = ended
        self._numbers = 0
        self._policy = KeySharedPolicy()
        self._auto_split, self._sticky_ranges = AutoSplit(), StickyRanges()

    @property
    def _is_sticky(self) -> bool:
        return self._policy.sticky_ranges is not None

    @property
    def _ring(self) -> KeyRing:
        return self._sticky_ranges if self._is_sticky else self._auto_split

    # Consumers

    def attach(self, request: Subscribing, receiver: Receiver) -> VolatileConsumer:
        """Connect a consumer. Raises SubscriptionError."""
        self._check(request)
        if not self.consumers:
            self.kind, self._policy = request.kind, request.key_shared
        consumer = VolatileConsumer(self, request, receiver, self._numbers, self.now_ms())
        self._numbers += 1
        self.consumers.append(consumer)
        if request.kind is SubscriptionKind.KEY_SHARED:
            if request.key_shared.sticky_ranges is not None:
                self._sticky_ranges.add(consumer.number, request.key_shared.sticky_ranges)
            else:
                self._auto_split.add(consumer.number, consumer.name)
        self._choose()
        return consumer

    def _check(self, request: Subscribing) -> None:
        if self.consumers:
            if self.kind is not request.kind:
                kind = self.kind.value if self.kind is not None else "?"
                raise KindMismatch(f"the consumers of {self.name} are connected as {kind}")
            if request.kind is SubscriptionKind.EXCLUSIVE:
                raise SubscriptionInUse("the subscription has its only consumer")
        if request.kind is not SubscriptionKind.KEY_SHARED:
            return
        sticky_ranges = request.key_shared.sticky_ranges
        if self.consumers and (sticky_ranges is not None) is not self._is_sticky:
            raise PolicyMismatch("the consumers connected share keys in another way")
        if sticky_ranges is not None:
            self._sticky_ranges.check(sticky_ranges)

    def remove(self, consumer: VolatileConsumer) -> None:
        """See `VolatileConsumer.close`."""
        consumer.closed = True
        self.consumers.remove(consumer)
        if self.kind is SubscriptionKind.KEY_SHARED:
            self._ring.remove(consumer.number)
        self._choose()
        if not self.consumers:
            self._ended(self)

    def _choose(self) -> None:
        """Choose the active consumers anew: all of them where several are delivered to."""
        chosen = self.consumers if self.kind in _POOLED else self.consumers and [self._single()]
        for consumer in self.consumers:
            consumer.active = consumer in chosen
        for consumer in list(self.consumers):
            if consumer.told is not None:
                self._tell(consumer)

    def _single(self) -> VolatileConsumer:
        """The consumer that all goes to: by priority, then as Failover shares partitions out."""
        ordered = sorted(self.consumers, key=lambda one: (one.priority, one.name, one.number))
        best = [one for one in ordered if one.priority == ordered[0].priority]
        return best[self._index % len(best)]

    def flowed(self, consumer: VolatileConsumer) -> None:
        """Tell a consumer of a Failover subscription whether it is active, once it shows that it is there."""
        if consumer.told is None:
            self._tell(consumer)

    def _tell(self, consumer: VolatileConsumer) -> None:
        if self.kind is SubscriptionKind.FAILOVER and consumer.told is not consumer.active:
            consumer.told = consumer.active
            consumer.receiver.active_changed(consumer.active)

    # Delivering

    def offer(self, delivery: Delivery) -> None:
        """Deliver a frame to one consumer, or count it as dropped."""
        consumer = self._taker(delivery)
        if consumer is None:
            self.dropped_records += delivery.header.record_count
            return
        if self.kind is SubscriptionKind.SHARED:
            # Whoever was served goes behind all others.
            self.consumers.remove(consumer)
            self.consumers.append(consumer)
        consumer.give(delivery, self.now_ms())

    def _taker(self, delivery: Delivery) -> VolatileConsumer | None:
        match self.kind:
            case SubscriptionKind.SHARED:
                able = [one for one in self.consumers if one.can_take()]
                return min(able, key=lambda one: one.priority, default=None)
            case SubscriptionKind.KEY_SHARED:
                inspector = self.consumers[-1].request.inspector
                owner = self._ring.owner(key_slot(inspector.sticky_key(delivery.header, delivery.frame)))
                chosen = (one for one in self.consumers if one.number == owner)
            case _:
                chosen = (one for one in self.consumers if one.active)
        consumer = next(chosen, None)
        return consumer if consumer is not None and consumer.can_take() else None

    # Figures

    def now_ms(self) -> int:
        """The time, ms since 1970."""
        return self._runtime.now_ms()

    def key_ranges(self, consumer: VolatileConsumer) -> tuple[tuple[int, int], ...]:
        """Slots of a consumer of a Key_Shared subscription as (first, last); none for other kinds."""
        return self._ring.ranges(consumer.number) if self.kind is SubscriptionKind.KEY_SHARED else ()


@dataclass(slots=True, eq=False)
class VolatileTopic:
    """A topic that keeps nothing.

    Args:
        id: its identity.
        name: its full name; one that stands for a partition has that in it.
        number: tells it from all others since the server started, those of its name included; from 1 on.
        index: the number of the partition that it is, 0 if it is none.
        runtime: time.
        next_offset: what the next record gets.
    """

    id: UUID
    name: TopicName
    number: int
    index: int
    runtime: Runtime
    next_offset: int = 0
    users: int = 0
    _subscriptions: dict[str, VolatileSubscription] = field(default_factory=dict)

    @property
    def base(self) -> TopicName:
        """The name of the topic that it is a partition of; its own if it is none."""
        split = self.name.split_partition()
        return self.name if split is None else split[0]

    @property
    def subscriptions(self) -> list[VolatileSubscription]:
        """Those that have consumers."""
        return list(self._subscriptions.values())

    def find(self, name: str) -> VolatileSubscription | None:
        """The subscription of a name."""
        return self._subscriptions.get(name)

    def subscribe(self, name: str, request: Subscribing, receiver: Receiver) -> VolatileConsumer:
        """Connect a consumer to a subscription, which comes to be if need be. Raises SubscriptionError."""
        subscription = self._subscriptions.get(name)
        if subscription is None:
            subscription = VolatileSubscription(name, self.index, self.runtime, self._forget)
        consumer = subscription.attach(request, receiver)
        self._subscriptions[name] = subscription
        return consumer

    def _forget(self, subscription: VolatileSubscription) -> None:
        del self._subscriptions[subscription.name]

    def publish(self, frame: memoryview, header: FrameHeader) -> int:
        """Deliver a frame to every subscription.

        Args:
            frame: the whole frame, writable; it is kept as long as a consumer needs it.
            header: what stands in it.

        Returns:
            Its base offset: offsets grow by one a record.
        """
        base_offset = self.next_offset
        self.next_offset += header.last_offset_delta + 1
        set_base_offset(frame, base_offset)
        delivery = Delivery(header._replace(base_offset=base_offset), frame.toreadonly(), 0, None)
        for subscription in self.subscriptions:
            subscription.offer(delivery)
        return base_offset


class VolatileTopics:
    """The topics that keep nothing.

    Args:
        runtime: time and chance.
        producers: those connected to any topic.
        documents: where declarations last.
    """

    def __init__(self, runtime: Runtime, producers: Producers, documents: Documents) -> None:
        self.declarations = VolatileDeclarations(runtime, documents)
        self._runtime = runtime
        self._producers = producers
        self._topics: dict[TopicName, VolatileTopic] = {}
        self._numbers = 0

    def __iter__(self) -> Iterator[VolatileTopic]:
        return iter(list(self._topics.values()))

    def find(self, name: TopicName) -> VolatileTopic | None:
        """The topic of a name, if anybody is connected to it."""
        return self._topics.get(name)

    def enter(self, name: TopicName, index: int) -> VolatileTopic:
        """The topic of a name, for one producer or consumer more; each one that entered leaves again.

        Args:
            name: its full name.
            index: the number of the partition that it is, 0 if it is none.
        """
        topic = self._topics.get(name)
        if topic is None:
            self._numbers += 1
            topic_id = UUID(bytes=self._runtime.random_bytes(16), version=4)
            topic = self._topics[name] = VolatileTopic(topic_id, name, self._numbers, index, self._runtime)
        topic.users += 1
        return topic

    def leave(self, topic: VolatileTopic) -> None:
        """A producer or a consumer has left; with the last one the topic goes."""
        topic.users -= 1
        if not topic.users and self._topics.get(topic.name) is topic:
            del self._topics[topic.name]
            self._producers.forget_topic(topic.id)
