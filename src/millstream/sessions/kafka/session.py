"""A Kafka connection without its socket: one request frame in, its answer out."""

from millstream.model.pending import Pending
from millstream.sessions.kafka.api_versions import answer as answer_api_versions
from millstream.sessions.kafka.call import Call, Client, KafkaService
from millstream.sessions.kafka.table import HANDLERS
from millstream.wire.kafka.api import API_VERSIONS_KEY, RequestHeader, read_request_header
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.messages.api_versions import API_VERSIONS
from millstream.wire.kafka.schema import Buffer

__all__ = ["Answer", "KafkaSession"]

Answer = list[Buffer] | Pending[list[Buffer]] | None
"""Buffers to write one after the other, now or later; None for no answer at all."""


class KafkaSession:
    """Serves the requests of one connection.

    Args:
        service: what all connections share.
        client: this one.
    """

    def __init__(self, service: KafkaService, client: Client) -> None:
        self._service = service
        self._client = client

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
