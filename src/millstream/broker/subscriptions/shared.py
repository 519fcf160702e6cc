"""Shared: every frame to whichever consumer is next."""

from millstream.broker.subscriptions.dispatcher import Context
from millstream.broker.subscriptions.entries import DELAYED
from millstream.broker.subscriptions.interface import Subscribing
from millstream.broker.subscriptions.pooled import PooledDispatcher
from millstream.broker.subscriptions.ranges import OffsetRanges
from millstream.broker.subscriptions.round import Round

__all__ = ["SharedDispatcher"]


class SharedDispatcher(PooledDispatcher):
    """Delivers to all consumers in turn, by priority; what comes again goes before what is new.

    Args:
        context: what it works on.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._replay = OffsetRanges()

    def check(self, request: Subscribing) -> None:
        """See `Dispatcher.check`: everybody may come."""

    def _dispatch(self, this_round: Round) -> None:
        self._replay_frames(this_round)
        if self._replay:
            return
        entries = self._entries
        now_ms = self.context.runtime.now_ms()
        for header, frame, wanted in self._new_frames(this_round.permits):
            consumer = this_round.next()
            if consumer is None:
                return
            count = header.last_offset_delta + 1
            if self._is_early(header, frame, now_ms):
                entries.add(header.base_offset, count, DELAYED)
                continue
            place = entries.add(header.base_offset, count, consumer.number)
            self._give(this_round, consumer, place, header, frame, wanted)

    def _replay_frames(self, this_round: Round) -> None:
        entries, replay = self._entries, self._replay
        while replay and self._may_go_on():
            consumer = this_round.next()
            if consumer is None:
                return
            base_offset, end = replay.first
            place = entries.find(base_offset)
            found = self._frame_of(place, end - base_offset)
            if found is None:
                continue
            header, frame, wanted = found
            replay.remove(base_offset, base_offset + entries.counts[place])
            entries.holders[place] = consumer.number
            self._give(this_round, consumer, place, header, frame, wanted)

    def _queue(self, place: int) -> None:
        base_offset = self._entries.bases[place]
        self._replay.add(base_offset, base_offset + self._entries.counts[place])

    def _unqueue(self, place: int) -> None:
        base_offset = self._entries.bases[place]
        self._replay.remove(base_offset, base_offset + self._entries.counts[place])

    def _clear_queues(self) -> None:
        self._replay.clear()
