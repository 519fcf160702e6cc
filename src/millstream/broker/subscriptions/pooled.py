"""What Shared and Key_Shared have in common: who holds which frame, limits, delays, and giving back."""

from abc import abstractmethod
from collections.abc import Iterable

from millstream.broker.subscriptions.consumer import Consumer
from millstream.broker.subscriptions.delays import Delays
from millstream.broker.subscriptions.dispatcher import Context, Dispatcher, acknowledge_records
from millstream.broker.subscriptions.entries import DELAYED, DONE, PENDING, WAITING, Entries
from millstream.broker.subscriptions.interface import Delivery
from millstream.broker.subscriptions.ranges import OffsetRanges
from millstream.broker.subscriptions.round import Round
from millstream.model.frame import FrameHeader
from millstream.model.runtime import Timer

__all__ = ["PooledDispatcher"]


class PooledDispatcher(Dispatcher):
    """Delivers to several consumers.

    Args:
        context: what it works on.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._consumers: dict[int, Consumer] = {}
        self._order: list[Consumer] = []
        self._entries = Entries()
        self._delays = Delays()
        self._timer: Timer | None = None
        self._timer_ms = 0
        self._unacknowledged = 0
        self._blocked = False

    # What differs

    @abstractmethod
    def _dispatch(self, this_round: Round) -> None:
        """Give out what can be given."""

    @abstractmethod
    def _queue(self, place: int) -> None:
        """A frame became WAITING."""

    @abstractmethod
    def _unqueue(self, place: int) -> None:
        """A frame that is WAITING is about to be done."""

    def _released(self, place: int, number: int) -> None:
        """A frame is not held by a consumer any more."""

    @abstractmethod
    def _clear_queues(self) -> None:
        """Nothing is WAITING, or held, any more."""

    # Consumers

    def add(self, consumer: Consumer) -> None:
        """See `Dispatcher.add`."""
        consumer.active = True
        self._consumers[consumer.number] = consumer
        self._order.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """See `Dispatcher.remove`: what it held goes to the others."""
        del self._consumers[consumer.number]
        self._order.remove(consumer)
        consumer.active = False
        for place in self._entries.held_by(consumer.number):
            self._give_back(place, consumer)
        self._unblock()
        self.context.wake()

    def _give_back(self, place: int, consumer: Consumer) -> None:
        """Take a frame from a consumer that was delivered it in vain."""
        entries = self._entries
        base_offset, count = entries.bases[place], entries.counts[place]
        left = self._left(base_offset, count)
        consumer.unacknowledged -= left
        self._unacknowledged -= left
        entries.holders[place] = WAITING
        entries.count_redelivery(place)
        self._released(place, consumer.number)
        self._queue(place)

    def _left(self, base_offset: int, count: int) -> int:
        """How many records of a frame are not acknowledged."""
        return self.context.cursor.count_wanted(base_offset, count)

    def flowed(self, consumer: Consumer) -> None:
        """See `Dispatcher.flowed`: nothing but its turn."""

    # Delivering

    def turn(self) -> None:
        """See `Dispatcher.turn`."""
        context = self.context
        self._release_due()
        if self._blocked:
            return
        self._begin_turn()
        this_round = Round(self._order, context.settings.entries_per_consumer)
        if not this_round.takers:
            return
        self._dispatch(this_round)
        if this_round.last is not None:
            behind = self._order.index(this_round.last) + 1
            self._order = self._order[behind:] + self._order[:behind]
        this_round.send(context.runtime.now_ms())
        self._set_timer()
        if self._at_tail or self._stalled:
            context.turns.await_news(context.subscriber)
        elif not self._may_go_on():
            context.wake()
        if this_round.used_up:
            context.wake()

    def _give(
        self,
        this_round: Round,
        consumer: Consumer,
        place: int,
        header: FrameHeader,
        frame: memoryview,
        wanted: int | None,
    ) -> None:
        """Give a consumer a frame that has its place among the entries and is held by it."""
        delivery = Delivery(header, frame, self._entries.redeliveries[place], wanted)
        this_round.give(consumer, delivery)
        # Offsets count here, not records: they are what an acknowledgement takes off again.
        left = header.last_offset_delta + 1 if wanted is None else wanted.bit_count()
        self._count_given(len(frame), left)
        consumer.unacknowledged += left
        self._unacknowledged += left
        settings = self.context.settings
        if 0 < settings.unacknowledged_per_consumer_max <= consumer.unacknowledged:
            consumer.blocked = True
        if 0 < settings.unacknowledged_max <= self._unacknowledged:
            self._blocked = True
            self._entries_left = 0

    def _frame_of(self, place: int, records: int) -> tuple[FrameHeader, memoryview, int | None] | None:
        """Read a frame again that has its place among the entries.

        Returns:
            It and the records wanted of it; None if it cannot be read now, which ends the turn, or if it is in the
            log no more and is done with.
        """
        entries, context = self._entries, self.context
        base_offset, count = entries.bases[place], entries.counts[place]
        self._entries_left -= 1
        chunk = context.turns.read(base_offset, records, self._bytes_left)
        if chunk is None:
            self._stalled = True
            return None
        at = chunk.place(base_offset)
        if at < len(chunk.frames) and chunk.frames[at][0].base_offset == base_offset:
            wanted = context.cursor.wanted(base_offset, count)
            if wanted != 0:
                return *chunk.frames[at], wanted
            if context.cursor.unacknowledged(base_offset, count) != 0:
                self._put_aside(place)
                return None
        context.cursor.acknowledge(base_offset, base_offset + count)
        self._finish(place)
        return None

    # Delays

    def _is_early(self, header: FrameHeader, frame: memoryview, now_ms: int) -> bool:
        """Whether a new frame is to be delivered later; it is put aside then."""
        due_ms = self.context.inspector.deliver_at_ms(header, frame)
        if due_ms <= now_ms:
            return False
        self._delays.add(due_ms, header.base_offset)
        return True

    def _release_due(self) -> None:
        delays, entries = self._delays, self._entries
        if not delays:
            return
        now_ms = self.context.runtime.now_ms()
        left = self.context.settings.turn_entries_max
        while delays and delays.first_ms <= now_ms and left:
            left -= 1
            place = entries.find(delays.pop())
            if place >= 0 and entries.holders[place] == DELAYED:
                entries.holders[place] = WAITING
                self._queue(place)
        if not left:
            self.context.wake()
        self._set_timer()

    def _set_timer(self) -> None:
        """See that there is a turn when the first delay is over."""
        if not self._delays:
            return
        first_ms = self._delays.first_ms
        if self._timer is not None:
            if self._timer_ms <= first_ms:
                return
            self._timer.cancel()
        self._timer_ms = first_ms
        delay_ms = max(first_ms - self.context.runtime.now_ms(), 1)
        self._timer = self.context.runtime.call_later(delay_ms / 1000, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.context.wake()

    # Acknowledging

    def acknowledge(self, consumer: Consumer, base_offset: int, wanted: int | None) -> int:
        """See `Dispatcher.acknowledge`."""
        cursor, entries = self.context.cursor, self._entries
        place = entries.find(base_offset)
        if place < 0:
            # It was acknowledged, or not read since the start; then the log knows how long it is.
            if base_offset < cursor.position < self.read_offset:
                return 0
            header = self._header_at(base_offset)
            count = header.last_offset_delta + 1 if header is not None else 0
            return acknowledge_records(cursor, base_offset, count, wanted) if count else 0
        count = entries.counts[place]
        left = self._left(base_offset, count) if cursor.pending else 0
        acknowledged = acknowledge_records(cursor, base_offset, count, wanted)
        holder = self._consumers.get(entries.holders[place])
        if holder is not None:
            # What is pending in a transaction was taken off already.
            freed = left - self._left(base_offset, count) if cursor.pending else acknowledged
            holder.unacknowledged -= freed
            self._unacknowledged -= freed
        if wanted is None or cursor.is_acknowledged(base_offset, count):
            self._finish(place)
        elif cursor.pending and not self._left(base_offset, count):
            self._put_aside(place)
        if acknowledged and (self._blocked or (holder is not None and holder.blocked)):
            self._unblock()
        return acknowledged

    def acknowledge_cumulative(self, consumer: Consumer, base_offset: int, wanted: int | None) -> int:
        """Nothing: who acknowledged everything up to a frame would do so for what others hold."""
        return 0

    def _finish(self, place: int) -> None:
        """A frame is done."""
        number = self._entries.holders[place]
        if number == WAITING:
            self._unqueue(place)
            self.context.wake()
        self._entries.finish(place)
        if number >= 0:
            self._released(place, number)

    # Transactions

    def count_of(self, base_offset: int) -> int:
        """See `Dispatcher.count_of`."""
        place = self._entries.find(base_offset)
        if place >= 0:
            return self._entries.counts[place]
        if base_offset < self.context.cursor.position < self.read_offset:
            return 0
        header = self._header_at(base_offset)
        return header.last_offset_delta + 1 if header is not None else 0

    def pended(self, base_offset: int, records: int) -> None:
        """See `Dispatcher.pended`: of a frame that has no place yet, `_passed_over` takes care."""
        entries = self._entries
        place = entries.find(base_offset)
        if place < 0:
            return
        holder = self._consumers.get(entries.holders[place])
        if holder is not None:
            holder.unacknowledged -= records
            self._unacknowledged -= records
        if self.context.cursor.wanted(base_offset, entries.counts[place]) == 0:
            self._put_aside(place)
        self._unblock()

    def _put_aside(self, place: int) -> None:
        """Deliver a frame no more, until a transaction is decided."""
        number = self._entries.holders[place]
        if number == PENDING:
            return
        if number == WAITING:
            self._unqueue(place)
        self._entries.holders[place] = PENDING
        if number >= 0:
            self._released(place, number)
        self.context.wake()

    def _passed_over(self, header: FrameHeader, frame: memoryview) -> None:
        """See `Dispatcher._passed_over`: it is remembered, to be delivered if a transaction is aborted."""
        base_offset, count = header.base_offset, header.last_offset_delta + 1
        if self.context.cursor.unacknowledged(base_offset, count) != 0:
            self._entries.add(base_offset, count, PENDING, self._slot_of(header, frame))

    def _slot_of(self, header: FrameHeader, frame: memoryview) -> int:
        """The slot of a frame's key, where that counts."""
        return 0

    def unpended(self, ranges: OffsetRanges, *, commit: bool) -> None:
        """See `Dispatcher.unpended`."""
        entries, cursor = self._entries, self.context.cursor
        for start, end in ranges:
            for place in entries.within(start, end):
                number = entries.holders[place]
                base_offset, count = entries.bases[place], entries.counts[place]
                if number == DONE:
                    continue
                if commit:
                    if cursor.unacknowledged(base_offset, count) == 0:
                        self._finish(place)
                elif number == PENDING:
                    if cursor.wanted(base_offset, count) != 0:
                        entries.holders[place] = WAITING
                        entries.count_redelivery(place)
                        self._queue(place)
                elif number >= 0:
                    self._give_back_again(place, self._consumers[number], start, end)
        self._unblock()
        self.context.wake()

    def _give_back_again(self, place: int, consumer: Consumer, start: int, end: int) -> None:
        """Take a frame from a consumer that had acknowledged a part of it in a transaction that was aborted."""
        base_offset, count = self._entries.bases[place], self._entries.counts[place]
        records = min(end, base_offset + count) - max(start, base_offset)
        consumer.unacknowledged += records
        self._unacknowledged += records
        self._give_back(place, consumer)

    def _unblock(self) -> None:
        """Go on delivering to those who have half of what they may hold."""
        settings = self.context.settings
        for consumer in self._consumers.values():
            if consumer.blocked and consumer.unacknowledged * 2 <= settings.unacknowledged_per_consumer_max:
                consumer.blocked = False
                self.context.wake()
        if self._blocked and self._unacknowledged * 2 <= settings.unacknowledged_max:
            self._blocked = False
            self.context.wake()

    def redeliver(self, consumer: Consumer, base_offsets: Iterable[int] | None) -> None:
        """See `Dispatcher.redeliver`: of what the consumer itself holds."""
        entries = self._entries
        if base_offsets is None:
            for place in entries.held_by(consumer.number):
                self._give_back(place, consumer)
        else:
            for base_offset in base_offsets:
                place = entries.find(base_offset)
                if place >= 0 and entries.holders[place] == consumer.number:
                    self._give_back(place, consumer)
        self._unblock()
        self.context.wake()

    def moved(self, *, backwards: bool) -> None:
        """See `Dispatcher.moved`."""
        cursor, entries = self.context.cursor, self._entries
        if backwards:
            self._entries.clear()
            self._delays.clear()
            self._clear_queues()
            self.read_offset = cursor.position
        else:
            self.read_offset = max(self.read_offset, cursor.position)
            for place in entries.before(cursor.position):
                base_offset, count = entries.bases[place], entries.counts[place]
                if entries.holders[place] != DONE and cursor.is_acknowledged(base_offset, count):
                    self._finish(place)
        self._recount()
        self._unblock()
        self.context.wake()

    def _recount(self) -> None:
        """Count anew what is not acknowledged: the cursor moved over an unknown part of it."""
        self._unacknowledged = 0
        entries = self._entries
        for consumer in self._consumers.values():
            consumer.unacknowledged = sum(
                self._left(entries.bases[place], entries.counts[place]) for place in entries.held_by(consumer.number)
            )
            self._unacknowledged += consumer.unacknowledged

    # Figures

    @property
    def unacknowledged(self) -> int:
        """See `Dispatcher.unacknowledged`."""
        return self._unacknowledged

    def unacknowledged_of(self, consumer: Consumer) -> int:
        """See `Dispatcher.unacknowledged_of`."""
        return consumer.unacknowledged

    @property
    def blocked(self) -> bool:
        """See `Dispatcher.blocked`."""
        return self._blocked

    @property
    def delayed(self) -> int:
        """See `Dispatcher.delayed`."""
        return self._entries.holders.count(DELAYED)

    @property
    def waiting(self) -> int:
        """See `Dispatcher.waiting`."""
        return self._entries.holders.count(WAITING)

    def close(self) -> None:
        """See `Dispatcher.close`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
