"""SaslHandshake: versions 0 and 1.

After version 1 the tokens of the mechanism come in SaslAuthenticate requests; after version 0 they come bare, each
behind its length, and are answered so.
"""

from typing import Final

from millstream.sessions.kafka.authentication import Authentication
from millstream.sessions.kafka.call import Call
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = ["handle"]

_NAME_SHOWN: Final = 100
"""Characters of a mechanism's name that the log shows."""


def handle(call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Begin to authenticate by a mechanism; who wants one that there is not is told which there are, and let go."""
    security = call.service.security
    response = SaslHandshakeResponse(mechanisms=list(security.offered))
    authentication = call.client.authentication
    if authentication is None:
        # It was let in already, or need not show who it is; it may do so all the same (KIP-368).
        authentication = Authentication(security)
    elif authentication.begun:
        response.error_code = ErrorCode.ILLEGAL_SASL_STATE
        return response
    if authentication.choose(request.mechanism, bare=call.version == 0):
        call.client.authentication = authentication
    else:
        response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        call.client.end_answered(f"there is no SASL mechanism {request.mechanism[:_NAME_SHOWN]!r} here")
    return response
