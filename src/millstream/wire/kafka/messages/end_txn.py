"""EndTxn (API key 26)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import boolean, int16, int32, int64, message, string

__all__ = ["END_TXN", "EndTxnRequest", "EndTxnResponse"]


@message
class EndTxnRequest:
    """EndTxn request, all versions."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message
class EndTxnResponse:
    """EndTxn response, all versions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(since=5, default=-1)
    producer_epoch: int = int16(since=5, default=-1)


END_TXN = Api(
    key=26,
    name="EndTxn",
    versions=range(6),
    flexible_since=3,
    request=EndTxnRequest,
    response=EndTxnResponse,
)
