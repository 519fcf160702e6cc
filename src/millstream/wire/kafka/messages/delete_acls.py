"""DeleteAcls (API key 31)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int8, int16, int32, message, string

__all__ = [
    "DELETE_ACLS",
    "DeleteAclsFilter",
    "DeleteAclsFilterResult",
    "DeleteAclsMatchingAcl",
    "DeleteAclsRequest",
    "DeleteAclsResponse",
]


@message
class DeleteAclsFilter:
    """Which ACLs are to go."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable=0)
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable=0)
    host_filter: str | None = string(nullable=0)
    operation: int = int8()
    permission_type: int = int8()


@message
class DeleteAclsRequest:
    """DeleteAcls request, all versions."""

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


@message
class DeleteAclsMatchingAcl:
    """An ACL that a filter meant."""

    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message
class DeleteAclsFilterResult:
    """What came of one filter."""

    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


@message
class DeleteAclsResponse:
    """DeleteAcls response, all versions: a result for each filter, in their order."""

    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)


DELETE_ACLS = Api(
    key=31,
    name="DeleteAcls",
    versions=range(1, 4),
    flexible_since=2,
    request=DeleteAclsRequest,
    response=DeleteAclsResponse,
)
