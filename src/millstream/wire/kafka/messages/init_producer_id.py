"""InitProducerId (API key 22)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import boolean, int16, int32, int64, message, string

__all__ = ["INIT_PRODUCER_ID", "InitProducerIdRequest", "InitProducerIdResponse"]


@message
class InitProducerIdRequest:
    """InitProducerId request, all versions."""

    transactional_id: str | None = string(nullable=0)
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(since=3, default=-1)
    producer_epoch: int = int16(since=3, default=-1)
    enable2_pc: bool = boolean(since=6)
    keep_prepared_txn: bool = boolean(since=6)


@message
class InitProducerIdResponse:
    """InitProducerId response, all versions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(since=6, default=-1)
    ongoing_txn_producer_epoch: int = int16(since=6, default=-1)


INIT_PRODUCER_ID = Api(
    key=22,
    name="InitProducerId",
    versions=range(7),
    flexible_since=2,
    request=InitProducerIdRequest,
    response=InitProducerIdResponse,
)
