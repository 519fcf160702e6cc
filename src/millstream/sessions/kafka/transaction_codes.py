"""The codes with which refusals in transactions are answered, where they depend on what a client's version knows."""

from typing import Final

from millstream.broker.errors import GroupNotFound, StaleEpoch
from millstream.broker.transactions import (
    NotInTransaction,
    StaleTransactionalEpoch,
    TooManyTransactions,
    TransactionChanging,
)
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.error_table import Refusal, code_of
from millstream.wire.kafka.error_codes import ErrorCode

__all__ = ["code_for_coordinator", "code_for_group", "code_for_writer"]

_FENCED_SINCE: Final = {22: 4, 24: 2, 25: 2, 26: 2}
"""The version of each API from which on PRODUCER_FENCED is known; INVALID_PRODUCER_EPOCH before."""
_ABORTABLE_SINCE: Final = {0: 11, 28: 4}
"""The version from which on TRANSACTION_ABORTABLE is known (KIP-890); INVALID_TXN_STATE before."""
_CHANGING_SINCE: Final = 12
"""The version of Produce from which on CONCURRENT_TRANSACTIONS is known."""
_PRODUCE: Final = 0
_TXN_OFFSET_COMMIT: Final = 28


def code_for_coordinator(error: Refusal, key: int, version: int) -> ErrorCode:
    """The code for a refusal in an API that speaks with the coordinator.

    Args:
        key: of the API.
        version: of the request.
    """
    if isinstance(error, StaleTransactionalEpoch) and version < _FENCED_SINCE[key]:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code_of(error)


def code_for_writer(error: Refusal, version: int) -> ErrorCode:
    """The code for a batch that is refused, in a version of Produce."""
    if isinstance(error, StaleTransactionalEpoch):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if isinstance(error, NotInTransaction) and version >= _ABORTABLE_SINCE[_PRODUCE]:
        return ErrorCode.TRANSACTION_ABORTABLE
    if isinstance(error, TooManyTransactions) or (
        isinstance(error, TransactionChanging) and version < _CHANGING_SINCE
    ):
        return ErrorCode.NOT_ENOUGH_REPLICAS  # which every client takes to mean: again, a moment later
    return code_of(error)


def code_for_group(error: MillstreamError, version: int) -> ErrorCode:
    """The code for offsets that are refused, in a version of TxnOffsetCommit."""
    if isinstance(error, StaleTransactionalEpoch):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if isinstance(error, GroupNotFound | StaleEpoch):
        return ErrorCode.ILLEGAL_GENERATION  # no version of this API knows that of epochs
    if isinstance(error, NotInTransaction) and version >= _ABORTABLE_SINCE[_TXN_OFFSET_COMMIT]:
        return ErrorCode.TRANSACTION_ABORTABLE
    return code_of(error)
