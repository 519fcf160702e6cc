"""FindCoordinator (API key 10)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int8, int16, int32, message, string

__all__ = ["FIND_COORDINATOR", "FindCoordinatorRequest", "FindCoordinatorResponse"]


@message
class FindCoordinatorRequest:
    """FindCoordinator request, all versions."""

    key: str = string(until=3)
    key_type: int = int8(since=1)
    coordinator_keys: list[str] = array("string", since=4)


@message
class Coordinator:
    key: str = string(since=4)
    node_id: int = int32(since=4)
    host: str = string(since=4)
    port: int = int32(since=4)
    error_code: int = int16(since=4)
    error_message: str | None = string(since=4, nullable=4)


@message
class FindCoordinatorResponse:
    """FindCoordinator response, all versions."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16(until=3)
    error_message: str | None = string(since=1, until=3, nullable=1)
    node_id: int = int32(until=3)
    host: str = string(until=3)
    port: int = int32(until=3)
    coordinators: list[Coordinator] = array(Coordinator, since=4)


FIND_COORDINATOR = Api(
    key=10,
    name="FindCoordinator",
    versions=range(7),
    flexible_since=3,
    request=FindCoordinatorRequest,
    response=FindCoordinatorResponse,
)
