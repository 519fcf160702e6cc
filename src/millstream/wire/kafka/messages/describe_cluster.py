"""DescribeCluster (API key 60)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int8, int16, int32, message, string

__all__ = ["DESCRIBE_CLUSTER", "DescribeClusterRequest", "DescribeClusterResponse"]


@message
class DescribeClusterRequest:
    """DescribeCluster request, all versions."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(since=1, default=1)
    include_fenced_brokers: bool = boolean(since=2)


@message
class DescribeClusterBroker:
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable=0, default=None)
    is_fenced: bool = boolean(since=2)


@message
class DescribeClusterResponse:
    """DescribeCluster response, all versions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, default=None)
    endpoint_type: int = int8(since=1, default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)


DESCRIBE_CLUSTER = Api(
    key=60,
    name="DescribeCluster",
    versions=range(3),
    flexible_since=0,
    request=DescribeClusterRequest,
    response=DescribeClusterResponse,
)
