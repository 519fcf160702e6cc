"""One Kafka API: its key, its versions and the two messages of each."""

import struct
from dataclasses import dataclass
from typing import Any, Final

from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.primitives import read_tags, unsigned_varint
from millstream.wire.kafka.schema import Buffer, compiled_decoder, compiled_encoder

__all__ = ["API_VERSIONS_KEY", "Api", "RequestHeader", "read_request_header"]

API_VERSIONS_KEY: Final = 18
_HEADER: Final = struct.Struct(">hhih")  # api key, api version, correlation id, length of the client id
_INT32: Final = struct.Struct(">i")
_PREFIX: Final = struct.Struct(">ii")  # length of what follows, correlation id


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """What stands before every request.

    Args:
        api_key, api_version: which message follows.
        correlation_id: comes back in the answer.
        client_id: what the client calls itself, None if it does not.
        position: byte in the frame at which the rest of the header (its tags) or the message begins.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    position: int


def read_request_header(frame: memoryview) -> RequestHeader:
    """Read the part of a request header that is the same in all versions (header version 1).

    Args:
        frame: one request without its length prefix.

    Raises:
        MalformedMessage: the frame is shorter than its header, or the client id is not UTF-8.
    """
    try:
        key, version, correlation_id, size = _HEADER.unpack_from(frame)
        stop = 10 + max(size, 0)
        if size < -1 or stop > len(frame):
            raise MalformedMessage("the client id is longer than its request")
        client_id = str(frame[10:stop], "utf-8") if size >= 0 else None
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"request header: {error}") from None
    return RequestHeader(key, version, correlation_id, client_id, stop)


@dataclass(frozen=True, slots=True)
class Api:
    """One API and how its messages travel.

    Args:
        key: the number in the request header.
        name: Kafka's name of it.
        versions: the versions that are served: those that Apache Kafka 4.x accepts and, where clients of 0.8 to 0.10
            need them, those before.
        flexible_since: the first version with compact lengths and tagged fields, None for no version.
        request, response: the message classes.
    """

    key: int
    name: str
    versions: range
    flexible_since: int | None
    request: type
    response: type

    def flexible(self, version: int) -> bool:
        """Whether a version has compact lengths and tagged fields (KIP-482)."""
        return self.flexible_since is not None and version >= self.flexible_since

    def decode_request(self, frame: memoryview, header: RequestHeader) -> Any:
        """Decode the message behind a header.

        Raises:
            MalformedMessage: the bytes are not a message of this API and version. Bytes left over behind the
                message are ignored, as Apache Kafka ignores them.
        """
        flexible = self.flexible(header.api_version)
        position = header.position
        if flexible:
            try:
                _, position = read_tags(frame, position)
            except IndexError:
                raise MalformedMessage("the request header is cut off") from None
        decode = compiled_decoder(self.request, header.api_version, flexible=flexible)
        return decode(frame, position)[0]

    def encode_response(self, version: int, correlation_id: int, response: object) -> list[Buffer]:
        """Encode an answer with its length prefix and header.

        Returns:
            Buffers to be written one after the other; bodies of record batches are not copied.
        """
        flexible = self.flexible(version)
        head = bytearray(_PREFIX.pack(0, correlation_id))
        if flexible and self.key != API_VERSIONS_KEY:
            # The header of an ApiVersions answer never has tags: its reader does not know the version yet.
            head.append(0)
        return _framed(compiled_encoder(self.response, version, flexible=flexible)(response, head))

    def encode_request(self, version: int, correlation_id: int, client_id: str, request: object) -> list[Buffer]:
        """Encode a request with its length prefix and header, as a client sends it."""
        flexible = self.flexible(version)
        name = client_id.encode()
        head = bytearray(4) + _HEADER.pack(self.key, version, correlation_id, len(name)) + name
        if flexible:
            head += unsigned_varint(0)
        return _framed(compiled_encoder(self.request, version, flexible=flexible)(request, head))

    def decode_response(self, version: int, frame: memoryview) -> tuple[int, Any]:
        """Decode an answer, as a client receives it.

        Args:
            frame: one answer without its length prefix.

        Returns:
            The correlation id and the message.
        """
        flexible = self.flexible(version)
        try:
            (correlation_id,) = _INT32.unpack_from(frame)
            position = 4
            if flexible and self.key != API_VERSIONS_KEY:
                _, position = read_tags(frame, position)
        except (struct.error, IndexError) as error:
            raise MalformedMessage(f"response header: {error}") from None
        return correlation_id, compiled_decoder(self.response, version, flexible=flexible)(frame, position)[0]


def _framed(parts: list[Buffer]) -> list[Buffer]:
    head = parts[0]
    assert isinstance(head, bytearray)
    _INT32.pack_into(head, 0, sum(map(len, parts)) - 4)
    return parts
