"""Subscriptions of one partition of a simulated broker, and consumers that note what they are given."""

from collections.abc import Sequence
from typing import TypedDict, TypeVar, Unpack

from millstream.broker.subscriptions import (
    CloseReason,
    Consumer,
    Delivery,
    FrameSource,
    KeySharedPolicy,
    PartitionBounds,
    StartAt,
    Subscribing,
    Subscription,
    SubscriptionKind,
    Subscriptions,
    SubscriptionSettings,
)
from millstream.model.frame import FrameHeader
from millstream.model.pending import Pending
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import SimulatedBroker, append

__all__ = ["Desk", "NotedReceiver", "TableInspector"]

T = TypeVar("T")
ROOM_BYTES = 1 << 30


class NotedReceiver:
    """A connection that notes everything."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.turns: list[int] = []
        self.epochs: list[int] = []
        self.active: list[bool] = []
        self.ends = 0
        self.reasons: list[CloseReason] = []
        self.room = ROOM_BYTES

    def deliver(self, deliveries: Sequence[Delivery], epoch: int) -> None:
        self.deliveries += deliveries
        self.turns.append(len(deliveries))
        self.epochs.append(epoch)
        self.room -= sum(len(delivery.frame) for delivery in deliveries)

    def room_bytes(self) -> int:
        return max(self.room, 0)

    def active_changed(self, active: bool) -> None:
        self.active.append(active)

    def reached_end(self) -> None:
        self.ends += 1

    def closed(self, reason: CloseReason) -> None:
        self.reasons.append(reason)

    def take(self) -> list[int]:
        """Base offsets of what was delivered since the last time."""
        offsets = [delivery.header.base_offset for delivery in self.deliveries]
        self.deliveries.clear()
        return offsets

    def take_counts(self) -> list[tuple[int, int]]:
        """Base offsets and redelivery counts of what was delivered since the last time."""
        taken = [(delivery.header.base_offset, delivery.redelivery_count) for delivery in self.deliveries]
        self.deliveries.clear()
        return taken


class TableInspector:
    """Knows of each frame, by its base offset, what a test says of it."""

    def __init__(self) -> None:
        self.hidden: set[int] = set()
        self.keys: dict[int, bytes] = {}
        self.times: dict[int, int] = {}

    def is_hidden(self, header: FrameHeader, frame: memoryview) -> bool:
        return header.base_offset in self.hidden

    def sticky_key(self, header: FrameHeader, frame: memoryview) -> bytes:
        return self.keys.get(header.base_offset, b"NONE_KEY")

    def deliver_at_ms(self, header: FrameHeader, frame: memoryview) -> int:
        return self.times.get(header.base_offset, 0)


class Details(TypedDict, total=False):
    """What a test may say of a subscribing; what it does not is as for every other consumer."""

    durable: bool
    start: int | StartAt
    may_create: bool
    priority: int
    epoch: int
    key_shared: KeySharedPolicy
    source: FrameSource | None


class Desk:
    """A broker with a topic of one partition, and its subscriptions.

    Args:
        database: file of the metadata store, so that it outlives the broker.
        bounds: how far the partition may be read.
        settings: limits and delays.
    """

    def __init__(
        self,
        database: str = "",
        bounds: PartitionBounds | None = None,
        settings: SubscriptionSettings | None = None,
    ) -> None:
        self.broker = SimulatedBroker(database)
        self.settings = settings or SubscriptionSettings()
        self.bounds = bounds
        self.inspector = TableInspector()
        self.broker.create()
        self.open()

    def open(self) -> None:
        """Begin with what the broker has."""
        self.runtime = self.broker.runtime
        self.topic = self.broker.topic()
        self.partition = self.topic.partitions[0]
        self.log = self.partition.log
        self.offsets = self.broker.broker.groups.offsets
        self.subscriptions = Subscriptions(self.runtime, self.offsets, self.settings, self.bounds)

    def kill(self) -> None:
        """Let the process die, and start another."""
        self.broker.kill()
        self.broker.start()
        self.open()

    def run(self) -> None:
        """Let everything run that needs no time."""
        self.runtime.run()

    def pass_ms(self, milliseconds: float) -> None:
        """Let time pass."""
        self.runtime.advance(milliseconds / 1000)

    def wait(self, pending: Pending[T]) -> T:
        """Let everything run that needs no time, and give the outcome."""
        self.run()
        return pending.result()

    def append(self, *counts: int, timestamp_ms: int = 1000) -> list[int]:
        """Append frames of so many records each; gives their base offsets."""
        return [append(self.partition, batch(b"value", count, timestamp_ms)).base_offset for count in counts]

    def subscribe(
        self,
        kind: SubscriptionKind,
        consumer_name: str = "c",
        permits: int = 0,
        name: str = "s",
        **details: Unpack[Details],
    ) -> tuple[Consumer, NotedReceiver]:
        """Connect a consumer, from the beginning of the log unless a test says otherwise."""
        details.setdefault("start", StartAt.EARLIEST)
        request = Subscribing(kind=kind, consumer_name=consumer_name, inspector=self.inspector, **details)
        receiver = NotedReceiver()
        consumer = self.wait(self.subscriptions.subscribe(self.topic, 0, name, request, receiver))
        consumer.flow(permits)
        self.run()
        return consumer, receiver

    def subscription(self, name: str = "s") -> Subscription:
        """The subscription of a name."""
        found = self.subscriptions.find(self.topic, 0, name)
        assert found is not None
        return found

    def stored(self, name: str = "s") -> int:
        """The position that the store has of a subscription."""
        return self.offsets.of_group(name)[self.topic.id, 0].offset
