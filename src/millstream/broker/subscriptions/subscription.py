"""One subscription of one partition: its cursor, its consumers, and the rule by which they are delivered to."""

from collections.abc import Callable, Iterable
from typing import Final

from millstream.broker.offsets import Offsets, Place
from millstream.broker.subscriptions.consumer import Consumer
from millstream.broker.subscriptions.cursor import Cursor
from millstream.broker.subscriptions.dispatcher import Context, Dispatcher, acknowledged_runs
from millstream.broker.subscriptions.errors import (
    AcknowledgementConflict,
    KindMismatch,
    SubscriptionGone,
    SubscriptionInUse,
)
from millstream.broker.subscriptions.interface import (
    CloseReason,
    Receiver,
    Subscribing,
    SubscriptionKind,
    SubscriptionSettings,
    SubscriptionStats,
)
from millstream.broker.subscriptions.key_shared import KeySharedDispatcher
from millstream.broker.subscriptions.pending import PendingAcknowledgements
from millstream.broker.subscriptions.shared import SharedDispatcher
from millstream.broker.subscriptions.single import SingleDispatcher
from millstream.broker.subscriptions.turns import PartitionTurns
from millstream.model.frame import read_frame_header
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime, Timer

__all__ = ["Subscription"]

_RETURN_S: Final = 60.0
"""How long a non-durable subscription waits after a seek for its consumer, which was closed, to come back."""


class Subscription:
    """A subscription. Sessions get it from `Subscriptions`, and act on it mostly through their `Consumer`.

    `name`, `durable`, `kind` (None until a consumer has told), `consumers` (in the order in which they came) and
    `pending` (what open transactions have acknowledged) may be read.

    Args:
        name: of it.
        place: its partition.
        turns: of its partition.
        offsets: where its cursor lasts; None if it is not durable.
        runtime: time and timers.
        settings: limits and delays.
        position: where it begins.
        ended: told when it is over.
    """

    def __init__(
        self,
        name: str,
        place: Place,
        turns: PartitionTurns,
        offsets: Offsets | None,
        runtime: Runtime,
        settings: SubscriptionSettings,
        position: int,
        ended: Callable[["Subscription", Pending[None]], None],
    ) -> None:
        self.name = name
        self.place = place
        self.durable = offsets is not None
        self.kind: SubscriptionKind | None = None
        self.consumers: list[Consumer] = []
        self.ready: Pending[None] | None = None
        self.cursor = Cursor(
            runtime,
            offsets,
            name,
            place,
            position,
            settings.persist_interval_ms,
            moved=self._moved,
            dropped=self.drop,
        )
        self.pending = PendingAcknowledgements(self.cursor)
        self._turns = turns
        self._offsets = offsets
        self._runtime = runtime
        self._settings = settings
        self._ended = ended
        self._is_over = False
        self._dispatcher: Dispatcher | None = None
        self._numbers = 0
        self._expired_records = 0
        self._return_timer: Timer | None = None

    @property
    def position(self) -> int:
        """The first offset that is not acknowledged together with all before it."""
        return self.cursor.position

    # Consumers

    def attach(self, request: Subscribing, receiver: Receiver) -> Consumer:
        """Connect a consumer. Raises SubscriptionError."""
        if self._is_over:
            raise SubscriptionGone(f"the subscription {self.name} has ended")
        if self.consumers and self.kind is not request.kind:
            kind = self.kind.value if self.kind is not None else "?"
            raise KindMismatch(f"the consumers of {self.name} are connected as {kind}")
        dispatcher = self._dispatcher
        if dispatcher is None or self.kind is not request.kind:
            fresh = self._new_dispatcher(request)
            fresh.check(request)
            if dispatcher is not None:
                dispatcher.close()
            dispatcher = self._dispatcher = fresh
            self.kind = request.kind
        else:
            dispatcher.check(request)
            dispatcher.context.inspector = request.inspector
        if self._return_timer is not None:
            self._return_timer.cancel()
            self._return_timer = None
        consumer = Consumer(self, request, receiver, self._numbers, self.now_ms())
        self._numbers += 1
        self.consumers.append(consumer)
        dispatcher.add(consumer)
        self.wake()
        return consumer

    def _new_dispatcher(self, request: Subscribing) -> Dispatcher:
        context = Context(self._runtime, self._settings, self._turns, self.cursor, request.inspector, self)
        match request.kind:
            case SubscriptionKind.SHARED:
                return SharedDispatcher(context)
            case SubscriptionKind.KEY_SHARED:
                return KeySharedDispatcher(context, request.key_shared)
            case _:
                return SingleDispatcher(context, failover=request.kind is SubscriptionKind.FAILOVER)

    def remove(self, consumer: Consumer) -> None:
        """See `Consumer.close`."""
        self._part_from(consumer)
        if not self.consumers and not self.durable and not self._is_over:
            self._end(settled(None))

    def _part_from(self, consumer: Consumer) -> None:
        consumer.closed = True
        self.consumers.remove(consumer)
        if self._dispatcher is not None:
            self._dispatcher.remove(consumer)

    def _close_all(self, reason: CloseReason) -> None:
        for consumer in list(self.consumers):
            if not consumer.closed:
                self._part_from(consumer)
                consumer.receiver.closed(reason)

    # Delivering

    def wake(self) -> None:
        """Something may be deliverable now."""
        if not self._is_over:
            self._turns.schedule(self)

    def flowed(self, consumer: Consumer) -> None:
        """A consumer was given permits."""
        if self._dispatcher is not None:
            self._dispatcher.flowed(consumer)
        self.wake()

    def turn(self) -> None:
        """Deliver what can be delivered in one turn."""
        if self._is_over:
            return
        if self._turns.partition.deleted:
            self.drop()
        elif self._dispatcher is not None and self.consumers:
            self._dispatcher.turn()
            self._tell_end()

    def _tell_end(self) -> None:
        """Tell consumers when a terminated topic has been acknowledged to its end."""
        if self.cursor.position < self._turns.partition.log.end_offset:
            return
        if not self._turns.bounds.is_terminated(self._turns.partition):
            return
        for consumer in list(self.consumers):
            if not consumer.end_told and not consumer.closed:
                consumer.end_told = True
                consumer.receiver.reached_end()

    # Acknowledging

    def acknowledge(self, consumer: Consumer, acknowledgements: Iterable[tuple[int, int | None]]) -> None:
        """See `Consumer.acknowledge`."""
        dispatcher = self._dispatcher
        if dispatcher is None:
            return
        acknowledged = 0
        for base_offset, wanted in acknowledgements:
            acknowledged += dispatcher.acknowledge(consumer, base_offset, wanted)
        self._count_acknowledged(consumer, acknowledged)

    def acknowledge_cumulative(self, consumer: Consumer, base_offset: int, wanted: int | None) -> None:
        """See `Consumer.acknowledge_cumulative`."""
        if self._dispatcher is not None:
            acknowledged = self._dispatcher.acknowledge_cumulative(consumer, base_offset, wanted)
            self._count_acknowledged(consumer, acknowledged)

    def _count_acknowledged(self, consumer: Consumer, records: int) -> None:
        consumer.acknowledged_records += records
        consumer.last_acknowledged_ms = self.now_ms()
        if records:
            self._tell_end()

    def acknowledge_in(self, transaction: int, acknowledgements: Iterable[tuple[int, int | None]]) -> None:
        """Acknowledge frames, or records of frames, in a transaction: all of them, or none.

        Args:
            transaction: its number.
            acknowledgements: as for `Consumer.acknowledge`.

        Raises:
            AcknowledgementConflict: some are acknowledged, or in another transaction, or there is no such frame.
        """
        dispatcher = self._dispatcher
        if dispatcher is None:
            return
        runs: list[tuple[int, int]] = []
        bases: list[int] = []
        for base_offset, wanted in acknowledgements:
            count = dispatcher.count_of(base_offset)
            if not count:
                raise AcknowledgementConflict(f"the message {base_offset} is acknowledged already, or is none")
            for run in acknowledged_runs(base_offset, count, wanted):
                runs.append(run)
                bases.append(base_offset)
        for base_offset, records in zip(bases, self.pending.add(transaction, runs), strict=True):
            dispatcher.pended(base_offset, records)

    def acknowledge_cumulative_in(self, transaction: int, base_offset: int, wanted: int | None) -> None:
        """Acknowledge everything up to a frame in a transaction; see `Consumer.acknowledge_cumulative`.

        Raises:
            AcknowledgementConflict: all of that is acknowledged, or some in another transaction.
            KindMismatch: several consumers are delivered to, who hold what they have not acknowledged.
        """
        if self.kind in {SubscriptionKind.SHARED, SubscriptionKind.KEY_SHARED} or self._dispatcher is None:
            raise KindMismatch(f"everything up to a message cannot be acknowledged on {self.name}: it is shared")
        count = max(self._dispatcher.count_of(base_offset), 1)
        end = base_offset + (min((wanted & -wanted).bit_length() - 1, count) if wanted else count)
        self.pending.add_before(transaction, min(end, self._turns.partition.log.end_offset))

    def end_in(self, transaction: int, *, commit: bool) -> None:
        """A transaction is decided: what it has acknowledged is acknowledged, or comes again."""
        ranges, acknowledged = self.pending.end(transaction, commit=commit)
        if ranges is None or self._is_over:
            return
        if self._dispatcher is not None:
            self._dispatcher.unpended(ranges, commit=commit)
        if acknowledged:
            self._tell_end()

    @property
    def is_over(self) -> bool:
        """Whether it was ended."""
        return self._is_over

    def redeliver(self, consumer: Consumer, base_offsets: Iterable[int] | None) -> None:
        """See `Consumer.redeliver`."""
        if self._dispatcher is not None:
            self._dispatcher.redeliver(consumer, base_offsets)

    def persist(self) -> Pending[None] | None:
        """What the answer to an acknowledgement waits for: everything acknowledged so far lasts.

        Returns:
            Fails with MetadataFailed; None if there is nothing to wait for.
        """
        return self.cursor.persist()

    # Moving the cursor

    def seek(self, offset: int) -> Pending[None]:
        """Move the cursor to a record. All consumers are closed (`Receiver.closed`) before this returns.

        Args:
            offset: of the next record to deliver; put within the log if it lies outside.

        Returns:
            Resolves once the new position lasts; subscribing waits for it as well. Fails with MetadataFailed.
        """
        log = self._turns.partition.log
        self._close_all(CloseReason.SEEK)
        self.cursor.reset(min(max(offset, log.start_offset), log.end_offset))
        if self._dispatcher is not None:
            self._dispatcher.moved(backwards=True)
        if not self.durable and self._return_timer is None:
            self._return_timer = self._runtime.call_later(_RETURN_S, self._stayed_away)
        lasting = self.cursor.persist()
        if lasting is None:
            return settled(None)
        self.wait_for(lasting)
        return lasting

    def _stayed_away(self) -> None:
        self._return_timer = None
        if not self.consumers and not self._is_over:
            self._end(settled(None))

    def wait_for(self, lasting: Pending[None]) -> None:
        """Let whoever subscribes from now on wait for something first."""
        self.ready = lasting

        def clear(_: Pending[None]) -> None:
            if self.ready is lasting:
                self.ready = None

        lasting.when_done(clear)

    def seek_time(self, timestamp_ms: int) -> Pending[None]:
        """Move the cursor to the first frame with a record as late as a time, or to the end; see `seek`."""
        return self.seek(self._offset_for(timestamp_ms))

    def _offset_for(self, timestamp_ms: int) -> int:
        log = self._turns.partition.log
        frame = log.frame_for_time(timestamp_ms)
        return log.end_offset if frame is None else read_frame_header(frame).base_offset

    def expire_before(self, offset: int) -> int:
        """Take what lies before an offset as acknowledged; returns how many records of the backlog that was."""
        cursor = self.cursor
        expired = cursor.acknowledge(cursor.position, min(offset, self._turns.partition.log.end_offset))
        if expired:
            self._expired_records += expired
            self._moved(backwards=False)
        return expired

    def expire_before_time(self, timestamp_ms: int) -> int:
        """Take the frames before the first with a record as late as a time as acknowledged; see `expire_before`."""
        return self.expire_before(self._offset_for(timestamp_ms))

    def _moved(self, backwards: bool) -> None:
        if self._dispatcher is not None and not self._is_over:
            self._dispatcher.moved(backwards=backwards)

    # The end

    def unsubscribe(self, consumer: Consumer | None = None) -> Pending[None]:
        """End the subscription for good.

        Args:
            consumer: who asks: it must be the only one connected, and is closed without being told; None ends it
                whoever is connected.

        Returns:
            Resolves once it is gone for ever; fails with SubscriptionInUse, MetadataFailed.
        """
        if consumer is not None and self.consumers != [consumer]:
            refused: Pending[None] = Pending()
            refused.fail(SubscriptionInUse(f"other consumers of {self.name} are connected"))
            return refused
        if consumer is not None:
            self._part_from(consumer)
        self._close_all(CloseReason.UNSUBSCRIBED)
        offsets = self._offsets
        self.cursor.detach()
        gone = settled(None) if offsets is None else offsets.delete(self.name, [self.place])
        self._end(gone)
        return gone

    def drop(self) -> None:
        """End it, because what is stored of it is gone, or never came to be, or its topic is gone."""
        if not self._is_over:
            deleted = self._turns.partition.deleted
            self._close_all(CloseReason.TOPIC_DELETED if deleted else CloseReason.UNSUBSCRIBED)
            self._end(settled(None))

    def _end(self, gone: Pending[None]) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._turns.forget(self)
        self.cursor.detach()
        self._stop_timers()
        self._ended(self, gone)

    def close(self) -> None:
        """Store what is not stored yet, and let no timer run any more: the server stops."""
        self._stop_timers()
        self.cursor.close()

    def _stop_timers(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher.close()
        if self._return_timer is not None:
            self._return_timer.cancel()
            self._return_timer = None

    # Figures

    def stats(self) -> SubscriptionStats:
        """Its figures."""
        cursor, dispatcher = self.cursor, self._dispatcher
        behind = self._turns.partition.log.end_offset - cursor.position
        return SubscriptionStats(
            name=self.name,
            kind=self.kind,
            durable=self.durable,
            position=cursor.position,
            acknowledged_ranges=len(cursor.acknowledged),
            backlog=max(behind - cursor.acknowledged.size, 0),
            unacknowledged=dispatcher.unacknowledged if dispatcher is not None else 0,
            delayed=dispatcher.delayed if dispatcher is not None else 0,
            waiting=dispatcher.waiting if dispatcher is not None else 0,
            expired_records=self._expired_records,
            blocked=dispatcher.blocked if dispatcher is not None else False,
            consumers=tuple(consumer.stats() for consumer in self.consumers),
        )

    def now_ms(self) -> int:
        """The time, ms since 1970."""
        return self._runtime.now_ms()

    def key_ranges(self, consumer: Consumer) -> tuple[tuple[int, int], ...]:
        """Slots of a consumer of a Key_Shared subscription as (first, last); none for other kinds."""
        return self._dispatcher.key_ranges(consumer) if self._dispatcher is not None else ()

    def unacknowledged_of(self, consumer: Consumer) -> int:
        """Records delivered to a consumer that nobody has acknowledged."""
        return self._dispatcher.unacknowledged_of(consumer) if self._dispatcher is not None else 0
