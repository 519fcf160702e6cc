"""ApiVersions (API key 18)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int16, int32, int64, message, string

__all__ = ["API_VERSIONS", "ApiVersionsRequest", "ApiVersionsResponse"]


@message
class ApiVersionsRequest:
    """ApiVersions request, all versions."""

    client_software_name: str = string(since=3)
    client_software_version: str = string(since=3)


@message
class ApiVersion:
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@message
class SupportedFeatureKey:
    name: str = string(since=3)
    min_version: int = int16(since=3)
    max_version: int = int16(since=3)


@message
class FinalizedFeatureKey:
    name: str = string(since=3)
    max_version_level: int = int16(since=3)
    min_version_level: int = int16(since=3)


@message
class ApiVersionsResponse:
    """ApiVersions response, all versions."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, since=3, tag=0)
    finalized_features_epoch: int = int64(since=3, tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, since=3, tag=2)
    zk_migration_ready: bool = boolean(since=3, tag=3)


API_VERSIONS = Api(
    key=18,
    name="ApiVersions",
    versions=range(5),
    flexible_since=3,
    request=ApiVersionsRequest,
    response=ApiVersionsResponse,
)
