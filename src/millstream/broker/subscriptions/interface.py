"""What a session and a subscription tell each other: requests, deliveries, and the two interfaces of a session."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from millstream.broker.settings import SubscriptionSettings
from millstream.model.frame import FrameHeader

__all__ = [
    "KEY_SLOTS",
    "CloseReason",
    "ConsumerStats",
    "Delivery",
    "FrameInspector",
    "FrameSource",
    "KeySharedPolicy",
    "Receiver",
    "StartAt",
    "Subscribing",
    "SubscriptionKind",
    "SubscriptionSettings",
    "SubscriptionStats",
]

KEY_SLOTS: Final = 65_536
"""Slots that sticky keys are hashed to; sticky ranges are ranges of them."""


class SubscriptionKind(Enum):
    """Who of the consumers gets what."""

    EXCLUSIVE = "exclusive"
    """One consumer, all records in order."""
    FAILOVER = "failover"
    """One of several consumers, all records in order; another takes over when it leaves."""
    SHARED = "shared"
    """All consumers in turn."""
    KEY_SHARED = "key_shared"
    """All consumers, each key at one of them and in order."""


class StartAt(Enum):
    """Where a subscription that is new begins."""

    EARLIEST = "earliest"
    LATEST = "latest"


class CloseReason(Enum):
    """Why the broker parts from a consumer."""

    SEEK = "the cursor was moved"
    UNSUBSCRIBED = "the subscription was ended"
    TOPIC_DELETED = "the topic was deleted"
    FENCED = "another consumer took its place"
    UNLOADED = "the topic was unloaded"


class Delivery(NamedTuple):
    """One frame for a consumer.

    Args:
        header: of the frame.
        frame: the whole frame; read-only, and good as long as it is kept.
        redelivery_count: how often it was delivered before without success.
        wanted: the records that are still wanted, bit n for record n of the frame; None for all of them.
    """

    header: FrameHeader
    frame: memoryview
    redelivery_count: int
    wanted: int | None


class Receiver(Protocol):
    """A consumer's connection, as a session shows it to the broker. No method may raise.

    It may call back into the subscription from within each of them.
    """

    def deliver(self, deliveries: Sequence[Delivery], epoch: int) -> None:
        """Send frames, all in one write.

        Args:
            deliveries: at least one, in the order in which they are to be sent; the list is the receiver's to keep.
            epoch: the consumer's epoch, as it gave it last.
        """

    def room_bytes(self) -> int:
        """Bytes that may be queued for the peer now. At 0 nothing is delivered until `Consumer.resume`."""

    def active_changed(self, active: bool) -> None:
        """Whether this consumer of a Failover subscription is the one that is delivered to."""

    def reached_end(self) -> None:
        """The topic was terminated, and all of it has been acknowledged."""

    def closed(self, reason: CloseReason) -> None:
        """The broker has parted from the consumer; nothing more will be delivered to it."""


class FrameInspector(Protocol):
    """What only a session can read in a frame. Each method is asked only where the rule in force needs it."""

    def is_hidden(self, header: FrameHeader, frame: memoryview) -> bool:
        """Whether a transactional frame is not for consumers (aborted); asked of those marked TRANSACTIONAL only.

        Control frames are never delivered, and not asked about.
        """

    def sticky_key(self, header: FrameHeader, frame: memoryview) -> bytes:
        """The key by which Key_Shared chooses a consumer; asked once for each frame read on such a subscription."""

    def deliver_at_ms(self, header: FrameHeader, frame: memoryview) -> int:
        """When it may be delivered, ms since 1970, 0 for at once; asked on Shared and Key_Shared, once a frame."""


class FrameSource(Protocol):
    """Frames that stand in for the log up to an offset, such as what compaction left of it."""

    @property
    def horizon(self) -> int:
        """The first offset that the source says nothing of; from there on the log is read."""

    def read(self, offset: int, max_bytes: int) -> tuple[memoryview, int]:
        """Whole frames from the first at or behind an offset on, as `PartitionLog.read`; gaps are allowed.

        Returns:
            The frames and the offset behind them; no frames, and the horizon, if there is nothing left.
        """


@dataclass(frozen=True, slots=True)
class KeySharedPolicy:
    """How keys are shared out.

    Args:
        sticky_ranges: the consumer's own slots as (first, last), both included; None to share all of them out.
        allow_out_of_order: a key may move to another consumer while some of it is unacknowledged.
    """

    sticky_ranges: tuple[tuple[int, int], ...] | None = None
    allow_out_of_order: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribing:
    """A request to consume.

    Args:
        kind: of the subscription; must be that of the consumers connected, if there are any.
        consumer_name: by which Failover and Key_Shared share out; need not be unique.
        inspector: reads frames.
        durable: whether the subscription outlasts its consumers.
        start: where it begins if it is new: a record offset (that record included), or one of the ends.
        may_create: whether it may be new.
        priority: of the consumer, 0 is served first.
        epoch: of the consumer, given back with deliveries.
        key_shared: for KEY_SHARED.
        source: read instead of the log up to its horizon; EXCLUSIVE and FAILOVER only.
    """

    kind: SubscriptionKind
    consumer_name: str
    inspector: FrameInspector
    durable: bool = True
    start: int | StartAt = StartAt.LATEST
    may_create: bool = True
    priority: int = 0
    epoch: int = 0
    key_shared: KeySharedPolicy = KeySharedPolicy()
    source: FrameSource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStats:
    """A consumer in numbers.

    Rates are averages since the figures were asked for before (but over a second at least), or since it connected.

    Args:
        name: as it gave it.
        connected_ms: since when, ms since 1970.
        permits: records that it may be delivered; negative by a part of a batch at most.
        unacknowledged: records delivered to it and not acknowledged.
        blocked: whether it gets nothing because of those.
        active: whether it is the one delivered to; always, but for Failover.
        delivered_records, delivered_bytes, redelivered_records, acknowledged_records: since it connected.
        record_rate, byte_rate, redelivery_rate, acknowledge_rate: per second.
        last_delivered_ms, last_acknowledged_ms: ms since 1970, 0 for never.
        key_ranges: slots of the keys it gets as (first, last), for Key_Shared.
    """

    name: str
    connected_ms: int
    permits: int
    unacknowledged: int
    blocked: bool
    active: bool
    delivered_records: int
    delivered_bytes: int
    redelivered_records: int
    acknowledged_records: int
    record_rate: float
    byte_rate: float
    redelivery_rate: float
    acknowledge_rate: float
    last_delivered_ms: int
    last_acknowledged_ms: int
    key_ranges: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionStats:
    """A subscription in numbers.

    Args:
        name: of the subscription.
        kind: None if no consumer has told yet.
        durable: whether it outlasts its consumers.
        position: the first offset that is not acknowledged together with all before it.
        acknowledged_ranges: ranges of offsets beyond it that are acknowledged.
        backlog: records not acknowledged yet.
        unacknowledged: records delivered and not acknowledged.
        delayed: frames whose time to be delivered has not come.
        waiting: frames that are to be delivered again, or were read but could not be delivered.
        expired_records: records that expired unacknowledged, since the server started.
        blocked: whether nothing is delivered because of what is not acknowledged.
        consumers: one by one.
    """

    name: str
    kind: SubscriptionKind | None
    durable: bool
    position: int
    acknowledged_ranges: int
    backlog: int
    unacknowledged: int
    delayed: int
    waiting: int
    expired_records: int
    blocked: bool
    consumers: tuple[ConsumerStats, ...]
