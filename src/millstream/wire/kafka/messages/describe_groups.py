"""DescribeGroups (API key 15)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, bytes_, int16, int32, message, string

__all__ = ["DESCRIBE_GROUPS", "DescribeGroupsRequest", "DescribeGroupsResponse"]


@message
class DescribeGroupsRequest:
    """DescribeGroups request, all versions."""

    groups: list[str] = array("string")
    include_authorized_operations: bool = boolean(since=3)


@message
class DescribedGroupMember:
    member_id: str = string()
    group_instance_id: str | None = string(since=4, nullable=4, default=None)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = bytes_()
    member_assignment: bytes = bytes_()


@message
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(since=6, nullable=6, default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(since=3, default=-2147483648)


@message
class DescribeGroupsResponse:
    """DescribeGroups response, all versions."""

    throttle_time_ms: int = int32(since=1)
    groups: list[DescribedGroup] = array(DescribedGroup)


DESCRIBE_GROUPS = Api(
    key=15,
    name="DescribeGroups",
    versions=range(7),
    flexible_since=5,
    request=DescribeGroupsRequest,
    response=DescribeGroupsResponse,
)
