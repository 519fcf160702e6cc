"""DescribeTransactions (API key 65)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, int64, message, string

__all__ = ["DESCRIBE_TRANSACTIONS", "DescribeTransactionsRequest", "DescribeTransactionsResponse"]


@message
class DescribeTransactionsRequest:
    """DescribeTransactions request, all versions."""

    transactional_ids: list[str] = array("string")


@message
class TopicData:
    topic: str = string()
    partitions: list[int] = array("int32")


@message
class TransactionDescription:
    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)


@message
class DescribeTransactionsResponse:
    """DescribeTransactions response, all versions."""

    throttle_time_ms: int = int32()
    transaction_states: list[TransactionDescription] = array(TransactionDescription)


DESCRIBE_TRANSACTIONS = Api(
    key=65,
    name="DescribeTransactions",
    versions=range(1),
    flexible_since=0,
    request=DescribeTransactionsRequest,
    response=DescribeTransactionsResponse,
)
