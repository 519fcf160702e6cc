"""A Kafka connection without its socket: one request frame in, its answer out."""

import struct
from typing import Final

from millstream.model.pending import Pending
from millstream.sessions.kafka.api_versions import answer as answer_api_versions
from millstream.sessions.kafka.call import Call, Client, KafkaShared
from millstream.sessions.kafka.table import HANDLERS
from millstream.sessions.session import Answer, Buffer
from millstream.wire.kafka.api import API_VERSIONS_KEY, RequestHeader, read_request_header
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.messages.api_versions import API_VERSIONS

__all__ = ["KafkaSession"]

_LENGTH: Final = struct.Struct(">i")
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

    def measure(self, buffer: memoryview) -> int:
        """Bytes of the request at the start of a buffer, with its length; 0 if that is not there yet.

        Raises:
            MalformedMessage: no request is that short, or none that long is taken.
        """
        if len(buffer) < _LENGTH.size:
            return 0
        (length,) = _LENGTH.unpack_from(buffer)
        if not _REQUEST_BYTES_MIN <= length <= self._request_bytes_max:
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
        header = read_request_header(frame)
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
        outcome = handler.handle(Call(self._service, self._client, version, header.client_id), request)
        if outcome is None:
            return None
        if isinstance(outcome, Pending):
            return outcome.then(lambda response: api.encode_response(version, header.correlation_id, response))
        return api.encode_response(version, header.correlation_id, outcome)

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
    response = answer_api_versions(HANDLERS.values(), ErrorCode.UNSUPPORTED_VERSION)
    return API_VERSIONS.encode_response(0, header.correlation_id, response)
