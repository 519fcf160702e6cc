"""Transactions: records and acknowledgements of several partitions that take effect together, or not at all."""

from millstream.broker.transactions.bounds import TransactionBounds
from millstream.broker.transactions.errors import (
    InvalidTransactionalId,
    InvalidTransactionState,
    InvalidTransactionTimeout,
    NotInTransaction,
    StaleTransactionalEpoch,
    TooManyTransactions,
    TransactionChanging,
    TransactionError,
    TransactionNotFound,
    TransactionsDisabled,
    TransactionTooLarge,
    UnknownTransactionalId,
)
from millstream.broker.transactions.producer import TransactionalProducer
from millstream.broker.transactions.producers import TransactionalProducers
from millstream.broker.transactions.transaction import (
    ProducerEpoch,
    SubscriptionPlace,
    Transaction,
    TransactionState,
)
from millstream.broker.transactions.transactions import Transactions

__all__ = [
    "InvalidTransactionState",
    "InvalidTransactionTimeout",
    "InvalidTransactionalId",
    "NotInTransaction",
    "ProducerEpoch",
    "StaleTransactionalEpoch",
    "SubscriptionPlace",
    "TooManyTransactions",
    "Transaction",
    "TransactionBounds",
    "TransactionChanging",
    "TransactionError",
    "TransactionNotFound",
    "TransactionState",
    "TransactionTooLarge",
    "TransactionalProducer",
    "TransactionalProducers",
    "Transactions",
    "TransactionsDisabled",
    "UnknownTransactionalId",
]
