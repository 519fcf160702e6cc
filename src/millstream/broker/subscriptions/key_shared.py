"""Key_Shared: every key to one consumer at a time, and in order."""

from array import array
from bisect import insort
from heapq import heapify, heappop, heappush

from millstream.broker.subscriptions.consumer import Consumer
from millstream.broker.subscriptions.dispatcher import Context
from millstream.broker.subscriptions.entries import DELAYED, WAITING
from millstream.broker.subscriptions.errors import PolicyMismatch
from millstream.broker.subscriptions.interface import KeySharedPolicy, Subscribing
from millstream.broker.subscriptions.key_ring import NOBODY, AutoSplit, KeyRing, StickyRanges
from millstream.broker.subscriptions.murmur3 import key_slot
from millstream.broker.subscriptions.pooled import PooledDispatcher
from millstream.broker.subscriptions.round import Round
from millstream.model.frame import FrameHeader

__all__ = ["KeySharedDispatcher"]

_COUNT_BITS = 32
_COUNT_MASK = (1 << _COUNT_BITS) - 1


class KeySharedDispatcher(PooledDispatcher):
    """Delivers by the slot of each frame's key.

    A slot whose frames a consumer has not acknowledged is *held* by it: until it has let go of all of them, no other
    consumer gets one, even if the slot belongs to another by now. Frames that cannot be delivered wait in a queue for
    each slot, and what is new joins it. A slot with a queue that may go on is *listed* with its owner.

    Args:
        context: what it works on.
        policy: how slots are shared out, for all consumers.
    """

    def __init__(self, context: Context, policy: KeySharedPolicy) -> None:
        super().__init__(context)
        self._out_of_order = policy.allow_out_of_order
        self._sticky = policy.sticky_ranges is not None
        self._auto_split, self._sticky_ranges = AutoSplit(), StickyRanges()
        self._ring: KeyRing = self._sticky_ranges if self._sticky else self._auto_split
        self._held: dict[int, int] = {}
        self._queues: dict[int, array[int]] = {}
        self._queued = 0
        self._listed: dict[int, int] = {}
        self._lists: dict[int, list[tuple[int, int]]] = {}

    # Consumers

    def check(self, request: Subscribing) -> None:
        """See `Dispatcher.check`."""
        policy = request.key_shared
        sticky = policy.sticky_ranges is not None
        if self._consumers and (sticky is not self._sticky or policy.allow_out_of_order is not self._out_of_order):
            raise PolicyMismatch("the consumers connected share keys in another way")
        if policy.sticky_ranges is not None:
            self._sticky_ranges.check(policy.sticky_ranges)

    def add(self, consumer: Consumer) -> None:
        """See `Dispatcher.add`."""
        policy = consumer.request.key_shared
        if not self._consumers:
            self._out_of_order = policy.allow_out_of_order
            self._sticky = policy.sticky_ranges is not None
            self._ring = self._sticky_ranges if self._sticky else self._auto_split
        super().add(consumer)
        if policy.sticky_ranges is not None:
            self._sticky_ranges.add(consumer.number, policy.sticky_ranges)
        else:
            self._auto_split.add(consumer.number, consumer.name)
        self._list_anew()

    def remove(self, consumer: Consumer) -> None:
        """See `Dispatcher.remove`."""
        self._ring.remove(consumer.number)
        super().remove(consumer)
        self._list_anew()

    def key_ranges(self, consumer: Consumer) -> tuple[tuple[int, int], ...]:
        """See `Dispatcher.key_ranges`."""
        return self._ring.ranges(consumer.number)

    # Queues

    def _list_anew(self) -> None:
        """The slots have other owners: list what waits with them."""
        self._listed.clear()
        self._lists = {number: [] for number in self._consumers}
        for slot, queue in self._queues.items():
            owner = self._ring.owner(slot)
            if owner != NOBODY and self._is_free(slot, owner):
                self._listed[slot] = owner
                self._lists[owner].append((queue[0], slot))
        for listed in self._lists.values():
            heapify(listed)

    def _list(self, slot: int) -> None:
        """List a slot with its owner if it has a queue that may go on, and is not listed yet."""
        queue = self._queues.get(slot)
        if queue is None or slot in self._listed:
            return
        owner = self._ring.owner(slot)
        if owner in self._lists and self._is_free(slot, owner):
            self._listed[slot] = owner
            heappush(self._lists[owner], (queue[0], slot))

    def _is_free(self, slot: int, number: int) -> bool:
        """Whether a consumer may be delivered frames of a slot, given who holds some."""
        held = self._held.get(slot)
        return held is None or self._out_of_order or held >> _COUNT_BITS == number

    def _hold(self, slot: int, number: int) -> None:
        held = self._held.get(slot)
        if held is None or held >> _COUNT_BITS != number:
            # Held by another only out of order; then whoever came last counts, which nobody asks about.
            self._held[slot] = number << _COUNT_BITS | 1
        else:
            self._held[slot] = held + 1

    def _released(self, place: int, number: int) -> None:
        slot = self._entries.slots[place]
        held = self._held.get(slot)
        if held is None or held >> _COUNT_BITS != number:
            return
        if held & _COUNT_MASK > 1:
            self._held[slot] = held - 1
            return
        del self._held[slot]
        if slot in self._queues:
            self._list(slot)
            self.context.wake()

    def _queue(self, place: int) -> None:
        slot, base_offset = self._entries.slots[place], self._entries.bases[place]
        queue = self._queues.get(slot)
        if queue is None:
            self._queues[slot] = array("q", (base_offset,))
        elif queue[-1] < base_offset:
            queue.append(base_offset)
        else:
            insort(queue, base_offset)
        self._queued += 1
        self._list(slot)

    def _unqueue(self, place: int) -> None:
        slot = self._entries.slots[place]
        queue = self._queues[slot]
        queue.remove(self._entries.bases[place])
        self._queued -= 1
        if not queue:
            del self._queues[slot]
            self._listed.pop(slot, None)

    def _clear_queues(self) -> None:
        self._queues.clear()
        self._queued = 0
        self._held.clear()
        self._list_anew()

    # Delivering

    def _dispatch(self, this_round: Round) -> None:
        for consumer in list(this_round.takers):
            self._deliver_listed(this_round, consumer)
        settings = self.context.settings
        look_ahead = min(settings.look_ahead_per_consumer * len(self._consumers), settings.look_ahead_max)
        entries = self._entries
        now_ms = self.context.runtime.now_ms()
        if self._queued >= look_ahead:
            return
        for header, frame, wanted in self._new_frames(this_round.permits):
            if self._queued >= look_ahead or this_round.next() is None:
                return
            slot = self._slot_of(header, frame)
            count = header.last_offset_delta + 1
            if self._is_early(header, frame, now_ms):
                entries.add(header.base_offset, count, DELAYED, slot)
                continue
            owner = self._consumers.get(self._ring.owner(slot))
            if (
                owner is None
                or slot in self._queues
                or not self._is_free(slot, owner.number)
                or not this_round.can_take(owner)
            ):
                self._queue(entries.add(header.base_offset, count, WAITING, slot))
                continue
            place = entries.add(header.base_offset, count, owner.number, slot)
            self._hold(slot, owner.number)
            self._give(this_round, owner, place, header, frame, wanted)

    def _slot_of(self, header: FrameHeader, frame: memoryview) -> int:
        return key_slot(self.context.inspector.sticky_key(header, frame))

    def _deliver_listed(self, this_round: Round, consumer: Consumer) -> None:
        """Deliver what waits for a consumer, about in the order of the log."""
        entries, listed = self._entries, self._lists[consumer.number]
        while listed and self._may_go_on() and this_round.can_take(consumer):
            _, slot = heappop(listed)
            queue = self._queues.get(slot)
            if queue is None or self._listed.get(slot) != consumer.number:
                continue
            del self._listed[slot]
            place = entries.find(queue[0])
            found = self._frame_of(place, 1)
            if found is not None:
                header, frame, wanted = found
                self._unqueue(place)
                entries.holders[place] = consumer.number
                self._hold(slot, consumer.number)
                self._give(this_round, consumer, place, header, frame, wanted)
            self._list(slot)
