"""Exclusive and Failover: one consumer at a time, everything in order, and nothing kept of what was delivered."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from millstream.broker.subscriptions.consumer import Consumer
from millstream.broker.subscriptions.dispatcher import Context, Dispatcher, acknowledge_records
from millstream.broker.subscriptions.errors import ConsumerBusy
from millstream.broker.subscriptions.interface import Delivery, Subscribing, SubscriptionKind
from millstream.broker.subscriptions.ranges import OffsetRanges
from millstream.model.runtime import Timer

__all__ = ["SingleDispatcher"]

_RECENT_MAX: Final = 32_768
"""Frames delivered last whose offsets are remembered, 12 bytes each: acknowledgements of others ask the log."""
_TRIM_EVERY: Final = 1024
_new: Final = tuple.__new__
"""Makes a delivery in half the time of its own constructor: there is one for each frame."""


class SingleDispatcher(Dispatcher):
    """Delivers to one consumer: the only one, or the one that Failover has chosen.

    Args:
        context: what it works on.
        failover: whether others may wait to take over.
    """

    def __init__(self, context: Context, *, failover: bool) -> None:
        super().__init__(context)
        self._failover = failover
        self._consumers: list[Consumer] = []
        self._active: Consumer | None = None
        self._told: dict[int, bool] = {}
        self._taking_over: Timer | None = None
        self._bases: array[int] = array("q")
        self._counts: array[int] = array("i")
        self._trim_at = _TRIM_EVERY

    # Consumers

    def check(self, request: Subscribing) -> None:
        """See `Dispatcher.check`."""
        if self._consumers and not (self._failover and request.kind is SubscriptionKind.FAILOVER):
            raise ConsumerBusy("the subscription has its only consumer", self._consumers[0])

    def add(self, consumer: Consumer) -> None:
        """See `Dispatcher.add`."""
        self._consumers.append(consumer)
        self._choose()

    def remove(self, consumer: Consumer) -> None:
        """See `Dispatcher.remove`."""
        self._consumers.remove(consumer)
        self._told.pop(consumer.number, None)
        self._choose()

    def _choose(self) -> None:
        """Choose the active consumer anew."""
        before, chosen = self._active, self._choice()
        if chosen is before:
            return
        self._active = chosen
        if before is not None:
            before.active = False
        if chosen is not None:
            chosen.active = True
            self.context.source = chosen.request.source
            self._take_over(before)
        for consumer in list(self._consumers):
            if consumer.number in self._told:
                self._tell(consumer)

    def _choice(self) -> Consumer | None:
        """By priority; of the best, in the order of their names, the first, and each next for the next partition."""
        if not self._consumers:
            return None
        ordered = sorted(self._consumers, key=lambda one: (one.priority, one.name, one.number))
        best = [one for one in ordered if one.priority == ordered[0].priority]
        return best[self.context.turns.partition.index % len(best)]

    def _take_over(self, before: Consumer | None) -> None:
        """Begin with what the consumer before has not acknowledged, after a while if it may still do so."""
        delay_ms = self.context.settings.take_over_delay_ms
        if self._taking_over is not None:
            return
        if self._failover and delay_ms > 0 and before is not None and self.read_offset > self.context.cursor.position:
            self._taking_over = self.context.runtime.call_later(delay_ms / 1000, self._took_over)
        else:
            self._rewind()

    def _took_over(self) -> None:
        self._taking_over = None
        self._rewind()

    def _rewind(self) -> None:
        self.read_offset = self.context.cursor.position
        self._forget_recent()
        self.context.wake()

    def flowed(self, consumer: Consumer) -> None:
        """Tell a consumer whether it is active, once it shows that it knows of its subscription."""
        if consumer.number not in self._told:
            self._tell(consumer)

    def _tell(self, consumer: Consumer) -> None:
        if self._failover and self._told.get(consumer.number) is not consumer.active:
            self._told[consumer.number] = consumer.active
            consumer.receiver.active_changed(consumer.active)

    # Delivering

    def turn(self) -> None:
        """See `Dispatcher.turn`."""
        consumer = self._active
        if consumer is None or consumer.permits <= 0 or self._taking_over is not None:
            return
        room_bytes = consumer.receiver.room_bytes()
        if room_bytes <= 0:
            consumer.room_awaited = True
            return
        self._begin_turn()
        deliveries: list[Delivery] = []
        records = size_bytes = 0
        permits = consumer.permits
        for header, frame, wanted in self._new_frames(permits):
            if records >= permits or size_bytes >= room_bytes:
                break
            records_wanted = header.record_count if wanted is None else wanted.bit_count()
            frame_bytes = len(frame)
            records += records_wanted
            size_bytes += frame_bytes
            self._count_given(frame_bytes, records_wanted)
            deliveries.append(_new(Delivery, (header, frame, 0, wanted)))
        self._bases.extend([header.base_offset for header, _, _, _ in deliveries])
        self._counts.extend([header.last_offset_delta + 1 for header, _, _, _ in deliveries])
        if len(self._bases) >= self._trim_at:
            self._trim()
        if deliveries:
            consumer.permits -= records
            consumer.count_delivered(records, size_bytes, 0, self.context.runtime.now_ms())
            consumer.receiver.deliver(deliveries, consumer.epoch)
        if consumer.closed or self._active is not consumer:
            return
        if self._at_tail:
            self.context.turns.await_news(self.context.subscriber)
        elif consumer.permits > 0:
            self.context.wake()

    # Acknowledging

    def acknowledge(self, consumer: Consumer, base_offset: int, wanted: int | None) -> int:
        """See `Dispatcher.acknowledge`."""
        count = self._count_of(base_offset)
        return acknowledge_records(self.context.cursor, base_offset, count, wanted) if count else 0

    def acknowledge_cumulative(self, consumer: Consumer, base_offset: int, wanted: int | None) -> int:
        """See `Dispatcher.acknowledge_cumulative`."""
        cursor = self.context.cursor
        if base_offset >= self.context.turns.partition.log.end_offset:
            return 0
        if wanted:
            count = self._count_of(base_offset)
            # Up to the first record that is still wanted.
            end = base_offset + min((wanted & -wanted).bit_length() - 1, count)
        else:
            # Where no frame begins, it is the last offset itself that is named.
            end = base_offset + max(self._count_of(base_offset), 1)
        return cursor.acknowledge(cursor.position, end)

    def pended(self, base_offset: int, records: int) -> None:
        """See `Dispatcher.pended`: what was delivered is not kept account of here."""

    def unpended(self, ranges: OffsetRanges, *, commit: bool) -> None:
        """See `Dispatcher.unpended`: what is to come again comes with all behind the position."""
        if not commit and self._active is not None:
            self._rewind()

    def count_of(self, base_offset: int) -> int:
        """See `Dispatcher.count_of`."""
        return self._count_of(base_offset)

    def _count_of(self, base_offset: int) -> int:
        """Offsets of the frame with a base offset; 0 if there is none, or it is all acknowledged."""
        cursor = self.context.cursor
        place = bisect_left(self._bases, base_offset)
        if place < len(self._bases) and self._bases[place] == base_offset:
            return self._counts[place]
        if base_offset < cursor.position <= self.read_offset and self._bases and self._bases[0] <= base_offset:
            return 0
        header = self._header_at(base_offset)
        return header.last_offset_delta + 1 if header is not None else 0

    def _trim(self) -> None:
        """Forget frames before the position, and the oldest if they are too many."""
        drop = max(bisect_left(self._bases, self.context.cursor.position) - 1, len(self._bases) - _RECENT_MAX, 0)
        del self._bases[:drop], self._counts[:drop]
        self._trim_at = len(self._bases) + _TRIM_EVERY

    def _forget_recent(self) -> None:
        del self._bases[:], self._counts[:]
        self._trim_at = _TRIM_EVERY

    def redeliver(self, consumer: Consumer, base_offsets: Iterable[int] | None) -> None:
        """Go back to the position; a consumer that is not active has nothing to go back to."""
        if consumer is self._active:
            self._rewind()

    def moved(self, *, backwards: bool) -> None:
        """See `Dispatcher.moved`."""
        if backwards:
            self._rewind()
        else:
            self.read_offset = max(self.read_offset, self.context.cursor.position)
            self.context.wake()

    # Figures

    @property
    def unacknowledged(self) -> int:
        """See `Dispatcher.unacknowledged`."""
        cursor = self.context.cursor
        if self.read_offset <= cursor.position:
            return 0
        between = self.read_offset - cursor.position
        return between - cursor.acknowledged.covered(cursor.position, self.read_offset)

    def unacknowledged_of(self, consumer: Consumer) -> int:
        """See `Dispatcher.unacknowledged_of`."""
        return self.unacknowledged if consumer is self._active else 0

    def close(self) -> None:
        """See `Dispatcher.close`."""
        if self._taking_over is not None:
            self._taking_over.cancel()
            self._taking_over = None
