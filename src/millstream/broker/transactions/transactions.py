"""The transactions of the server: beginning them, what belongs to them, and ending them.

What is answered lasts. A transaction is one document, written when it begins, when something is added to it, and when
it is decided; what follows from a decision is done at once, in memory, and made to last behind the answer: a start
does it again for every decided transaction that is still known. Committing costs nothing in the partitions: records
that no known transaction has written are simply there. Of an aborted transaction, the offsets are remembered for as
long as the log has them.

What an open transaction has written is not stored anywhere but in the log, whose frames name their transaction. A
start looks for them from the place on where the log ended when the partition was added.
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from millstream.broker.documents import Documents
from millstream.broker.partition import Partition
from millstream.broker.subscriptions import AcknowledgementConflict, Subscription, Subscriptions
from millstream.broker.subscriptions.ranges import RangesDamaged
from millstream.broker.topics import Topic, Topics
from millstream.broker.transactions.acknowledgements import (
    StoredAcknowledgements,
    decode_document,
    encode_document,
)
from millstream.broker.transactions.errors import (
    InvalidTransactionState,
    InvalidTransactionTimeout,
    TooManyTransactions,
    TransactionNotFound,
    TransactionsDisabled,
)
from millstream.broker.transactions.numbers import TransactionNumbers
from millstream.broker.transactions.partition import PartitionTransactions
from millstream.broker.transactions.transaction import Place, SubscriptionPlace, Transaction, TransactionState
from millstream.model.errors import MillstreamError
from millstream.model.frame import read_frame_header, transaction_of
from millstream.model.pending import Pending, gather, settled
from millstream.model.runtime import Runtime

__all__ = ["TIMEOUT_MS_MAX", "Transactions"]

_log = logging.getLogger(__name__)
TRANSACTION_DOCUMENT: Final = "transaction"
ABORTED_DOCUMENT: Final = "transaction-aborted"
TIMEOUT_MS_MAX: Final = 24 * 3600 * 1000
"""The longest that a transaction may be open: meanwhile nobody can read what comes behind its first record."""
_OPEN_MAX: Final = 50_000
"""Transactions that may be open at a time: each is about 1 KB in memory, and a timer."""
_PARTS_MAX: Final = 10_000
"""Partitions, and subscriptions, of one transaction: its document is written anew with each."""
_ENDED_MAX: Final = 10_000
_ENDED_MS: Final = 15 * 60 * 1000
"""Ended transactions that are remembered, and for how long: a client that lost its connection asks again."""
_RETRY_MS: Final = 1000
"""When it is tried again to abort a transaction in time, after the store has failed."""
_READ_BYTES: Final = 1024 * 1024


class Transactions:
    """The coordinator.

    Args:
        runtime: time and timers.
        documents: where transactions last.
        topics: those that were loaded; transactions that were under way take their places in them again.
        subscriptions: the same.
        enabled: whether new ones may begin.
    """

    def __init__(
        self, runtime: Runtime, documents: Documents, topics: Topics, subscriptions: Subscriptions, *, enabled: bool
    ) -> None:
        self._runtime = runtime
        self._documents = documents
        self._topics = topics
        self._subscriptions = subscriptions
        self._enabled = enabled
        self._numbers = TransactionNumbers(documents)
        self._acknowledged = StoredAcknowledgements(documents)
        self._of: dict[int, Transaction] = {}
        self._ended: deque[Transaction] = deque()
        self._load()

    @property
    def open(self) -> list[Transaction]:
        """The transactions that are not decided."""
        return [one for one in self._of.values() if not one.state.is_decided]

    # The start

    def _load(self) -> None:
        for key, document in self._documents.of_kind(ABORTED_DOCUMENT).items():
            self._load_aborted(key, document)
        for key, document in self._documents.of_kind(TRANSACTION_DOCUMENT).items():
            transaction = Transaction.load(int(key), document)
            self._of[transaction.number] = transaction
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

    def _load_aborted(self, key: str, document: Mapping[str, object]) -> None:
        topic_id, index, number = key.split("/")
        partition = self._partition((UUID(topic_id), int(index)))
        if partition is None:
            return
        try:
            self._transactional(partition).abort(decode_document(document))
        except (RangesDamaged, ValueError) as error:
            _log.error("aborted transaction damaged: its records show transaction=%s reason=%s", number, error)

    def _find_undecided(self) -> None:
        """Find in the logs what transactions have written that are open, or about to be aborted."""
        starts: dict[Place, int] = {}
        for transaction in self._of.values():
            if transaction.state.commits:
                continue
            for place, offset in transaction.partitions.items():
                if self._aborted_key(place, transaction.number) in self._documents.of_kind(ABORTED_DOCUMENT):
                    continue
                partition = self._partition(place)
                if partition is not None:
                    # A loss of power may have taken the end of the log, and what comes then stands before the offset.
                    offset = transaction.partitions[place] = min(offset, partition.log.end_offset)
                    starts[place] = min(offset, starts.get(place, offset))
        for place, offset in starts.items():
            self._scan(place, offset)

    def _scan(self, place: Place, offset: int) -> None:
        partition = self._partition(place)
        assert partition is not None
        log = partition.log
        offset = max(offset, log.start_offset)
        while offset < log.end_offset:
            data, behind = log.read(offset, _READ_BYTES)
            position = 0
            while position < len(data):
                header = read_frame_header(data, position)
                position += header.size
                number = transaction_of(header)
                transaction = self._of.get(number) if number is not None else None
                if transaction is not None and place in transaction.partitions and not transaction.state.commits:
                    self._transactional(partition).wrote(
                        transaction.number, header.base_offset, header.last_offset + 1
                    )
            if behind <= offset:
                return
            offset = behind

    # Finding

    def find(self, number: int) -> Transaction:
        """A transaction that is open, or was ended a while ago. Raises TransactionNotFound."""
        transaction = self._of.get(number)
        if transaction is None:
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

    @staticmethod
    def _transactional(partition: Partition) -> PartitionTransactions:
        if partition.transactions is None:
            partition.transactions = PartitionTransactions(partition)
        return partition.transactions

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
        if len(self._of) - len(self._ended) >= _OPEN_MAX:
            raise TooManyTransactions(f"{_OPEN_MAX} transactions are open")
        return self._numbers.take().chain(lambda number: self._begin(number, timeout_ms))

    def _begin(self, number: int, timeout_ms: int) -> Pending[int]:
        transaction = Transaction(number, self._runtime.now_ms() + timeout_ms)
        self._of[number] = transaction
        self._set_timer(transaction)
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
            TransactionNotFound, InvalidTransactionState, TooManyTransactions.
        """
        transaction = self._open_one(number)
        added = {
            (topic.id, index): topic.partitions[index].log.end_offset
            for topic, index in places
            if (topic.id, index) not in transaction.partitions
        }
        if len(transaction.partitions) + len(added) > _PARTS_MAX:
            raise TooManyTransactions(f"a transaction writes to {_PARTS_MAX} partitions at most")
        transaction.partitions.update(added)
        return self._put(transaction)

    def add_subscriptions(self, number: int, places: Iterable[SubscriptionPlace]) -> Pending[None]:
        """Say where a transaction is going to acknowledge; as `add_partitions`."""
        transaction = self._open_one(number)
        subscriptions = transaction.subscriptions | set(places)
        if len(subscriptions) > _PARTS_MAX:
            raise TooManyTransactions(f"a transaction acknowledges on {_PARTS_MAX} subscriptions at most")
        transaction.subscriptions = subscriptions
        return self._put(transaction)

    def check_writer(self, number: int, topic: Topic, index: int) -> None:
        """Check that a transaction may write to a partition now.

        Raises:
            TransactionNotFound, InvalidTransactionState: it may not.
        """
        if (topic.id, index) not in self._open_one(number).partitions:
            raise InvalidTransactionState(f"the partition {index} was not added to the transaction {number}")

    def wrote(self, number: int, partition: Partition, start: int, end: int) -> None:
        """A transaction that was checked has written the offsets from start to before end."""
        self._transactional(partition).wrote(number, start, end)

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
        self._stop_timer(transaction)
        transaction.state = TransactionState.COMMITTING if commit else TransactionState.ABORTING

        def take_back(outcome: Pending[None]) -> None:
            try:
                outcome.result()
            except MillstreamError:
                transaction.state, transaction.ending = TransactionState.OPEN, None
                self._set_timer(transaction)

        decided = self._put(transaction)
        decided.when_done(take_back)
        transaction.ending = decided.then(lambda _: self._apply(transaction))
        return transaction.ending

    def _put(self, transaction: Transaction) -> Pending[None]:
        return self._documents.put(TRANSACTION_DOCUMENT, str(transaction.number), transaction.document())

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
            if written is not None and not commit:
                key = self._aborted_key(place, number)
                lasting.append(self._documents.put(ABORTED_DOCUMENT, key, encode_document(written)))
        for subscribed in transaction.subscriptions:
            subscription = self._subscription(subscribed)
            if subscription is not None:
                subscription.end_in(number, commit=commit)
                lasting.append((subscription.persist() or settled(None)) if commit else settled(None))

        def drop(done: Iterable[Pending[None]]) -> bool:
            if any(_failed(one) for one in done):
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
            self.end(transaction.number, commit=False)

    # Upkeep and the end

    def expire(self) -> None:
        """Forget what is not needed any more: transactions ended long ago, aborted records that the log has not."""
        self._forget_ended()
        for key in list(self._documents.of_kind(ABORTED_DOCUMENT)):
            topic_id, index, _ = key.split("/")
            partition = self._partition((UUID(topic_id), int(index)))
            if partition is None:
                continue
            start_offset = partition.log.start_offset
            document = self._documents.of_kind(ABORTED_DOCUMENT)[key]
            try:
                gone = decode_document(document).last_end <= start_offset
            except (RangesDamaged, ValueError):
                continue
            if gone:
                self._documents.delete(ABORTED_DOCUMENT, key)
            if partition.transactions is not None:
                partition.transactions.forget_before(start_offset)

    def forget_topic(self, topic_id: UUID, first: int = 0) -> None:
        """Drop what lasts of a topic that is gone, or of its partitions from one on; no transaction is there now."""
        for key in list(self._documents.of_kind(ABORTED_DOCUMENT)):
            owner, index, _ = key.split("/")
            if owner == str(topic_id) and int(index) >= first:
                self._documents.delete(ABORTED_DOCUMENT, key)
        for transaction in self._of.values():
            written = [place for place in transaction.partitions if place[0] == topic_id and place[1] >= first]
            subscribed = {
                one for one in transaction.subscriptions if one.topic_id == topic_id and one.partition >= first
            }
            for place in written:
                del transaction.partitions[place]
            transaction.subscriptions -= subscribed
            for one in subscribed:
                self._acknowledged.drop(transaction.number, one)
            if written or subscribed:
                self._put(transaction)

    def close(self) -> None:
        """Let no timer run any more: the server stops."""
        for transaction in self._of.values():
            self._stop_timer(transaction)

    @staticmethod
    def _aborted_key(place: Place, number: int) -> str:
        return f"{place[0]}/{place[1]}/{number}"


def _failed(pending: Pending[None]) -> bool:
    try:
        pending.result()
    except MillstreamError:
        return True
    return False
