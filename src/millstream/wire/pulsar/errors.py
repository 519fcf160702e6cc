"""Errors of the Pulsar codecs: bytes that do not follow the protocol.

    millstream.wire.errors.WireError
    └── PulsarWireError
        ├── MalformedFrame          a frame or its command cannot be decoded: the connection is lost
        │   └── FrameTooLarge           it says that it is longer than any frame may be
        └── InvalidEntry            what stands behind a command must not be stored, or cannot be read
            ├── ChecksumMismatch        its checksum is wrong
            ├── MalformedEntry          its metadata, its payload and what they say of each other do not fit
            └── UnsupportedCompression  its payload is compressed with a codec that does not exist

They are always the peer's fault. Our own mistakes raise the usual Python exceptions, loudly.
"""

from millstream.wire.errors import WireError

__all__ = [
    "ChecksumMismatch",
    "FrameTooLarge",
    "InvalidEntry",
    "MalformedEntry",
    "MalformedFrame",
    "PulsarWireError",
    "UnsupportedCompression",
]


class PulsarWireError(WireError):
    """Base of the errors of this package."""


class MalformedFrame(PulsarWireError):
    """A frame or its command cannot be decoded."""


class FrameTooLarge(MalformedFrame):
    """A frame says that it is longer than any frame may be."""


class InvalidEntry(PulsarWireError):
    """What stands behind a command must not be stored, or cannot be read."""


class ChecksumMismatch(InvalidEntry):
    """The checksum of an entry is wrong."""


class MalformedEntry(InvalidEntry):
    """The metadata of an entry, its payload and what they say of each other do not fit."""


class UnsupportedCompression(InvalidEntry):
    """The payload of an entry is compressed with a codec that does not exist."""
