"""One consumer of a subscription: what a session holds on to, and what the dispatch rules count."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from millstream.broker.subscriptions.interface import ConsumerStats, Receiver, Subscribing

if TYPE_CHECKING:
    from millstream.broker.subscriptions.subscription import Subscription

__all__ = ["PERMITS_MAX", "Consumer"]

PERMITS_MAX: Final = 2**31 - 1
"""Records that a consumer may ask for in all; whoever asks for more gets no more."""
_RATE_WINDOW_MS: Final = 1000
"""A rate is an average over this time at least."""


class Consumer:
    """A consumer, connected to one subscription of one partition.

    Args:
        subscription: whose it is.
        request: how it subscribed.
        receiver: its connection.
        number: tells it from the other consumers that the subscription ever had.
        now_ms: the time.

    `permits` are records that may be delivered, negative by a part of a batch at most; `unacknowledged` are records
    delivered to it that nobody has acknowledged yet.
    """

    __slots__ = (
        "_counts_then",
        "_times_then",
        "acknowledged_records",
        "active",
        "blocked",
        "closed",
        "connected_ms",
        "delivered_bytes",
        "delivered_records",
        "end_told",
        "epoch",
        "last_acknowledged_ms",
        "last_delivered_ms",
        "name",
        "number",
        "permits",
        "priority",
        "receiver",
        "redelivered_records",
        "request",
        "room_awaited",
        "subscription",
        "unacknowledged",
    )

    def __init__(
        self, subscription: "Subscription", request: Subscribing, receiver: Receiver, number: int, now_ms: int
    ) -> None:
        self.subscription = subscription
        self.request = request
        self.receiver = receiver
        self.number = number
        self.name = request.consumer_name
        self.priority = request.priority
        self.epoch = request.epoch
        self.connected_ms = now_ms
        self.permits = 0
        self.unacknowledged = 0
        self.active = False
        self.blocked = False
        self.closed = False
        self.end_told = False
        self.room_awaited = False
        self.delivered_records = self.delivered_bytes = self.redelivered_records = self.acknowledged_records = 0
        self.last_delivered_ms = self.last_acknowledged_ms = 0
        self._times_then = (now_ms, now_ms)
        self._counts_then = ((0, 0, 0, 0), (0, 0, 0, 0))

    # What a session asks for

    def flow(self, permits: int) -> None:
        """Let so many records more be delivered; nothing happens below 1 or once the consumer is closed."""
        if permits > 0 and not self.closed:
            self.permits = min(self.permits + permits, PERMITS_MAX)
            self.subscription.flowed(self)

    def acknowledge(self, acknowledgements: Iterable[tuple[int, int | None]]) -> None:
        """Acknowledge frames, or records of frames, whichever consumer of the subscription they were delivered to.

        What is behind the end, acknowledged already, or no base offset of a frame is passed over. An answer waits for
        `Subscription.persist`.

        Args:
            acknowledgements: for each frame its base offset and the records of it that are still wanted, bit n for
                record n; None for a frame that is done with as a whole.
        """
        if not self.closed:
            self.subscription.acknowledge(self, acknowledgements)

    def acknowledge_cumulative(self, base_offset: int, wanted: int | None = None) -> None:
        """Acknowledge everything up to a frame; ignored on Shared and Key_Shared subscriptions.

        Args:
            base_offset: of the last frame that is acknowledged; within a frame, the last offset that is; negative for
                none at all.
            wanted: the records of that frame that are still wanted; None, or no bit set, for none of them.
        """
        if not self.closed:
            self.subscription.acknowledge_cumulative(self, base_offset, wanted)

    def redeliver(self, base_offsets: Iterable[int] | None, epoch: int | None = None) -> None:
        """Have frames delivered again that are not acknowledged.

        Exclusive and Failover subscriptions go back to their position, whatever frames are named; the others deliver
        those named, or all that this consumer holds, to whoever is next. It gives no permits back.

        Args:
            base_offsets: of the frames; None for all.
            epoch: the consumer's from now on; None leaves it. A lower one than before is ignored.
        """
        if not self.closed:
            if epoch is not None and epoch > self.epoch:
                self.epoch = epoch
            self.subscription.redeliver(self, base_offsets)

    def resume(self) -> None:
        """The connection has room again; nothing happens if that was not awaited."""
        if self.room_awaited and not self.closed:
            self.room_awaited = False
            self.subscription.wake()

    def close(self) -> None:
        """Leave the subscription: what it has not acknowledged is delivered again. Nothing happens a second time."""
        if not self.closed:
            self.subscription.remove(self)

    # Figures

    def count_delivered(self, records: int, size_bytes: int, redelivered: int, now_ms: int) -> None:
        """Take note of what one turn delivered; `redelivered` of the records not for the first time."""
        self.delivered_records += records
        self.delivered_bytes += size_bytes
        self.redelivered_records += redelivered
        self.last_delivered_ms = now_ms

    def stats(self) -> ConsumerStats:
        """Its figures."""
        now_ms = self.subscription.now_ms()
        counts = (
            self.delivered_records,
            self.delivered_bytes,
            self.redelivered_records,
            self.acknowledged_records,
        )
        # Two looks are kept, so that rates of a second look shortly after the first still stand on a whole window.
        if now_ms - self._times_then[1] >= _RATE_WINDOW_MS:
            self._times_then = (self._times_then[1], now_ms)
            self._counts_then = (self._counts_then[1], counts)
        elapsed_ms = max(now_ms - self._times_then[0], 1)
        rates = [(now - then) * 1000 / elapsed_ms for now, then in zip(counts, self._counts_then[0], strict=True)]
        return ConsumerStats(
            name=self.name,
            connected_ms=self.connected_ms,
            permits=self.permits,
            unacknowledged=self.unacknowledged_now(),
            blocked=self.blocked,
            active=self.active,
            delivered_records=counts[0],
            delivered_bytes=counts[1],
            redelivered_records=counts[2],
            acknowledged_records=counts[3],
            record_rate=rates[0],
            byte_rate=rates[1],
            redelivery_rate=rates[2],
            acknowledge_rate=rates[3],
            last_delivered_ms=self.last_delivered_ms,
            last_acknowledged_ms=self.last_acknowledged_ms,
            key_ranges=self.subscription.key_ranges(self),
        )

    def unacknowledged_now(self) -> int:
        """Records delivered to it that are not acknowledged; a single active consumer holds all that there are."""
        return self.subscription.unacknowledged_of(self)
