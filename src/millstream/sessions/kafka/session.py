"""A Kafka connection without its socket: one request frame in, its answer out."""

import struct
from typing import Any, Final

from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.api_versions import answer as answer_api_versions
from millstream.sessions.kafka.authentication import Authentication, Step
from millstream.sessions.kafka.call import Call, Client, KafkaShared
from millstream.sessions.kafka.table import HANDLERS, Turn
from millstream.sessions.session import Answer, Buffer
from millstream.wire.kafka.api import API_VERSIONS_KEY, RequestHeader, read_request_header
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.messages.api_versions import API_VERSIONS
from millstream.wire.kafka.messages.sasl_authenticate import SASL_AUTHENTICATE
from millstream.wire.kafka.messages.sasl_handshake import SASL_HANDSHAKE

__all__ = ["KafkaSession"]

_LENGTH: Final = struct.Struct(">i")
_KEY: Final = struct.Struct(">h")
_KEY_END: Final = _LENGTH.size + _KEY.size
_UNKNOWN_REQUEST_BYTES_MAX: Final = 512 * 1024
"""Bytes of a request from a client that must show who it is and has not; as Apache Kafka has it."""
_BEFORE_ADMISSION: Final = {API_VERSIONS_KEY, SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key}
_REQUEST_BYTES_MIN: Final = 10
"""Bytes of a request header without a client id: API key, version, correlation id, and the length of the id."""


class KafkaSession:
    """Serves the requests of one connection.

    Args:
        service: what all connections share.
        client: this one.
    """

    prefix_bytes = _LENGTH.size

    def __init__(self, service: KafkaShared, client: Client) -> None:
        self._service = service
        self._client = client
        self._request_bytes_max = service.broker.settings.request_bytes_max
        self._changing = 0
        self._changing_key: int | None = None
        self._holding = False

    def measure(self, buffer: memoryview) -> int:
        """Bytes of the request at the start of a buffer, with its length; 0 if it is not there yet, or not its turn.

        Raises:
            MalformedMessage: no request is that short, or none that long is taken.
        """
        if len(buffer) < _LENGTH.size:
            return 0
        # First, because what is under way may change what is taken: it may be a login.
        if self._changing and self._waits_its_turn(buffer):
            return 0
        (length,) = _LENGTH.unpack_from(buffer)
        least, most = _REQUEST_BYTES_MIN, self._request_bytes_max
        authentication = self._client.authentication
        if authentication is not None:
            least, most = 0 if authentication.tokens_are_bare else least, min(most, _UNKNOWN_REQUEST_BYTES_MAX)
        if not least <= length <= most:
            raise MalformedMessage(f"a request of {length} bytes")
        return int(length) + _LENGTH.size

    def handle(self, frame: memoryview) -> Answer:
        """Serve one request.

        Args:
            frame: the request without its length, writable; it may be overwritten once this has returned.

        Returns:
            Its answer. Answers are to be written in the order of the requests.

        Raises:
            MalformedMessage: the bytes are not a request that this server knows. The connection is to be closed.
        """
        authentication = self._client.authentication
        if authentication is not None and authentication.tokens_are_bare:
            return self._bare_token(authentication, bytes(frame))
        header = read_request_header(frame)
        if authentication is not None:
            self._check_allowed(authentication, header.api_key)
        handler = HANDLERS.get(header.api_key)
        version = header.api_version
        if handler is None:
            raise MalformedMessage(f"there is no API {header.api_key} here")
        api = handler.api
        if version not in api.versions:
            if header.api_key == API_VERSIONS_KEY:
                # A client from the future asks again with a version that it reads in this answer (KIP-511).
                return _unsupported(header)
            raise MalformedMessage(f"{api.name} version {version} is not served")
        limit = handler.request_bytes_max
        if limit is not None and len(frame) > limit:
            raise MalformedMessage(f"a {api.name} request of {len(frame)} bytes, where {limit} are allowed")
        request = api.decode_request(frame, header)
        call = Call(self._service, self._client, version, header.client_id)
        outcome = handler.handle(call, request)
        for effect in call.effects:
            self._begin_change(effect, header.api_key)
        if outcome is None:
            return None
        if isinstance(outcome, Pending):
            if handler.turn is not Turn.NONE and not outcome.done:
                self._begin_change(outcome, header.api_key if handler.turn is Turn.OTHERS else None)
            return outcome.then(lambda response: api.encode_response(version, header.correlation_id, response))
        return api.encode_response(version, header.correlation_id, outcome)

    def _begin_change(self, pending: Pending[Any], own_key: int | None) -> None:
        """Let requests wait for something, but for those of an API, if any."""
        self._changing_key = own_key
        self._changing += 1
        pending.when_done(self._changed)

    def _waits_its_turn(self, buffer: memoryview) -> bool:
        """Whether the request at the start of a buffer is to be served after what those before it are changing."""
        if len(buffer) < _KEY_END:
            return True
        if _KEY.unpack_from(buffer, _LENGTH.size)[0] == self._changing_key:
            return False
        self._holding = True
        self._client.hold()
        return True

    def _changed(self, _: object) -> None:
        self._changing -= 1
        if self._holding and not self._changing:
            self._holding = False
            self._client.release()

    def _check_allowed(self, authentication: Authentication, api_key: int) -> None:
        """Check what a client asks for that has not shown who it is, where it must or has begun to."""
        if authentication.ended:
            raise MalformedMessage("it goes on though it has not shown who it is")
        if api_key not in _BEFORE_ADMISSION:
            raise MalformedMessage(f"API {api_key} is asked for by a client that has not shown who it is")

    def _bare_token(self, authentication: Authentication, token: bytes) -> Answer:
        """Take a token that has no request around it; what goes wrong can only be told by ending the connection."""

        def answer(step: Step) -> list[Buffer]:
            if step.name is not None:
                self._client.admitted(step.name)
            return [_LENGTH.pack(len(step.token)) + step.token]

        if authentication.ended:
            raise MalformedMessage("it goes on though it has not shown who it is")

        def refuse(error: MillstreamError) -> list[Buffer]:
            authentication.ended = True
            self._client.end_answered(f"authentication failed: {error}")
            return []

        stepping = authentication.step(token)
        if not stepping.done:
            self._client.hold()
            stepping.when_done(lambda _: self._client.release())
        return stepping.settle(answer, refuse)

    def served(self) -> None:
        """Nothing is put off here."""

    def resume(self) -> None:
        """Nothing is kept back here for a slow reader: it is sent only what it asked for."""

    def finish(self) -> None:
        """Answer what waits for more data with what there is: the server stops."""
        for wait in list(self._client.waits):
            wait.finish()

    def close(self) -> None:
        """Call off everything that waits: the client is gone."""
        for wait in list(self._client.waits):
            wait.call_off()


def _unsupported(header: RequestHeader) -> list[Buffer]:
    response = answer_api_versions(HANDLERS.values(), 0, ErrorCode.UNSUPPORTED_VERSION)
    return API_VERSIONS.encode_response(0, header.correlation_id, response)
