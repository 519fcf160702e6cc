"""Transactions of Kafka's: begun and written to by a task, ended by the driver from a process of its own.

They speak the protocol as it was before KIP-890 (partitions are added before they are written to, and an epoch lasts
until the transactional id is used again), which brokers since Kafka 3 take, whatever they can do beyond it. The end
of a transaction may be asked for twice, and from anywhere: it is known by its producer id and epoch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from millstream.spark.access import check_access
from millstream.spark.connections import error_name
from millstream.spark.errors import BadOption, BrokerUnreachable, TransactionLost, WriteRefused
from millstream.spark.write.coordinators import BUSY, Coordinators, Kind
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from millstream.wire.kafka.messages.end_txn import END_TXN, EndTxnRequest
from millstream.wire.kafka.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from millstream.wire.kafka.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest

__all__ = ["WHY_LOST", "Ended", "Slot", "Transaction", "Transactions"]

_INIT_VERSION: Final = 4
_ADD_VERSION: Final = 3
_END_VERSION: Final = 3
_LIST_VERSION: Final = 0
_INT32_MAX: Final = 2**31 - 1
_WINDOW: Final = 50
"""Ends of transactions that are asked for before the first is answered."""
_ONGOING: Final = "Ongoing"


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """Whose transaction it is. Slots are used again by the next micro-batch, so that their number stays small.

    Args:
        partition: of Spark's, the number of the task.
        attempt: the number of the task's attempt.
    """

    partition: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction.

    Args:
        slot: whose it is.
        producer_id, epoch: by which the broker knows it.
    """

    slot: Slot
    producer_id: int
    epoch: int


class Ended(Enum):
    """How the end of a transaction went."""

    AS_ASKED = "as asked, now or before"
    ABORTED = "the broker or another producer had aborted it"
    FORGOTTEN = "the broker does not know it any more"


class Transactions:
    """The transactions of one application at one cluster.

    Args:
        coordinators: of the cluster.
        prefix: of the transactional ids.
    """

    def __init__(self, coordinators: Coordinators, prefix: str) -> None:
        self._coordinators = coordinators
        self._prefix = prefix

    def name(self, slot: Slot) -> str:
        """The transactional id of a slot."""
        return f"{self._prefix}-{slot.partition}-{slot.attempt}"

    def begin(self, slot: Slot, timeout_ms: int) -> Transaction:
        """Begin a transaction; one of the same slot that is still going on is aborted.

        Args:
            slot: whose it is.
            timeout_ms: the broker aborts it when it is not ended for so long.

        Raises:
            BadOption: the broker allows no transactions of such a length.
            WriteRefused: the broker takes no transactions.
            BrokerUnreachable: it does not answer.
        """
        return self._begin(slot, self.name(slot), timeout_ms)

    def _begin(self, slot: Slot, name: str, timeout_ms: int) -> Transaction:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        answer = self._coordinators.ask(
            Kind.TRANSACTION, name, INIT_PRODUCER_ID, _INIT_VERSION, request, lambda answer: [answer.error_code]
        )
        if answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise BadOption(
                f"kafka.transaction.timeout.ms: the broker allows no transactions of {timeout_ms} ms; take less, or "
                "raise its setting transaction.max.timeout.ms"
            )
        check_access(answer.error_code, "WRITE", transactional_id=name)
        if answer.error_code:
            raise WriteRefused(
                f"the broker does not begin a transaction: {error_name(answer.error_code)}; with the option "
                "delivery=at-least-once none is needed"
            )
        return Transaction(slot, answer.producer_id, answer.producer_epoch)

    def plain_producer(self) -> tuple[int, int]:
        """A producer id and its epoch for batches that are in no transaction. Raises WriteRefused."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_INT32_MAX)
        answer = self._coordinators.ask(
            Kind.TRANSACTION, "", INIT_PRODUCER_ID, _INIT_VERSION, request, lambda answer: [answer.error_code]
        )
        check_access(answer.error_code, "IDEMPOTENT_WRITE")
        if answer.error_code:
            raise WriteRefused(f"the broker gives no producer id: {error_name(answer.error_code)}")
        return answer.producer_id, answer.producer_epoch

    def add(self, transaction: Transaction, places: Iterable[tuple[str, int]]) -> None:
        """Say which partitions are about to be written to.

        Raises:
            TransactionLost: the transaction has ended.
            WriteRefused: the broker does not take one of them.
        """
        by_topic: dict[str, list[int]] = {}
        for topic, partition in places:
            by_topic.setdefault(topic, []).append(partition)
        name = self.name(transaction.slot)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=transaction.producer_id,
            v3_and_below_producer_epoch=transaction.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=each, partitions=by_topic[each]) for each in by_topic],
        )
        answer = self._coordinators.ask(
            Kind.TRANSACTION,
            name,
            ADD_PARTITIONS_TO_TXN,
            _ADD_VERSION,
            request,
            lambda answer: (
                part.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for part in topic.results_by_partition
            ),
        )
        for topic in answer.results_by_topic_v3_and_below:
            for part in topic.results_by_partition:
                code = part.partition_error_code
                check_access(code, "WRITE", topic=topic.name, transactional_id=name)
                if code in _LOST:
                    raise TransactionLost(f"the transaction {name!r} has ended: {error_name(code)}; {WHY_LOST}")
                if code and code != ErrorCode.OPERATION_NOT_ATTEMPTED:
                    raise WriteRefused(
                        f"the broker does not let topic {topic.name!r} partition {part.partition_index} be written "
                        f"to in a transaction: {error_name(code)}"
                    )

    def end(self, transaction: Transaction, *, commit: bool) -> Ended:
        """Commit or abort a transaction; see `end_all`."""
        name = self.name(transaction.slot)
        answer = self._coordinators.ask(
            Kind.TRANSACTION,
            name,
            END_TXN,
            _END_VERSION,
            self._end_request(transaction, commit=commit),
            lambda answer: [answer.error_code],
        )
        return self._ended(name, answer.error_code)

    def end_all(self, transactions: Sequence[Transaction], *, commit: bool) -> list[Ended]:
        """Commit or abort some transactions, in this order.

        Returns:
            How each went.

        Raises:
            BrokerUnreachable, WriteRefused: the broker cannot be brought to answer. Some may have ended.
        """
        results: list[Ended] = []
        for begin in range(0, len(transactions), _WINDOW):
            results += self._end_window(transactions[begin : begin + _WINDOW], commit=commit)
        return results

    def _end_window(self, transactions: Sequence[Transaction], *, commit: bool) -> list[Ended]:
        """End some, asking for all before the first answer comes; one by one what does not work so."""
        connections = self._coordinators.connections
        sent: list[tuple[str, int] | None] = []
        for transaction in transactions:
            try:
                server = self._coordinators.address(Kind.TRANSACTION, self.name(transaction.slot))
                request = self._end_request(transaction, commit=commit)
                sent.append((server, connections.send(server, END_TXN, _END_VERSION, request)))
            except BrokerUnreachable:
                sent.append(None)
        codes: list[int | None] = []
        for one in sent:
            try:
                codes.append(
                    None if one is None else connections.receive(one[0], END_TXN, _END_VERSION, one[1]).error_code
                )
            except BrokerUnreachable:
                codes.append(None)
        return [
            self.end(transaction, commit=commit)
            if code is None or code in BUSY
            else self._ended(self.name(transaction.slot), code)
            for transaction, code in zip(transactions, codes, strict=True)
        ]

    def _end_request(self, transaction: Transaction, *, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.name(transaction.slot),
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            committed=commit,
        )

    def _ended(self, name: str, code: int) -> Ended:
        if not code:
            return Ended.AS_ASKED
        if code in _LOST:
            return Ended.ABORTED
        if code == ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            return Ended.FORGOTTEN
        check_access(code, "WRITE", transactional_id=name)
        raise WriteRefused(f"the broker does not end the transaction {name!r}: {error_name(code)}")

    def sweep(self, timeout_ms: int) -> int:
        """Abort what attempts have left behind that were killed, so that it keeps no reader waiting.

        To be called when no transaction of the application is to be committed any more. Brokers that cannot list
        transactions (before Kafka 3.0) abort these at their timeout.

        Returns:
            How many there were.
        """
        left = {name for name in self._ongoing() if self._slot(name) is not None}
        for name in left:
            self._begin(Slot(0, 0), name, timeout_ms)
        return len(left)

    def _ongoing(self) -> set[str]:
        connections = self._coordinators.connections
        found: set[str] = set()
        # Each broker knows those that it coordinates, and one broker knows all brokers.
        for server in self._coordinators.brokers():
            try:
                answer = connections.ask(
                    server, LIST_TRANSACTIONS, _LIST_VERSION, ListTransactionsRequest(state_filters=[_ONGOING])
                )
            except BrokerUnreachable:
                continue
            if not answer.error_code:
                found |= {one.transactional_id for one in answer.transaction_states}
        return found

    def _slot(self, name: str) -> Slot | None:
        """The slot of a transactional id; None if it is not one of this application's."""
        if not name.startswith(f"{self._prefix}-"):
            return None
        partition, _, attempt = name[len(self._prefix) + 1 :].partition("-")
        return Slot(int(partition), int(attempt)) if partition.isdecimal() and attempt.isdecimal() else None


_LOST: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
WHY_LOST: Final = "it took longer than kafka.transaction.timeout.ms, or another query has the same application id"
"""How a transaction ends that nobody has ended."""
