"""DescribeCluster: versions 0 to 2."""

from typing import Final

from millstream.sessions.kafka import authorized_operations
from millstream.sessions.kafka.call import NODE_ID, Call
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

__all__ = ["handle"]

_BROKERS: Final = 1


def handle(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the cluster: this server, which is its own controller."""
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="this is a broker, and not a controller",
            endpoint_type=request.endpoint_type,
        )
    endpoint = call.client.endpoint
    response = DescribeClusterResponse(
        cluster_id=call.broker.cluster_id,
        controller_id=NODE_ID,
        brokers=[DescribeClusterBroker(broker_id=NODE_ID, host=endpoint.host, port=endpoint.port)],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_operations.of_cluster(call)
    return response
