"""Errors of the Kafka 0.7 codecs: bytes that do not follow the protocol.

    millstream.wire.errors.WireError
    ├── MalformedRequest       a request or an answer that cannot be decoded
    └── InvalidMessage         a message set that must not be stored, or a piece of one that cannot be read

They are always the peer's fault. The original closes the connection for each of them.
"""

from millstream.wire.errors import WireError

__all__ = ["InvalidMessage", "MalformedRequest"]


class MalformedRequest(WireError):
    """A request cannot be decoded: it is too short, or a length in it is impossible."""


class InvalidMessage(WireError):
    """A message with a wrong checksum, length, magic or codec, or one that unpacks to more than is allowed."""
