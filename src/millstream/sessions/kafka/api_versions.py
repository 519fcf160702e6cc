"""ApiVersions: versions 0 to 4. A version that is not known is answered in version 0 (KIP-511)."""

from collections.abc import Iterable
from typing import Protocol

from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.api_versions import ApiVersion, ApiVersionsResponse

__all__ = ["Advertised", "answer"]


class Advertised(Protocol):
    """What is told of an API."""

    @property
    def key(self) -> int:
        """The API's number."""

    @property
    def advertised(self) -> range:
        """The versions that clients are told of."""


def answer(handlers: Iterable[Advertised], error_code: ErrorCode = ErrorCode.NONE) -> ApiVersionsResponse:
    """The versions of all APIs. There are no tags: librdkafka before 2.2 stumbles over them."""
    keys = [
        ApiVersion(api_key=h.key, min_version=h.advertised.start, max_version=h.advertised.stop - 1) for h in handlers
    ]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)
