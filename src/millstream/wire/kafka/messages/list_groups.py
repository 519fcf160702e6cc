"""ListGroups (API key 16)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, int32, message, string

__all__ = ["LIST_GROUPS", "ListGroupsRequest", "ListGroupsResponse"]


@message
class ListGroupsRequest:
    """ListGroups request, all versions."""

    states_filter: list[str] = array("string", since=4)
    types_filter: list[str] = array("string", since=5)


@message
class ListedGroup:
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(since=4)
    group_type: str = string(since=5)


@message
class ListGroupsResponse:
    """ListGroups response, all versions."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)


LIST_GROUPS = Api(
    key=16,
    name="ListGroups",
    versions=range(6),
    flexible_since=3,
    request=ListGroupsRequest,
    response=ListGroupsResponse,
)
