"""One turn of a Shared or Key_Shared subscription: who can take how much, and what each is given."""

from millstream.broker.subscriptions.consumer import Consumer
from millstream.broker.subscriptions.interface import Delivery

__all__ = ["Round"]


class Round:
    """Collects the deliveries of one turn.

    Args:
        consumers: in the order in which they have their turn; the first of each priority begins.
        entries_per_consumer: frames that one gets before the next has its turn.

    `used_up` tells whether somebody was given all that there was room for: there may be more room at once.
    """

    def __init__(self, consumers: list[Consumer], entries_per_consumer: int) -> None:
        self.used_up = False
        self._rooms: dict[Consumer, int] = {}
        self._deliveries: dict[Consumer, list[Delivery]] = {}
        self._counts: dict[Consumer, tuple[int, int, int]] = {}
        self._entries_per_consumer = self._entries_left = entries_per_consumer
        self._order = sorted((one for one in consumers if self.can_take(one)), key=lambda one: one.priority)
        self.last: Consumer | None = None

    def can_take(self, consumer: Consumer) -> bool:
        """Whether a consumer can be given one frame more."""
        if consumer.permits <= 0 or consumer.blocked or consumer.closed:
            return False
        room_bytes = self._rooms.get(consumer)
        if room_bytes is None:
            room_bytes = self._rooms[consumer] = consumer.receiver.room_bytes()
            if room_bytes <= 0:
                consumer.room_awaited = True
        elif room_bytes <= 0 and consumer in self._deliveries:
            self.used_up = True
        return room_bytes > 0

    def next(self) -> Consumer | None:
        """Whose turn it is; None if nobody can take any more. Who can of the best priority goes round."""
        order = self._order
        while order:
            consumer = order[0]
            if self.can_take(consumer):
                if self._entries_left > 0:
                    return consumer
                order.pop(0)
                place = 0
                while place < len(order) and order[place].priority == consumer.priority:
                    place += 1
                order.insert(place, consumer)
            else:
                order.pop(0)
            self._entries_left = self._entries_per_consumer
        return None

    @property
    def takers(self) -> list[Consumer]:
        """Those who could take something when they were looked at last."""
        return self._order

    @property
    def permits(self) -> int:
        """Records that can be given out in all."""
        return sum(consumer.permits for consumer in self._order if consumer.permits > 0)

    def give(self, consumer: Consumer, delivery: Delivery) -> int:
        """Give a consumer a frame; returns its wanted records, which are off its permits and unacknowledged now."""
        header, frame, redelivery_count, wanted = delivery
        records = header.record_count if wanted is None else wanted.bit_count()
        size_bytes = len(frame)
        consumer.permits -= records
        self._rooms[consumer] -= size_bytes
        self._entries_left -= 1
        self.last = consumer
        given = self._deliveries.get(consumer)
        if given is None:
            self._deliveries[consumer] = [delivery]
            self._counts[consumer] = records, size_bytes, records if redelivery_count else 0
        else:
            given.append(delivery)
            before = self._counts[consumer]
            redelivered = before[2] + records if redelivery_count else before[2]
            self._counts[consumer] = before[0] + records, before[1] + size_bytes, redelivered
        return records

    def send(self, now_ms: int) -> None:
        """Let everybody have what was given to them, each in one piece."""
        for consumer, (records, size_bytes, redelivered) in self._counts.items():
            consumer.count_delivered(records, size_bytes, redelivered, now_ms)
        for consumer, deliveries in self._deliveries.items():
            if not consumer.closed:
                consumer.receiver.deliver(deliveries, consumer.epoch)
