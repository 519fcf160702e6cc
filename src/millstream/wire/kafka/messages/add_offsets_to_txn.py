"""AddOffsetsToTxn (API key 25)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import int16, int32, int64, message, string

__all__ = ["ADD_OFFSETS_TO_TXN", "AddOffsetsToTxnRequest", "AddOffsetsToTxnResponse"]


@message
class AddOffsetsToTxnRequest:
    """AddOffsetsToTxn request, all versions."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message
class AddOffsetsToTxnResponse:
    """AddOffsetsToTxn response, all versions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()


ADD_OFFSETS_TO_TXN = Api(
    key=25,
    name="AddOffsetsToTxn",
    versions=range(5),
    flexible_since=3,
    request=AddOffsetsToTxnRequest,
    response=AddOffsetsToTxnResponse,
)
