"""DescribeLogDirs (API key 35)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int16, int32, int64, message, string

__all__ = ["DESCRIBE_LOG_DIRS", "DescribeLogDirsRequest", "DescribeLogDirsResponse"]


@message
class DescribableLogDirTopic:
    topic: str = string()
    partitions: list[int] = array("int32")


@message
class DescribeLogDirsRequest:
    """DescribeLogDirs request, all versions."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable=0)


@message
class DescribeLogDirsPartition:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@message
class DescribeLogDirsTopic:
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@message
class DescribeLogDirsResult:
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(since=4, default=-1)
    usable_bytes: int = int64(since=4, default=-1)
    is_cordoned: bool = boolean(since=5)


@message
class DescribeLogDirsResponse:
    """DescribeLogDirs response, all versions."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=3)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)


DESCRIBE_LOG_DIRS = Api(
    key=35,
    name="DescribeLogDirs",
    versions=range(1, 6),
    flexible_since=2,
    request=DescribeLogDirsRequest,
    response=DescribeLogDirsResponse,
)
