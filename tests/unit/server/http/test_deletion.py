"""Unloading and deleting, on a simulated broker: who counts as a user, and who is parted from."""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import pytest
from starlette.exceptions import HTTPException

from millstream.broker.producers import AccessMode, Producer
from millstream.broker.subscriptions import CloseReason, Delivery, Subscribing, SubscriptionKind
from millstream.model.frame import FrameHeader
from millstream.model.pending import Pending, settled
from millstream.model.topic_name import TopicName
from millstream.server.http.deletion import delete_topic, in_use, part_from_clients, part_from_volatile
from millstream.server.http.found import volatile_names_in
from millstream.server.http.site import Site
from millstream.server.places import Places
from tests.unit.broker.simulated_broker import SimulatedBroker

T = TypeVar("T")


class Client:
    """A connection, as the broker sees it, with a producer and a consumer that note how they are parted from."""

    def __init__(self) -> None:
        self.parted: list[object] = []

    def probe(self) -> Pending[bool]:
        return settled(True)

    def deliver(self, deliveries: Sequence[Delivery], epoch: int) -> None: ...

    def room_bytes(self) -> int:
        return 1000

    def active_changed(self, active: bool) -> None: ...

    def reached_end(self) -> None: ...

    def closed(self, reason: CloseReason) -> None:
        self.parted.append("consumer")

    def is_hidden(self, header: FrameHeader, frame: memoryview) -> bool:
        return False

    def sticky_key(self, header: FrameHeader, frame: memoryview) -> bytes:
        return b""

    def deliver_at_ms(self, header: FrameHeader, frame: memoryview) -> int:
        return 0

    def producer(self) -> Producer:
        return Producer(
            name="",
            connection=self,
            number=1,
            epoch=0,
            mode=AccessMode.SHARED,
            displaced=lambda error: self.parted.append("producer"),
        )

    def subscribing(self) -> Subscribing:
        return Subscribing(kind=SubscriptionKind.EXCLUSIVE, consumer_name="c", inspector=self)


class Bed:
    def __init__(self) -> None:
        self.sim = SimulatedBroker()
        self.site = Site(self.sim.broker, Places({}))
        self.client = Client()

    def finish(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that waits for nothing but the simulation."""
        while True:
            try:
                call.send(None)
            except StopIteration as stop:
                value: T = stop.value
                return value
            self.sim.runtime.run()


@pytest.fixture
def bed() -> Bed:
    return Bed()


def test_who_is_connected_uses_a_topic(bed: Bed) -> None:
    broker, topic = bed.sim.broker, bed.sim.create(partitions=2)
    assert not in_use(bed.site, topic)
    consumer = bed.sim.wait(broker.subscriptions.subscribe(topic, 1, "s", bed.client.subscribing(), bed.client))
    assert in_use(bed.site, topic)
    consumer.close()
    assert not in_use(bed.site, topic)
    bed.sim.wait(broker.producers.connect(topic.id, 1, bed.client.producer()))
    assert in_use(bed.site, topic)
    with pytest.raises(HTTPException, match="412"):
        bed.finish(delete_topic(bed.site, topic, force=False))
    assert bed.client.parted == []


def test_unloading_parts_from_all_clients_of_the_partitions_that_are_meant(bed: Bed) -> None:
    broker, topic = bed.sim.broker, bed.sim.create(partitions=2)
    for index in range(2):
        bed.sim.wait(broker.subscriptions.subscribe(topic, index, "s", bed.client.subscribing(), bed.client))
        bed.sim.wait(broker.producers.connect(topic.id, index, bed.client.producer()))
    part_from_clients(bed.site, topic, [1])
    assert bed.client.parted == ["producer", "consumer"]
    assert in_use(bed.site, topic)
    part_from_clients(bed.site, topic, [0])
    assert not in_use(bed.site, topic)
    assert broker.subscriptions.names(topic, 0) == ["s"]


def test_a_topic_that_keeps_nothing_is_unloaded_too(bed: Bed) -> None:
    broker = bed.sim.broker
    topic = broker.volatile.enter(TopicName.from_flat("fleeting"), 0)
    namespace = broker.namespaces.get("public", "default")
    assert volatile_names_in(bed.site, namespace) == ["non-persistent://public/default/fleeting"]
    bed.sim.wait(broker.producers.connect(topic.id, 0, bed.client.producer()))
    topic.subscribe("s", bed.client.subscribing(), bed.client)
    part_from_volatile(bed.site, topic)
    assert bed.client.parted == ["producer", "consumer"]
    assert topic.subscriptions == []
