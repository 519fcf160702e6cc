"""Errors of the Kafka codecs: bytes that do not follow the protocol.

    millstream.wire.errors.WireError
    ├── MalformedMessage       a request, a response or a field that cannot be decoded
    ├── Unanswerable           a request that is refused and that has no answer to say so
    └── InvalidBatch           a record batch that must not be stored
        ├── CorruptBatch           the checksum or the framing is wrong
        ├── UnsupportedCodec       an unknown compression codec
        └── InvalidRecords         the header and the records disagree

They are always the peer's fault. Our own mistakes raise the usual Python exceptions, loudly.
"""

from millstream.wire.errors import WireError

__all__ = [
    "CorruptBatch",
    "InvalidBatch",
    "InvalidRecords",
    "MalformedMessage",
    "Unanswerable",
    "UnsupportedCodec",
]


class MalformedMessage(WireError):
    """A message cannot be decoded: it is too short, a length is impossible, or text is not UTF-8."""


class Unanswerable(WireError):
    """A request is refused that wants no answer; only the end of its connection can say so."""


class InvalidBatch(WireError):
    """A record batch that must not be stored."""


class CorruptBatch(InvalidBatch):
    """The checksum of a record batch, or the way it is framed, is wrong."""


class UnsupportedCodec(InvalidBatch):
    """A record batch is compressed with a codec that does not exist."""


class InvalidRecords(InvalidBatch):
    """The header of a record batch and the records in it disagree."""
