"""SaslAuthenticate: versions 0 to 2."""

import logging

from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authentication import AuthenticationFailed, Step
from millstream.sessions.kafka.call import Call
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

__all__ = ["handle"]

_log = logging.getLogger(__name__)


def handle(
    call: Call, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Pending[SaslAuthenticateResponse]:
    """Take a token of the mechanism that the handshake has chosen.

    A client that fails is told so, and let go.
    """
    client = call.client
    authentication = client.authentication
    if authentication is None or not authentication.begun or authentication.ended:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message="SaslHandshake comes before SaslAuthenticate"
        )

    def answer(step: Step) -> SaslAuthenticateResponse:
        if step.name is not None:
            client.admitted(step.name)
        return SaslAuthenticateResponse(auth_bytes=step.token)

    def refuse(error: MillstreamError) -> SaslAuthenticateResponse:
        authentication.ended = True
        _log.warning("authentication failed peer=%s reason=%s", client.host, error)
        client.end_answered("it has not shown who it is")
        failed = isinstance(error, AuthenticationFailed | MalformedMessage)
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED if failed else ErrorCode.UNKNOWN_SERVER_ERROR,
            error_message=str(error),
        )

    return authentication.step(bytes(request.auth_bytes)).settle(answer, refuse)
