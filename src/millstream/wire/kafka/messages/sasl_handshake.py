"""SaslHandshake (API key 17)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int16, message, string

__all__ = ["SASL_HANDSHAKE", "SaslHandshakeRequest", "SaslHandshakeResponse"]


@message
class SaslHandshakeRequest:
    """SaslHandshake request, all versions."""

    mechanism: str = string()


@message
class SaslHandshakeResponse:
    """SaslHandshake response, all versions."""

    error_code: int = int16()
    mechanisms: list[str] = array("string")


SASL_HANDSHAKE = Api(
    key=17,
    name="SaslHandshake",
    versions=range(2),
    flexible_since=None,
    request=SaslHandshakeRequest,
    response=SaslHandshakeResponse,
)
