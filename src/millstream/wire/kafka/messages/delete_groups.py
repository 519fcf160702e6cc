"""DeleteGroups (API key 42)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, message, string

__all__ = ["DELETE_GROUPS", "DeleteGroupsRequest", "DeleteGroupsResponse"]


@message
class DeleteGroupsRequest:
    """DeleteGroups request, all versions."""

    groups_names: list[str] = array("string")


@message
class DeletableGroupResult:
    group_id: str = string()
    error_code: int = int16()


@message
class DeleteGroupsResponse:
    """DeleteGroups response, all versions."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)


DELETE_GROUPS = Api(
    key=42,
    name="DeleteGroups",
    versions=range(3),
    flexible_since=2,
    request=DeleteGroupsRequest,
    response=DeleteGroupsResponse,
)
