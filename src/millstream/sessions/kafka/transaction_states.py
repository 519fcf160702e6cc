"""The states of transactional producers under the names that Kafka's tools show."""

from typing import Final

from millstream.broker.transactions import TransactionalProducer

__all__ = ["STATES", "state_of"]

STATES: Final = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)
"""Those that Apache Kafka has; here nobody is seen to be the last two."""


def state_of(producer: TransactionalProducer) -> str:
    """The state of a producer."""
    transaction = producer.transaction
    if transaction is not None:
        if not transaction.state.is_decided:
            return "Ongoing"
        return "PrepareCommit" if transaction.state.commits else "PrepareAbort"
    if producer.committed is None:
        return "Empty"
    return "CompleteCommit" if producer.committed else "CompleteAbort"
