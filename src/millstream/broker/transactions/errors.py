"""Errors of transactions.

BrokerError
└── TransactionError
    ├── TransactionNotFound         there is none of this number, or it is forgotten
    ├── InvalidTransactionState     it is decided, so that it takes nothing any more
    │   └── NotInTransaction        what is to be written was not added to it
    ├── InvalidTransactionTimeout   a time out of bounds
    ├── TooManyTransactions         too many are open, or too much waits for them
    ├── TransactionTooLarge         too much belongs to one
    ├── TransactionsDisabled        the server is set to have none
    ├── InvalidTransactionalId      a name that no producer can have
    ├── UnknownTransactionalId      nobody has it, or it has another producer id
    ├── StaleTransactionalEpoch     another producer has taken it over, or its transaction timed out
    └── TransactionChanging         it is being ended or begun; a moment later there is an answer

An acknowledgement that another transaction stands in the way of is a `subscriptions.AcknowledgementConflict`.
"""

from millstream.broker.errors import BrokerError

__all__ = [
    "InvalidTransactionState",
    "InvalidTransactionTimeout",
    "InvalidTransactionalId",
    "NotInTransaction",
    "StaleTransactionalEpoch",
    "TooManyTransactions",
    "TransactionChanging",
    "TransactionError",
    "TransactionNotFound",
    "TransactionTooLarge",
    "TransactionsDisabled",
    "UnknownTransactionalId",
]


class TransactionError(BrokerError):
    """A transaction cannot be had, or changed, as asked."""


class TransactionNotFound(TransactionError):
    """There is no such transaction; one that was ended is forgotten after a while."""


class InvalidTransactionState(TransactionError):
    """The transaction is decided otherwise, or does not hold what is to be done in it."""


class NotInTransaction(InvalidTransactionState):
    """A partition was not added to the transaction, or there is no transaction."""


class InvalidTransactionTimeout(TransactionError):
    """A transaction may not be open for so long, or not at all."""


class TooManyTransactions(TransactionError):
    """Too many transactions are open, or too many bytes wait for partitions to be added to them."""


class TransactionTooLarge(TransactionError):
    """Too many partitions, subscriptions, groups or offsets belong to one transaction."""


class TransactionsDisabled(TransactionError):
    """The server is set to have no transactions."""


class InvalidTransactionalId(TransactionError):
    """A transactional id that is empty or too long."""


class UnknownTransactionalId(TransactionError):
    """Nobody has this transactional id, or its producer id is another."""


class StaleTransactionalEpoch(TransactionError):
    """The epoch of the producer with this transactional id is another by now."""


class TransactionChanging(TransactionError):
    """The transaction, or its producer, is being changed; the answer is there a moment later."""
