"""IncrementalAlterConfigs (API key 44)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int8, int16, int32, message, string

__all__ = ["INCREMENTAL_ALTER_CONFIGS", "IncrementalAlterConfigsRequest", "IncrementalAlterConfigsResponse"]


@message
class AlterableConfig:
    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable=0)


@message
class AlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message
class IncrementalAlterConfigsRequest:
    """IncrementalAlterConfigs request, all versions."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@message
class AlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    resource_type: int = int8()
    resource_name: str = string()


@message
class IncrementalAlterConfigsResponse:
    """IncrementalAlterConfigs response, all versions."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


INCREMENTAL_ALTER_CONFIGS = Api(
    key=44,
    name="IncrementalAlterConfigs",
    versions=range(2),
    flexible_since=1,
    request=IncrementalAlterConfigsRequest,
    response=IncrementalAlterConfigsResponse,
)
