"""Producers with a transactional id: each has one transaction at a time, and whoever comes last is the producer.

A producer is called by its id and epoch. A new one that takes the name over gets the next epoch, which fences the one
before, and the transaction that is open then is aborted. A transaction that times out ends in the same way. Clients
that ask for it get the next epoch with the end of each transaction, so that nothing of theirs that was delayed can
become a part of the next one (KIP-890).

One document for each, stored together with the decision on a transaction, so that the end of one can be asked for
again from anywhere and after any crash: the answer is the same.

Source of the rules: KIP-98, KIP-360, KIP-588, KIP-890.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from millstream.broker.documents import Documents
from millstream.broker.offsets import Place
from millstream.broker.partition import Partition
from millstream.broker.producer_ids import ProducerIds
from millstream.broker.settings import BrokerSettings
from millstream.broker.topics import Topic
from millstream.broker.transactions.errors import (
    InvalidTransactionalId,
    InvalidTransactionState,
    InvalidTransactionTimeout,
    NotInTransaction,
    StaleTransactionalEpoch,
    TransactionChanging,
    UnknownTransactionalId,
)
from millstream.broker.transactions.producer import TransactionalProducer
from millstream.broker.transactions.transaction import ProducerEpoch, Transaction
from millstream.broker.transactions.transactions import Transactions
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime
from millstream.storage.metadata import CommittedOffset

__all__ = ["TransactionalProducers"]

_log = logging.getLogger(__name__)
PRODUCER_DOCUMENT: Final = "transactional-id"
_ID_BYTES_MAX: Final = 2000
"""Bytes of a transactional id: what databases take as a key. Those in use have some hundred."""
_PRODUCERS_MAX: Final = 100_000
"""Transactional ids that are remembered, each about 1 KB: beyond, those that have rested longest are forgotten."""
_EPOCH_MAX: Final = 32766
"""The last epoch of a producer id, as in Apache Kafka; the next is the first of another id."""


class TransactionalProducers:
    """All of them.

    Args:
        runtime: time.
        documents: where they last.
        transactions: the coordinator of all transactions.
        producer_ids: gives out ids.
        settings: the server's.
    """

    def __init__(
        self,
        runtime: Runtime,
        documents: Documents,
        transactions: Transactions,
        producer_ids: ProducerIds,
        settings: BrokerSettings,
    ) -> None:
        self._runtime = runtime
        self._documents = documents
        self._transactions = transactions
        self._producer_ids = producer_ids
        self._settings = settings
        # The one that changed least recently comes first.
        self._of: dict[str, TransactionalProducer] = {}
        self._by_id: dict[int, TransactionalProducer] = {}
        transactions.time_out = self._time_out
        self._load()

    def _load(self) -> None:
        stored = self._documents.of_kind(PRODUCER_DOCUMENT)
        loaded = [TransactionalProducer.load(name, document) for name, document in stored.items()]
        for producer in sorted(loaded, key=lambda one: one.changed_ms):
            self._note(producer)
        for transaction in self._transactions.owned():
            owner = transaction.owner
            owned = self._of.get(owner.transactional_id) if owner is not None else None
            if owner is None or owned is None or owned.identity != owner.producer:
                _log.error("a transaction whose producer is not known is aborted transaction=%d", transaction.number)
                self._transactions.decide(transaction, commit=False)
            else:
                owned.transaction = transaction

    def __iter__(self) -> Iterator[TransactionalProducer]:
        return iter(list(self._of.values()))

    def find(self, transactional_id: str) -> TransactionalProducer | None:
        """The producer of a name, None if it has none."""
        return self._of.get(transactional_id)

    def with_id(self, producer_id: int) -> TransactionalProducer | None:
        """The one that a producer id was given out to; None if there is none."""
        return self._by_id.get(producer_id)

    # Names and epochs

    def open(
        self, transactional_id: str, timeout_ms: int, expected: ProducerEpoch | None = None
    ) -> Pending[ProducerEpoch]:
        """Take over a transactional id. What is open under it is aborted, and its producer until now is fenced.

        Args:
            timeout_ms: how long a transaction may be open, from 1 to transaction.max.timeout.ms.
            expected: what the producer was called until now, if it is the same that goes on.

        Returns:
            Resolves with its new name once that lasts; fails with MetadataFailed.

        Raises:
            InvalidTransactionalId, InvalidTransactionTimeout.
            StaleTransactionalEpoch: it is no longer the one that is expected.
            TransactionChanging.
        """
        if not 0 < len(transactional_id.encode()) <= _ID_BYTES_MAX:
            raise InvalidTransactionalId(f"a transactional id has 1 to {_ID_BYTES_MAX} bytes")
        high_ms = self._settings.transaction_timeout_max_ms
        if not 0 < timeout_ms <= high_ms:
            raise InvalidTransactionTimeout(f"a transaction is open for 1 to {high_ms} ms, not {timeout_ms}")
        producer = self._of.get(transactional_id)
        if producer is None:
            return self._create(transactional_id, timeout_ms)
        self._check_unchanging(producer)
        if expected is not None and expected != producer.identity:
            if expected == producer.before:
                return settled(producer.identity)
            raise StaleTransactionalEpoch(f"{transactional_id} is at {producer.identity}, not {expected}")
        return self._change(producer, before=expected, committed=None, timeout_ms=timeout_ms)

    def _create(self, transactional_id: str, timeout_ms: int) -> Pending[ProducerEpoch]:
        producer = TransactionalProducer(transactional_id, ProducerEpoch(-1, -1), timeout_ms, 0)
        self._of[transactional_id] = producer
        self._make_room()
        created = self._change(producer, before=None, committed=None, timeout_ms=timeout_ms)

        def forget(outcome: Pending[ProducerEpoch]) -> None:
            if outcome.failed:
                self._of.pop(transactional_id, None)

        created.when_done(forget)
        return created

    def _next_identity(self, identity: ProducerEpoch) -> Pending[ProducerEpoch]:
        if 0 <= identity.epoch < _EPOCH_MAX:
            return settled(ProducerEpoch(identity.id, identity.epoch + 1))
        return self._producer_ids.take().then(lambda producer_id: ProducerEpoch(producer_id, 0))

    def _change(
        self,
        producer: TransactionalProducer,
        *,
        before: ProducerEpoch | None,
        committed: bool | None,
        timeout_ms: int | None = None,
        renamed: bool = True,
    ) -> Pending[ProducerEpoch]:
        """Change a producer, and end the transaction that it has.

        Args:
            before: see `TransactionalProducer`.
            committed: the same; anything but True aborts.
            timeout_ms: from now on; None for as before.
            renamed: whether it gets another epoch.
        """
        changing: Pending[ProducerEpoch] = Pending()
        producer.changing = changing
        after = self._next_identity(producer.identity) if renamed else settled(producer.identity)

        def store(identity: ProducerEpoch) -> Pending[TransactionalProducer]:
            changed = replace(
                producer,
                identity=identity,
                before=before,
                committed=committed,
                changed_ms=self._runtime.now_ms(),
                timeout_ms=producer.timeout_ms if timeout_ms is None else timeout_ms,
            )
            change = PRODUCER_DOCUMENT, producer.transactional_id, changed.document()
            transaction = producer.transaction
            if transaction is None:
                stored = self._documents.change([change])
            else:
                stored = self._transactions.decide(transaction, commit=committed is True, changes=[change])
            return stored.then(lambda _: changed)

        def finish(outcome: Pending[TransactionalProducer]) -> None:
            producer.changing = producer.ending = None
            try:
                changed = outcome.result()
            except MillstreamError as error:
                changing.fail(error)
                return
            self._by_id.pop(producer.identity.id, None)
            producer.identity, producer.before = changed.identity, changed.before
            producer.committed, producer.timeout_ms = changed.committed, changed.timeout_ms
            producer.changed_ms, producer.transaction = changed.changed_ms, None
            self._note(producer)
            changing.resolve(producer.identity)

        after.chain(store).when_done(finish)
        return changing

    def _note(self, producer: TransactionalProducer) -> None:
        self._of.pop(producer.transactional_id, None)
        self._of[producer.transactional_id] = producer
        self._by_id[producer.identity.id] = producer

    def _time_out(self, transaction: Transaction) -> None:
        owner = transaction.owner
        producer = self._of.get(owner.transactional_id) if owner is not None else None
        if producer is None or producer.transaction is not transaction:
            self._transactions.decide(transaction, commit=False)
        elif producer.changing is None:
            self._change(producer, before=None, committed=False)

    # What a producer asks for

    def _current(self, transactional_id: str, identity: ProducerEpoch) -> TransactionalProducer:
        """The producer of a name, if it is called so now, and not about to be called otherwise."""
        producer = self._of.get(transactional_id)
        if producer is None:
            raise UnknownTransactionalId(f"nobody has the transactional id {transactional_id}")
        if identity != producer.identity:
            if identity.id != producer.identity.id:
                raise UnknownTransactionalId(f"{transactional_id} has not the producer id {identity.id}")
            raise StaleTransactionalEpoch(f"{transactional_id} is at {producer.identity}, not {identity}")
        return producer

    @staticmethod
    def _check_unchanging(producer: TransactionalProducer) -> None:
        if producer.changing is not None or producer.beginning is not None:
            raise TransactionChanging(f"{producer.transactional_id} is being changed")

    def _writable(self, transactional_id: str, identity: ProducerEpoch) -> TransactionalProducer:
        producer = self._current(transactional_id, identity)
        if producer.changing is not None:
            raise TransactionChanging(f"a transaction of {transactional_id} is being ended")
        return producer

    def _transaction(self, producer: TransactionalProducer) -> Pending[Transaction]:
        """The transaction of a producer, begun if it has none."""
        if producer.transaction is not None:
            return settled(producer.transaction)
        if producer.beginning is None:
            beginning = producer.beginning = self._transactions.begin_for(producer.owner, producer.timeout_ms)

            def begun(outcome: Pending[Transaction]) -> None:
                producer.beginning = None
                if not outcome.failed:
                    producer.transaction = outcome.result()

            beginning.when_done(begun)
            return beginning
        return producer.beginning

    def add_partitions(
        self, transactional_id: str, identity: ProducerEpoch, places: Iterable[tuple[Topic, int]]
    ) -> Pending[None]:
        """Say where a producer is going to write in its transaction, which begins with this if need be.

        Returns:
            Resolves once that lasts; fails with MetadataFailed.

        Raises:
            UnknownTransactionalId, StaleTransactionalEpoch, TransactionChanging.
            TooManyTransactions, TransactionTooLarge.
        """
        wanted = list(places)
        producer = self._writable(transactional_id, identity)
        return self._transaction(producer).chain(lambda one: self._transactions.add(_open(one), wanted))

    def check_partition(self, transactional_id: str, identity: ProducerEpoch, place: Place) -> None:
        """Check that a partition was added. Raises NotInTransaction, and as `add_partitions`."""
        transaction = self._writable(transactional_id, identity).transaction
        if transaction is None or place not in transaction.partitions:
            raise NotInTransaction(f"a partition was not added to the transaction of {transactional_id}")

    def add_group(self, transactional_id: str, identity: ProducerEpoch, group_id: str) -> Pending[None]:
        """Say of which group a producer is going to commit offsets; as `add_partitions`."""
        producer = self._writable(transactional_id, identity)
        return self._transaction(producer).chain(lambda one: self._transactions.add(_open(one), (), group=group_id))

    def commit_offsets(
        self,
        transactional_id: str,
        identity: ProducerEpoch,
        group_id: str,
        offsets: Mapping[Place, CommittedOffset],
        *,
        adding: bool,
    ) -> Pending[None]:
        """Commit offsets of a group with the transaction of a producer.

        Args:
            adding: whether the group is added by this, and the transaction begun, if need be.

        Returns:
            As `add_partitions`.

        Raises:
            NotInTransaction, and as `add_partitions`.
        """
        producer = self._writable(transactional_id, identity)
        transaction = producer.transaction
        if not adding and (transaction is None or group_id not in transaction.groups):
            raise NotInTransaction(f"the group {group_id} was not added to the transaction of {transactional_id}")
        return self._transaction(producer).chain(
            lambda one: self._transactions.commit_offsets(_open(one), group_id, offsets)
        )

    def writing(
        self, transactional_id: str, identity: ProducerEpoch, topic: Topic, index: int, *, adding: bool
    ) -> Transaction | Pending[Transaction]:
        """The transaction in which a producer writes to a partition.

        Args:
            adding: whether the partition is added by this, and the transaction begun, if need be.

        Returns:
            The transaction if it may write at once. Otherwise it resolves once it may: those who wait are called in
            the order in which they came, and before anybody who comes later. They are to look at `check_open` then.

        Raises:
            NotInTransaction, and as `add_partitions`.
        """
        producer = self._writable(transactional_id, identity)
        transaction = producer.transaction
        if transaction is not None:
            place = topic.id, index
            if place in transaction.partitions:
                return transaction
            one = transaction.adding.get(place)
            if one is not None:
                return one.stored.then(lambda _: transaction)
        if not adding:
            raise NotInTransaction(f"a partition was not added to the transaction of {transactional_id}")

        def add(begun: Transaction) -> Pending[Transaction]:
            return self._transactions.add(_open(begun), [(topic, index)]).then(lambda _: begun)

        return self._transaction(producer).chain(add)

    @staticmethod
    def check_open(transaction: Transaction) -> None:
        """Raises InvalidTransactionState: it was decided meanwhile."""
        _open(transaction)

    def wrote(
        self,
        transaction: Transaction,
        topic: Topic,
        partition: Partition,
        offsets: tuple[int, int],
        durable: Pending[None] | None,
    ) -> None:
        """A producer has written to a partition in its transaction.

        Args:
            offsets: the first, and the one behind the last.
            durable: the flush that its answer waits for; None if it does not.
        """
        self._transactions.wrote_for_owner(transaction, (topic.id, partition.index), partition, offsets, durable)

    def check_plain(self, producer_id: int, place: Place) -> None:
        """Check that a producer may write outside of a transaction.

        Raises:
            InvalidTransactionState: it has a transaction that writes to the same partition.
        """
        producer = self._by_id.get(producer_id)
        if producer is not None and producer.transaction is not None and place in producer.transaction.partitions:
            raise InvalidTransactionState("a producer writes outside of its transaction")

    def end(
        self, transactional_id: str, identity: ProducerEpoch, *, commit: bool, renamed: bool
    ) -> Pending[ProducerEpoch]:
        """End the transaction of a producer. To ask for the same again is answered in the same way.

        Args:
            renamed: whether the producer is called otherwise from then on.

        Returns:
            Resolves with what it is called, once the decision lasts and everybody sees what follows from it; fails
            with MetadataFailed or LogFailed, and then the transaction is open as before.

        Raises:
            UnknownTransactionalId, StaleTransactionalEpoch, TransactionChanging.
            InvalidTransactionState: there is no transaction, or it was decided otherwise.
        """
        found = self._of.get(transactional_id)
        if found is not None and identity == found.before and found.committed is not None:
            return self._again(found, found.committed, commit=commit)
        producer = self._current(transactional_id, identity)
        if producer.changing is not None and producer.ending is commit:
            return producer.changing
        self._check_unchanging(producer)
        if producer.transaction is None:
            if not renamed and producer.committed is not None:
                return self._again(producer, producer.committed, commit=commit)
            if not renamed or commit:
                raise InvalidTransactionState(f"{transactional_id} has no transaction")
        producer_before = producer.identity if renamed else None
        producer.ending = commit
        return self._change(producer, before=producer_before, committed=commit, renamed=renamed)

    @staticmethod
    def _again(producer: TransactionalProducer, committed: bool, *, commit: bool) -> Pending[ProducerEpoch]:
        if committed is not commit:
            was = "committed" if committed else "aborted"
            raise InvalidTransactionState(f"the transaction of {producer.transactional_id} was {was}")
        return settled(producer.identity)

    # Upkeep

    def _make_room(self) -> None:
        if len(self._of) > _PRODUCERS_MAX:
            rested = next((one for one in self._of.values() if one.is_idle), None)
            if rested is not None:
                self._forget(rested)

    def _forget(self, producer: TransactionalProducer) -> None:
        del self._of[producer.transactional_id]
        self._by_id.pop(producer.identity.id, None)
        self._documents.delete(PRODUCER_DOCUMENT, producer.transactional_id)

    def expire(self) -> None:
        """Forget producers that have had no transaction for transactional.id.expiration.ms."""
        before_ms = self._runtime.now_ms() - self._settings.transactional_id_expiration_ms
        for producer in list(self._of.values()):
            if producer.changed_ms < before_ms and producer.is_idle:
                self._forget(producer)


def _open(transaction: Transaction) -> Transaction:
    if transaction.state.is_decided:
        raise InvalidTransactionState(f"the transaction is {transaction.state.value}")
    return transaction
