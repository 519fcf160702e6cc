"""Topics that keep nothing: who is delivered to, what is dropped, and when such a topic goes."""

import pytest

from millstream.broker.producers import AccessMode, Producer
from millstream.broker.subscriptions import (
    ConsumerStats,
    KeyRangesTaken,
    KeySharedPolicy,
    KindMismatch,
    PolicyMismatch,
    Subscribing,
    SubscriptionInUse,
    SubscriptionKind,
)
from millstream.broker.volatile import VolatileConsumer, VolatileTopic, VolatileTopics
from millstream.model.frame import read_frame_header
from millstream.model.pending import Pending, settled
from millstream.model.topic_name import TopicName
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import SimulatedBroker
from tests.unit.broker.subscriptions.desk import NotedReceiver, TableInspector

NAME = TopicName("public", "default", "news")


class Newsroom:
    """A broker with one topic that keeps nothing."""

    def __init__(self) -> None:
        self.broker = SimulatedBroker()
        self.topics: VolatileTopics = self.broker.broker.volatile
        self.inspector = TableInspector()
        self.topic: VolatileTopic = self.topics.enter(NAME, 0)

    def subscribe(
        self,
        kind: SubscriptionKind,
        name: str = "c",
        permits: int = 1000,
        *,
        priority: int = 0,
        key_shared: KeySharedPolicy | None = None,
    ) -> tuple[VolatileConsumer, NotedReceiver]:
        receiver = NotedReceiver()
        request = Subscribing(
            kind=kind,
            consumer_name=name,
            inspector=self.inspector,
            priority=priority,
            key_shared=key_shared or KeySharedPolicy(),
        )
        consumer = self.topic.subscribe("s", request, receiver)
        consumer.flow(permits)
        return consumer, receiver

    def publish(self, count: int = 1) -> int:
        frame = memoryview(batch(b"value", count))
        return self.topic.publish(frame, read_frame_header(frame))

    def dropped(self) -> int:
        subscription = self.topic.find("s")
        assert subscription is not None
        return subscription.dropped_records


def test_what_is_published_is_delivered_at_once_and_offsets_grow_by_records() -> None:
    room = Newsroom()
    assert room.publish(3) == 0, "nobody is there: it is gone"
    _, receiver = room.subscribe(SubscriptionKind.EXCLUSIVE)
    assert [room.publish(2), room.publish()] == [3, 5]
    assert [(one.header.base_offset, one.header.record_count) for one in receiver.deliveries] == [(3, 2), (5, 1)]
    assert read_frame_header(receiver.deliveries[0].frame).base_offset == 3
    assert receiver.deliveries[0].frame.readonly


def test_without_permits_or_room_it_is_dropped_and_counted() -> None:
    room = Newsroom()
    consumer, receiver = room.subscribe(SubscriptionKind.EXCLUSIVE, permits=2)
    room.publish(3)  # a frame goes out whole as long as there is any permit
    room.publish(4)
    assert (receiver.take(), room.dropped(), consumer.permits) == ([0], 4, -1)
    consumer.flow(2)
    receiver.room = 0
    room.publish()
    assert (receiver.take(), room.dropped()) == ([], 5)


def test_exclusive_and_other_kinds_are_refused_beside_each_other() -> None:
    room = Newsroom()
    consumer, _ = room.subscribe(SubscriptionKind.EXCLUSIVE)
    with pytest.raises(SubscriptionInUse):
        room.subscribe(SubscriptionKind.EXCLUSIVE)
    with pytest.raises(KindMismatch):
        room.subscribe(SubscriptionKind.SHARED)
    consumer.close()
    consumer.close()
    assert room.topic.subscriptions == []
    room.subscribe(SubscriptionKind.SHARED)


def test_shared_goes_round_by_priority_and_passes_over_who_cannot_take() -> None:
    room = Newsroom()
    _, a = room.subscribe(SubscriptionKind.SHARED, "a")
    b_consumer, b = room.subscribe(SubscriptionKind.SHARED, "b", permits=1)
    _, later = room.subscribe(SubscriptionKind.SHARED, "z", priority=1)
    offsets = [room.publish() for _ in range(5)]
    assert len(a.take()) == 4
    assert b.take() == [offsets[1]]
    assert later.take() == []
    b_consumer.flow(1)
    a.room = 0
    assert room.publish() == b.take()[0]
    assert room.publish() == later.take()[0]
    assert room.dropped() == 0


def test_failover_tells_who_is_active_and_goes_on_with_the_next() -> None:
    room = Newsroom()
    first, one = room.subscribe(SubscriptionKind.FAILOVER, "a")
    _, two = room.subscribe(SubscriptionKind.FAILOVER, "b")
    assert (one.active, two.active) == ([True], [False])
    room.publish()
    first.close()
    room.publish()
    assert (one.take(), two.take(), two.active) == ([0], [1], [False, True])
    _, three = room.subscribe(SubscriptionKind.FAILOVER, "c")
    room.subscribe(SubscriptionKind.FAILOVER, "d", priority=-1)
    assert two.active[-1] is False
    assert three.active[-1] is False


def test_key_shared_keeps_a_key_at_its_consumer() -> None:
    room = Newsroom()
    receivers = [room.subscribe(SubscriptionKind.KEY_SHARED, name)[1] for name in "abc"]
    keys = [b"key-%d" % (n % 20) for n in range(200)]
    for key in keys:
        room.inspector.keys[room.topic.next_offset] = key
        room.publish()
    seen = [{keys[offset] for offset in receiver.take()} for receiver in receivers]
    assert sum(map(len, seen)) == 20, "no key is at two consumers"
    assert all(seen)


def test_key_shared_sticky_ranges() -> None:
    room = Newsroom()
    low = KeySharedPolicy(sticky_ranges=((0, 32767),))
    _, receiver = room.subscribe(SubscriptionKind.KEY_SHARED, "low", key_shared=low)
    with pytest.raises(KeyRangesTaken):
        room.subscribe(SubscriptionKind.KEY_SHARED, "low too", key_shared=low)
    with pytest.raises(PolicyMismatch):
        room.subscribe(SubscriptionKind.KEY_SHARED, "other")
    for n in range(100):
        room.inspector.keys[room.topic.next_offset] = b"key-%d" % n
        room.publish()
    taken = len(receiver.take())
    assert 20 < taken < 80
    assert room.dropped() == 100 - taken, "hashes that nobody covers are delivered to nobody"


def test_figures() -> None:
    room = Newsroom()
    consumer, _ = room.subscribe(SubscriptionKind.SHARED, "a", permits=10)
    room.publish(4)
    room.broker.pass_ms(2000)
    stats: ConsumerStats = consumer.stats()
    assert (stats.name, stats.permits, stats.delivered_records, stats.record_rate) == ("a", 6, 4, 2.0)
    # What a session may ask of any consumer does nothing here.
    consumer.acknowledge([(0, None)])
    consumer.acknowledge_cumulative(0)
    consumer.redeliver(None)
    consumer.resume()


class Wire:
    def probe(self) -> Pending[bool]:
        return settled(True)


def test_the_topic_is_there_as_long_as_somebody_is() -> None:
    room = Newsroom()
    producers = room.broker.broker.producers
    first = room.topic
    assert room.topics.enter(NAME, 0) is first
    room.topics.leave(first)
    assert room.topics.find(NAME) is first
    producer = Producer(
        name="p", connection=Wire(), number=1, epoch=0, mode=AccessMode.EXCLUSIVE, displaced=lambda _: None
    )
    room.broker.wait(producers.connect(first.id, 0, producer))
    producers.disconnect(first.id, 0, producer)
    documents = room.broker.broker.documents.of_kind("topic-epoch")
    assert len(documents) == 1
    room.topics.leave(first)
    assert room.topics.find(NAME) is None
    assert list(room.topics) == []
    assert len(documents) == 0, "nothing of it stays behind"
    again = room.topics.enter(NAME, 0)
    assert again.number == first.number + 1
    assert again.id != first.id
