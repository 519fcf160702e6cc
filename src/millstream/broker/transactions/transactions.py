"""The transactions of the server: beginning them, what belongs to them, and ending them.

What is answered lasts. A transaction is one document, written when it begins, when something is added to it, and when
it is decided; what follows from a decision is done at once, in memory, and made to last behind the answer: a start
does it again for every decided transaction that is still known. Committing costs nothing in the partitions: records
that no known transaction has written are simply there. Of an aborted transaction, the offsets are remembered for as
long as the log has them.

What an open transaction has written is not stored anywhere but in the log, whose frames name their transaction. A
start looks for them from the place on where the log ended when the partition was added. So nobody writes to a
partition before that it was added lasts, or a start would take the records for those of no transaction.

A transaction of a producer with a transactional id is one like any other, but for three things. It has an owner, and
its frames carry that producer's id and epoch, not its number. Its decision is stored with the owner (`producers`),
and its own document ends with that. And it commits offsets of consumer groups (`pending_offsets`).
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from millstream.broker.documents import DocumentChange, Documents
from millstream.broker.offsets import Offsets
from millstream.broker.partition import Partition
from millstream.broker.subscriptions import AcknowledgementConflict, Subscription, Subscriptions
from millstream.broker.topics import Topic, Topics
from millstream.broker.transactions.aborted import StoredAborted, transactions_of
from millstream.broker.transactions.acknowledgements import StoredAcknowledgements
from millstream.broker.transactions.errors import (
    InvalidTransactionState,
    InvalidTransactionTimeout,
    NotInTransaction,
    TooManyTransactions,
    TransactionNotFound,
    TransactionsDisabled,
    TransactionTooLarge,
)
from millstream.broker.transactions.numbers import TransactionNumbers
from millstream.broker.transactions.pending_offsets import PendingOffsets
from millstream.broker.transactions.transaction import (
    Adding,
    Owner,
    Place,
    SubscriptionPlace,
    Transaction,
    TransactionState,
)
from millstream.broker.transactions.undecided import find_written
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather, settled
from millstream.model.runtime import Runtime
from millstream.storage.metadata import CommittedOffset

__all__ = ["TIMEOUT_MS_MAX", "Transactions"]

_log = logging.getLogger(__name__)
TRANSACTION_DOCUMENT: Final = "transaction"
TIMEOUT_MS_MAX: Final = 24 * 3600 * 1000
"""The longest that a transaction may be open: meanwhile nobody can read what comes behind its first record."""
_OPEN_MAX: Final = 50_000
"""Transactions that may be open at a time: each is about 1 KB in memory, and a timer."""
_PARTS_MAX: Final = 10_000
"""Partitions, and subscriptions, of one transaction: its document is written anew with each."""
_GROUPS_MAX: Final = 1000
"""Consumer groups of one transaction, for the same reason; an application has one."""
_ENDED_MAX: Final = 10_000
_ENDED_MS: Final = 15 * 60 * 1000
"""Ended transactions that are remembered, and for how long: a client that lost its connection asks again."""
_RETRY_MS: Final = 1000
"""When it is tried again to abort a transaction in time, after the store has failed."""


class Transactions:
    """The coordinator.

    Args:
        runtime: time and timers.
        documents: where transactions last.
        topics: those that were loaded; transactions that were under way take their places in them again.
        subscriptions: the same.
        offsets: what groups have committed.
        enabled: whether new ones may begin that have no owner.

    `time_out` is called with a transaction that has an owner when its time is over.
    """

    def __init__(
        self,
        runtime: Runtime,
        documents: Documents,
        topics: Topics,
        subscriptions: Subscriptions,
        offsets: Offsets,
        *,
        enabled: bool,
    ) -> None:
        self._runtime = runtime
        self._documents = documents
        self._topics = topics
        self._subscriptions = subscriptions
        self._enabled = enabled
        self._numbers = TransactionNumbers(documents)
        self._acknowledged = StoredAcknowledgements(documents)
        self.aborted = StoredAborted(documents, self._partition)
        self.pending_offsets = PendingOffsets(documents, offsets)
        self.time_out: Callable[[Transaction], None] = lambda _: None
        self._of: dict[int, Transaction] = {}
        self._ended: deque[Transaction] = deque()
        self._load()

    @property
    def open(self) -> list[Transaction]:
        """The transactions that are not decided."""
        return [one for one in self._of.values() if not one.state.is_decided]

    # The start

    def _load(self) -> None:
        self.aborted.load()
        for key, document in self._documents.of_kind(TRANSACTION_DOCUMENT).items():
            transaction = Transaction.load(int(key), document)
            self._of[transaction.number] = transaction
        self.pending_offsets.load(self._of)
        self._find_undecided()
        for number, place, ranges in self._acknowledged.load():
            subscription = self._subscription(place)
            if number in self._of and subscription is not None:
                self._of[number].subscriptions.add(place)
                try:
                    subscription.pending.restore(number, ranges)
                except AcknowledgementConflict as error:
                    _log.error("acknowledgements of a transaction dropped transaction=%d reason=%s", number, error)
            else:
                self._acknowledged.drop(number, place)
        for transaction in list(self._of.values()):
            if transaction.state.is_decided:
                self._apply(transaction)
            else:
                self._set_timer(transaction)

    def _find_undecided(self) -> None:
        """Find in the logs what transactions have written that are open, or about to be aborted."""
        looking: dict[Place, list[Transaction]] = {}
        for transaction in self._of.values():
            if transaction.state.commits:
                continue
            lost: list[tuple[Topic, int]] = []
            for place, offset in list(transaction.partitions.items()):
                topic = self._topics.by_id(place[0])
                partition = self._partition(place)
                if topic is None or partition is None or self.aborted.is_stored(place, transaction.number):
                    continue
                if offset <= partition.log.end_offset:
                    looking.setdefault(place, []).append(transaction)
                    continue
                # A loss of power has taken the end of the log, and what comes now would stand before the offset.
                del transaction.partitions[place]
                lost.append((topic, place[1]))
            if lost and not transaction.state.is_decided:
                self.add(transaction, lost)
        for place, transactions in looking.items():
            partition = self._partition(place)
            assert partition is not None
            find_written(partition, place, transactions)

    # Finding

    def find(self, number: int) -> Transaction:
        """A transaction that is open, or was ended a while ago. Raises TransactionNotFound."""
        transaction = self._of.get(number)
        if transaction is None or transaction.owner is not None:
            raise TransactionNotFound(f"there is no transaction {number}")
        return transaction

    def _open_one(self, number: int) -> Transaction:
        transaction = self.find(number)
        if transaction.state.is_decided:
            raise InvalidTransactionState(f"the transaction {number} is {transaction.state.value}")
        return transaction

    def _partition(self, place: Place) -> Partition | None:
        topic = self._topics.by_id(place[0])
        return topic.partitions[place[1]] if topic is not None and place[1] < len(topic.partitions) else None

    def _subscription(self, place: SubscriptionPlace) -> Subscription | None:
        topic = self._topics.by_id(place.topic_id)
        if topic is None or place.partition >= len(topic.partitions):
            return None
        return self._subscriptions.find(topic, place.partition, place.name)

    # An open transaction

    def check_enabled(self) -> None:
        """Raises TransactionsDisabled: there are none."""
        if not self._enabled:
            raise TransactionsDisabled("transactions are switched off: pulsar.transactions.enable")

    def begin(self, timeout_ms: int) -> Pending[int]:
        """Begin a transaction.

        Args:
            timeout_ms: it is aborted if it is open then, from 1 to TIMEOUT_MS_MAX.

        Returns:
            Resolves with its number once that lasts; fails with MetadataFailed.

        Raises:
            TransactionsDisabled, InvalidTransactionTimeout, TooManyTransactions.
        """
        self.check_enabled()
        if not 0 < timeout_ms <= TIMEOUT_MS_MAX:
            raise InvalidTransactionTimeout(f"a transaction is open for 1 to {TIMEOUT_MS_MAX} ms, not {timeout_ms}")
        self._check_room()
        return self._numbers.take().chain(lambda number: self._begin(number, timeout_ms))

    def _check_room(self) -> None:
        if len(self._of) - len(self._ended) >= _OPEN_MAX:
            raise TooManyTransactions(f"{_OPEN_MAX} transactions are open")

    def begin_for(self, owner: Owner, timeout_ms: int) -> Pending[Transaction]:
        """Begin the transaction of an owner. It lasts once anything that was added to it does.

        Raises:
            TooManyTransactions.
        """
        self._check_room()
        return self._numbers.take().then(lambda number: self._begun(number, timeout_ms, owner))

    def _begun(self, number: int, timeout_ms: int, owner: Owner | None) -> Transaction:
        now_ms = self._runtime.now_ms()
        transaction = Transaction(number, now_ms + timeout_ms, owner=owner, started_ms=now_ms)
        self._of[number] = transaction
        self._set_timer(transaction)
        return transaction

    def owned(self) -> list[Transaction]:
        """The open transactions that have an owner."""
        return [one for one in self._of.values() if one.owner is not None]

    def _begin(self, number: int, timeout_ms: int) -> Pending[int]:
        transaction = self._begun(number, timeout_ms, None)
        stored = self._put(transaction)

        def check(outcome: Pending[None]) -> None:
            try:
                outcome.result()
            except MillstreamError:
                self._stop_timer(transaction)
                self._of.pop(number, None)

        stored.when_done(check)
        return stored.then(lambda _: number)

    def add_partitions(self, number: int, places: Iterable[tuple[Topic, int]]) -> Pending[None]:
        """Say where a transaction is going to write.

        Returns:
            Resolves once that lasts; fails with MetadataFailed.

        Raises:
            TransactionNotFound, InvalidTransactionState, TransactionTooLarge.
        """
        return self.add(self._open_one(number), places)

    def add(
        self, transaction: Transaction, places: Iterable[tuple[Topic, int]], *, group: str | None = None
    ) -> Pending[None]:
        """Say where an open transaction is going to write, and of which group it is going to commit offsets.

        Returns:
            As `add_partitions`.

        Raises:
            TransactionTooLarge.
        """
        wanted = {}
        for topic, index in places:
            place = topic.id, index
            if place not in transaction.partitions:
                one = transaction.adding.get(place)
                wanted[place] = topic.partitions[index].log.end_offset if one is None else one.offset
        groups = transaction.groups if group is None else transaction.groups | {group}
        self._check_size(transaction, wanted, groups)
        if not wanted and groups == transaction.groups:
            return settled(None)
        transaction.groups = groups
        asked: Pending[None] = Pending()
        for place, offset in wanted.items():
            transaction.adding[place] = Adding(offset, asked)
        stored = self._put(transaction)

        def done(outcome: Pending[None]) -> None:
            for place, offset in wanted.items():
                adding = transaction.adding.get(place)
                if adding is not None and adding.stored is asked:
                    del transaction.adding[place]
                if not outcome.failed:
                    transaction.partitions.setdefault(place, offset)
            try:
                asked.resolve(outcome.result())
            except MillstreamError as error:
                asked.fail(error)

        stored.when_done(done)
        return asked

    @staticmethod
    def _check_size(transaction: Transaction, wanted: Mapping[Place, int], groups: set[str]) -> None:
        if len(transaction.partitions) + len(transaction.adding.keys() | wanted.keys()) > _PARTS_MAX:
            raise TransactionTooLarge(f"a transaction writes to {_PARTS_MAX} partitions at most")
        if len(groups) > _GROUPS_MAX:
            raise TransactionTooLarge(f"a transaction commits offsets of {_GROUPS_MAX} groups at most")

    def commit_offsets(
        self, transaction: Transaction, group_id: str, offsets: Mapping[Place, CommittedOffset]
    ) -> Pending[None]:
        """Commit offsets of a group in an open transaction.

        Returns:
            Resolves once that lasts, so that the decision cannot miss them; fails with MetadataFailed.

        Raises:
            TransactionTooLarge.
        """
        self._check_size(transaction, {}, transaction.groups | {group_id})
        self.pending_offsets.check_room(transaction, group_id, offsets)
        transaction.groups = transaction.groups | {group_id}
        change = self.pending_offsets.put(transaction, group_id, offsets)
        return self._documents.change([self._change(transaction), change])

    def add_subscriptions(self, number: int, places: Iterable[SubscriptionPlace]) -> Pending[None]:
        """Say where a transaction is going to acknowledge; as `add_partitions`."""
        transaction = self._open_one(number)
        subscriptions = transaction.subscriptions | set(places)
        if len(subscriptions) > _PARTS_MAX:
            raise TransactionTooLarge(f"a transaction acknowledges on {_PARTS_MAX} subscriptions at most")
        transaction.subscriptions = subscriptions
        return self._put(transaction)

    def check_writer(self, number: int, topic: Topic, index: int) -> None:
        """Check that a transaction may write to a partition now.

        Raises:
            TransactionNotFound, InvalidTransactionState: it may not.
        """
        if (topic.id, index) not in self._open_one(number).partitions:
            raise NotInTransaction(f"the partition {index} was not added to the transaction {number}")

    def wrote(self, number: int, partition: Partition, start: int, end: int) -> None:
        """A transaction that was checked has written the offsets from start to before end."""
        transactions_of(partition).wrote(number, start, end)

    @staticmethod
    def wrote_for_owner(
        transaction: Transaction,
        place: Place,
        partition: Partition,
        offsets: tuple[int, int],
        durable: Pending[None] | None,
    ) -> None:
        """A transaction that has an owner has written the offsets from the first to before the second.

        Args:
            durable: what its writer waits for; where that is nothing, a commit sees to it that it lasts.
        """
        transaction.writing[place] = durable
        transactions_of(partition).wrote(transaction.number, *offsets, shown=True)

    def acknowledge(
        self, number: int, subscription: Subscription, acknowledgements: Iterable[tuple[int, int | None]]
    ) -> Pending[None]:
        """Acknowledge frames, or records of frames, in a transaction: all of them, or none.

        Args:
            acknowledgements: as for `Consumer.acknowledge`.

        Returns:
            Resolves once that lasts; fails with MetadataFailed.

        Raises:
            TransactionNotFound, InvalidTransactionState: it may not acknowledge there.
            AcknowledgementConflict: see `Subscription.acknowledge_in`.
        """
        self._check_acknowledger(number, subscription)
        subscription.acknowledge_in(number, acknowledgements)
        return self._acknowledged.keep(number, subscription)

    def acknowledge_cumulative(
        self, number: int, subscription: Subscription, base_offset: int, wanted: int | None
    ) -> Pending[None]:
        """Acknowledge everything up to a frame in a transaction; as `acknowledge`. Raises KindMismatch as well."""
        self._check_acknowledger(number, subscription)
        subscription.acknowledge_cumulative_in(number, base_offset, wanted)
        return self._acknowledged.keep(number, subscription)

    def _check_acknowledger(self, number: int, subscription: Subscription) -> None:
        place = SubscriptionPlace(*subscription.place, subscription.name)
        if place not in self._open_one(number).subscriptions:
            raise InvalidTransactionState(f"{subscription.name} was not added to the transaction {number}")

    # The end

    def end(self, number: int, *, commit: bool) -> Pending[None]:
        """Commit or abort a transaction. To ask for the same again is answered in the same way.

        Returns:
            Resolves once the decision lasts, and everybody sees what follows from it; fails with MetadataFailed, and
            then the transaction is open as before.

        Raises:
            TransactionNotFound: there is none, or it ended too long ago.
            InvalidTransactionState: it is decided otherwise.
        """
        transaction = self.find(number)
        state = transaction.state
        if state.is_decided:
            if state.commits is not commit:
                raise InvalidTransactionState(f"the transaction {number} is {state.value}")
            return transaction.ending or settled(None)
        return self.decide(transaction, commit=commit)

    def decide(
        self, transaction: Transaction, *, commit: bool, changes: Sequence[DocumentChange] = ()
    ) -> Pending[None]:
        """Decide an open transaction.

        Args:
            changes: of documents, stored together with the decision.

        Returns:
            As `end`.
        """
        self._stop_timer(transaction)
        transaction.state = TransactionState.COMMITTING if commit else TransactionState.ABORTING

        def take_back(outcome: Pending[Callable[[], None]]) -> None:
            if outcome.failed:
                transaction.state, transaction.ending = TransactionState.OPEN, None
                self._set_timer(transaction)

        # What is committed is not lost any more, so that it must be on the disk before.
        flushed = self._flushed(transaction) if commit else settled(None)
        ended = flushed.chain(lambda _: self._store_decision(transaction, changes))
        ended.when_done(take_back)
        transaction.ending = ended.then(lambda apply: self._applied(transaction, apply))
        return transaction.ending

    def _flushed(self, transaction: Transaction) -> Pending[None]:
        """Resolves once all that a transaction with an owner has written is on the disk; fails with LogFailed."""
        waiting: list[Pending[None]] = []
        for place, flush in transaction.writing.items():
            if flush is None:
                partition = self._partition(place)
                flush = partition.durable() if partition is not None else None
            if flush is not None:
                waiting.append(flush)

        def check(done: Sequence[Pending[None]]) -> None:
            for one in done:
                one.result()

        return gather(waiting).then(check)

    def _store_decision(
        self, transaction: Transaction, changes: Sequence[DocumentChange]
    ) -> Pending[Callable[[], None]]:
        """Store a decision with what follows from it; gives what is to be done in memory then."""
        commit = transaction.state.commits
        documents = [*changes, self._change(transaction)]
        if transaction.owner is not None:
            documents[-1] = (TRANSACTION_DOCUMENT, str(transaction.number), None)
        if not commit:
            documents += self.aborted.changes(transaction)
        now_ms = self._runtime.now_ms()
        settling, also, apply = self.pending_offsets.settle(transaction, commit=commit, now_ms=now_ms)
        return self._documents.change([*documents, *settling], also).then(lambda _: apply)

    def _change(self, transaction: Transaction) -> DocumentChange:
        return TRANSACTION_DOCUMENT, str(transaction.number), transaction.document()

    def _put(self, transaction: Transaction) -> Pending[None]:
        return self._documents.change([self._change(transaction)])

    def _applied(self, transaction: Transaction, apply: Callable[[], None]) -> None:
        apply()
        self._apply(transaction)

    def _apply(self, transaction: Transaction) -> None:
        """Do in memory what follows from a decision that lasts, and begin to make it last."""
        number, commit = transaction.number, transaction.state.commits
        transaction.state = TransactionState.COMMITTED if commit else TransactionState.ABORTED
        transaction.ended_ms = self._runtime.monotonic_ms()
        lasting: list[Pending[None]] = []
        for place in transaction.partitions:
            partition = self._partition(place)
            if partition is None or partition.transactions is None:
                continue
            written = partition.transactions.end(number, commit=commit)
            if written is None or commit:
                continue
            if not self.aborted.is_stored(place, number):  # it was decided by a server that did this afterwards
                lasting.append(self.aborted.put(place, transaction, written))
            self.aborted.note(place, transaction)
        if transaction.owner is not None:
            del self._of[number]
            return
        for subscribed in transaction.subscriptions:
            subscription = self._subscription(subscribed)
            if subscription is not None:
                subscription.end_in(number, commit=commit)
                lasting.append((subscription.persist() or settled(None)) if commit else settled(None))

        def drop(done: Iterable[Pending[None]]) -> bool:
            if any(one.failed for one in done):
                _log.warning("what follows from transaction=%d is not stored: the next start does it again", number)
                return False
            for place in transaction.subscriptions:
                self._acknowledged.drop(number, place)
            return True

        transaction.settling = gather(lasting).then(drop)
        self._ended.append(transaction)
        self._forget_ended()

    def _forget_ended(self) -> None:
        """Forget transactions that were ended long ago, once nothing is left to do for them."""
        before_ms = self._runtime.monotonic_ms() - _ENDED_MS
        ended = self._ended
        while ended and (len(ended) > _ENDED_MAX or ended[0].ended_ms < before_ms):
            settling = ended[0].settling
            if settling is None or not settling.done:
                return
            transaction = ended.popleft()
            # One of which something could not be stored stays in the store, for the next start.
            if settling.result():
                self._documents.delete(TRANSACTION_DOCUMENT, str(transaction.number))
            del self._of[transaction.number]

    # Time

    def _set_timer(self, transaction: Transaction) -> None:
        delay_ms = max(transaction.deadline_ms - self._runtime.now_ms(), 0)
        transaction.timer = self._runtime.call_later(delay_ms / 1000, lambda: self._time_out(transaction))

    @staticmethod
    def _stop_timer(transaction: Transaction) -> None:
        if transaction.timer is not None:
            transaction.timer.cancel()
            transaction.timer = None

    def _time_out(self, transaction: Transaction) -> None:
        transaction.timer = None
        if not transaction.state.is_decided and transaction.number in self._of:
            _log.info("transaction timed out transaction=%d", transaction.number)
            # If the decision cannot be stored, it is tried again then.
            transaction.deadline_ms = self._runtime.now_ms() + _RETRY_MS
            if transaction.owner is None:
                self.end(transaction.number, commit=False)
                return
            self.time_out(transaction)
            if not transaction.state.is_decided:
                self._set_timer(transaction)

    # Upkeep and the end

    def expire(self) -> None:
        """Forget what is not needed any more: transactions ended long ago, aborted records that the log has not."""
        self._forget_ended()
        self.aborted.expire()

    def forget_topic(self, topic_id: UUID, first: int = 0) -> None:
        """Drop what lasts of a topic that is gone, or of its partitions from one on; no transaction is there now."""
        self.aborted.forget_topic(topic_id, first)
        for transaction in self._of.values():
            written = [place for place in transaction.partitions if place[0] == topic_id and place[1] >= first]
            subscribed = {
                one for one in transaction.subscriptions if one.topic_id == topic_id and one.partition >= first
            }
            for place in written:
                del transaction.partitions[place]
                transaction.writing.pop(place, None)
            transaction.subscriptions -= subscribed
            for one in subscribed:
                self._acknowledged.drop(transaction.number, one)
            self.pending_offsets.forget_topic(transaction, topic_id, first)
            if (written or subscribed) and not (transaction.owner is not None and transaction.state.is_decided):
                self._put(transaction)

    def close(self) -> None:
        """Let no timer run any more: the server stops."""
        for transaction in self._of.values():
            self._stop_timer(transaction)
