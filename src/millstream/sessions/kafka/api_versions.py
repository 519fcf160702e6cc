"""ApiVersions: versions 0 to 4. A version that is not known is answered in version 0 (KIP-511)."""

from collections.abc import Iterable
from typing import Final, Protocol

from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

__all__ = ["Advertised", "answer"]

_FEATURES_SINCE: Final = 4
_TRANSACTIONS: Final = "transaction.version"
_TRANSACTIONS_LEVEL: Final = 2
"""Partitions and groups are added to a transaction by what is sent to them, and each end of one gives its producer
the next epoch (KIP-890). Clients that do not know of it go on as before."""
_FEATURES_EPOCH: Final = 1
"""Clients take features over from the answer with the highest epoch; here they never change."""


class Advertised(Protocol):
    """What is told of an API."""

    @property
    def key(self) -> int:
        """The API's number."""

    @property
    def advertised(self) -> range:
        """The versions that clients are told of."""


def answer(
    handlers: Iterable[Advertised], version: int, error_code: ErrorCode = ErrorCode.NONE
) -> ApiVersionsResponse:
    """The versions of all APIs and, from 4 on, the features of this server.

    Features travel as tags, which librdkafka before 2.2 stumbles over. It asks with version 3, and so do all clients
    that know nothing of the only feature there is.
    """
    keys = [
        ApiVersion(api_key=h.key, min_version=h.advertised.start, max_version=h.advertised.stop - 1) for h in handlers
    ]
    response = ApiVersionsResponse(error_code=error_code, api_keys=keys)
    if version >= _FEATURES_SINCE:
        response.supported_features = [
            SupportedFeatureKey(name=_TRANSACTIONS, min_version=0, max_version=_TRANSACTIONS_LEVEL)
        ]
        response.finalized_features = [
            FinalizedFeatureKey(
                name=_TRANSACTIONS, max_version_level=_TRANSACTIONS_LEVEL, min_version_level=_TRANSACTIONS_LEVEL
            )
        ]
        response.finalized_features_epoch = _FEATURES_EPOCH
    return response
