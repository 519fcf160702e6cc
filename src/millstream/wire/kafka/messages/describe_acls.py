"""DescribeAcls (API key 29)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int8, int16, int32, message, string

__all__ = [
    "DESCRIBE_ACLS",
    "AclDescription",
    "DescribeAclsRequest",
    "DescribeAclsResource",
    "DescribeAclsResponse",
]


@message
class DescribeAclsRequest:
    """DescribeAcls request, all versions: a filter."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable=0)
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable=0)
    host_filter: str | None = string(nullable=0)
    operation: int = int8()
    permission_type: int = int8()


@message
class AclDescription:
    """An ACL of a resource."""

    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message
class DescribeAclsResource:
    """A resource and its ACLs."""

    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(default=3)
    acls: list[AclDescription] = array(AclDescription)


@message
class DescribeAclsResponse:
    """DescribeAcls response, all versions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)


DESCRIBE_ACLS = Api(
    key=29,
    name="DescribeAcls",
    versions=range(1, 4),
    flexible_since=2,
    request=DescribeAclsRequest,
    response=DescribeAclsResponse,
)
