"""ListTransactions (API key 66)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, int64, message, string

__all__ = ["LIST_TRANSACTIONS", "ListTransactionsRequest", "ListTransactionsResponse"]


@message
class ListTransactionsRequest:
    """ListTransactions request, all versions."""

    state_filters: list[str] = array("string")
    producer_id_filters: list[int] = array("int64")
    duration_filter: int = int64(since=1, default=-1)
    transactional_id_pattern: str | None = string(since=2, nullable=2, default=None)


@message
class ListedTransaction:
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message
class ListTransactionsResponse:
    """ListTransactions response, all versions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array("string")
    transaction_states: list[ListedTransaction] = array(ListedTransaction)


LIST_TRANSACTIONS = Api(
    key=66,
    name="ListTransactions",
    versions=range(3),
    flexible_since=0,
    request=ListTransactionsRequest,
    response=ListTransactionsResponse,
)
