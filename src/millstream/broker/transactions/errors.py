"""Errors of transactions.

BrokerError
└── TransactionError
    ├── TransactionNotFound         there is none of this number, or it is forgotten
    ├── InvalidTransactionState     it is decided, so that it takes nothing any more
    ├── InvalidTransactionTimeout   a time out of bounds
    ├── TooManyTransactions         too many are open, or too much belongs to one
    └── TransactionsDisabled        the server is set to have none

An acknowledgement that another transaction stands in the way of is a `subscriptions.AcknowledgementConflict`.
"""

from millstream.broker.errors import BrokerError

__all__ = [
    "InvalidTransactionState",
    "InvalidTransactionTimeout",
    "TooManyTransactions",
    "TransactionError",
    "TransactionNotFound",
    "TransactionsDisabled",
]


class TransactionError(BrokerError):
    """A transaction cannot be had, or changed, as asked."""


class TransactionNotFound(TransactionError):
    """There is no such transaction; one that was ended is forgotten after a while."""


class InvalidTransactionState(TransactionError):
    """The transaction is decided otherwise, or does not hold what is to be done in it."""


class InvalidTransactionTimeout(TransactionError):
    """A transaction may not be open for so long, or not at all."""


class TooManyTransactions(TransactionError):
    """Too many transactions are open, or too many partitions or subscriptions belong to one."""


class TransactionsDisabled(TransactionError):
    """The server is set to have no transactions."""
