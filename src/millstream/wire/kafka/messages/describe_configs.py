"""DescribeConfigs (API key 32)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int8, int16, int32, message, string

__all__ = ["DESCRIBE_CONFIGS", "DescribeConfigsRequest", "DescribeConfigsResponse"]


@message
class DescribeConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array("string", nullable=0)


@message
class DescribeConfigsRequest:
    """DescribeConfigs request, all versions."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(since=3)


@message
class DescribeConfigsSynonym:
    name: str = string()
    value: str | None = string(nullable=0)
    source: int = int8()


@message
class DescribeConfigsResourceResult:
    name: str = string()
    value: str | None = string(nullable=0)
    read_only: bool = boolean()
    config_source: int = int8(default=-1)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym)
    config_type: int = int8(since=3)
    documentation: str | None = string(since=3, nullable=0)


@message
class DescribeConfigsResult:
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@message
class DescribeConfigsResponse:
    """DescribeConfigs response, all versions."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)


DESCRIBE_CONFIGS = Api(
    key=32,
    name="DescribeConfigs",
    versions=range(1, 5),
    flexible_since=4,
    request=DescribeConfigsRequest,
    response=DescribeConfigsResponse,
)
