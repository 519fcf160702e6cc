"""CreateAcls (API key 30)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int8, int16, int32, message, string

__all__ = ["CREATE_ACLS", "AclCreation", "AclCreationResult", "CreateAclsRequest", "CreateAclsResponse"]


@message
class AclCreation:
    """An ACL that is to be."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8(default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message
class CreateAclsRequest:
    """CreateAcls request, all versions."""

    creations: list[AclCreation] = array(AclCreation)


@message
class AclCreationResult:
    """What came of one."""

    error_code: int = int16()
    error_message: str | None = string(nullable=0)


@message
class CreateAclsResponse:
    """CreateAcls response, all versions: a result for each creation, in their order."""

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)


CREATE_ACLS = Api(
    key=30,
    name="CreateAcls",
    versions=range(1, 4),
    flexible_since=2,
    request=CreateAclsRequest,
    response=CreateAclsResponse,
)
