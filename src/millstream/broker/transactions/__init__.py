"""Transactions: records and acknowledgements of several partitions that take effect together, or not at all."""

from millstream.broker.transactions.bounds import TransactionBounds
from millstream.broker.transactions.errors import (
    InvalidTransactionState,
    InvalidTransactionTimeout,
    TooManyTransactions,
    TransactionError,
    TransactionNotFound,
    TransactionsDisabled,
)
from millstream.broker.transactions.transaction import SubscriptionPlace, Transaction, TransactionState
from millstream.broker.transactions.transactions import Transactions

__all__ = [
    "InvalidTransactionState",
    "InvalidTransactionTimeout",
    "SubscriptionPlace",
    "TooManyTransactions",
    "Transaction",
    "TransactionBounds",
    "TransactionError",
    "TransactionNotFound",
    "TransactionState",
    "Transactions",
    "TransactionsDisabled",
]
