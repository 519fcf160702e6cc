"""DeleteRecords (API key 21)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, int64, message, string

__all__ = ["DELETE_RECORDS", "DeleteRecordsRequest", "DeleteRecordsResponse"]


@message
class DeleteRecordsPartition:
    partition_index: int = int32()
    offset: int = int64()


@message
class DeleteRecordsTopic:
    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


@message
class DeleteRecordsRequest:
    """DeleteRecords request, all versions."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


@message
class DeleteRecordsPartitionResult:
    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


@message
class DeleteRecordsTopicResult:
    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


@message
class DeleteRecordsResponse:
    """DeleteRecords response, all versions."""

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)


DELETE_RECORDS = Api(
    key=21,
    name="DeleteRecords",
    versions=range(3),
    flexible_since=2,
    request=DeleteRecordsRequest,
    response=DeleteRecordsResponse,
)
