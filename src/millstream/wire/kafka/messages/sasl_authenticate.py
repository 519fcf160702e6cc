"""SaslAuthenticate (API key 36)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import bytes_, int16, int64, message, string

__all__ = ["SASL_AUTHENTICATE", "SaslAuthenticateRequest", "SaslAuthenticateResponse"]


@message
class SaslAuthenticateRequest:
    """SaslAuthenticate request, all versions."""

    auth_bytes: bytes = bytes_()


@message
class SaslAuthenticateResponse:
    """SaslAuthenticate response, all versions."""

    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    auth_bytes: bytes = bytes_()
    session_lifetime_ms: int = int64(since=1)


SASL_AUTHENTICATE = Api(
    key=36,
    name="SaslAuthenticate",
    versions=range(3),
    flexible_since=2,
    request=SaslAuthenticateRequest,
    response=SaslAuthenticateResponse,
)
