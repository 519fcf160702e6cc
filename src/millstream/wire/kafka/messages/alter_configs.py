"""AlterConfigs (API key 33)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int8, int16, int32, message, string

__all__ = ["ALTER_CONFIGS", "AlterConfigsRequest", "AlterConfigsResponse"]


@message
class AlterableConfig:
    name: str = string()
    value: str | None = string(nullable=0)


@message
class AlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message
class AlterConfigsRequest:
    """AlterConfigs request, all versions."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@message
class AlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    resource_type: int = int8()
    resource_name: str = string()


@message
class AlterConfigsResponse:
    """AlterConfigs response, all versions."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


ALTER_CONFIGS = Api(
    key=33,
    name="AlterConfigs",
    versions=range(3),
    flexible_since=2,
    request=AlterConfigsRequest,
    response=AlterConfigsResponse,
)
