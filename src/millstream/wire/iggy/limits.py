"""Bounds on what is taken from an Iggy client, each with its unit and its reason."""

from typing import Final

from millstream.wire.iggy.dialects import Dialect

__all__ = ["HEADERS_BYTES_MAX", "MESSAGES_MAX", "NAME_BYTES_MAX", "payload_bytes_max"]

HEADERS_BYTES_MAX: Final = 100 * 1024
"""Bytes of the headers of one message, and in dialect A of the values of all headers of one request: the protocol's
own bound."""
_PAYLOAD_BYTES_MAX: Final = 64_000_000
"""Bytes of the payload of one message: the protocol's own bound."""
_PAYLOAD_BYTES_MAX_A: Final = 10 * 1024 * 1024
"""Bytes of the payloads of one request in dialect A: its own bound."""
MESSAGES_MAX: Final = 1_000_000
"""Messages of one request. The smallest takes 25 bytes on the wire and some hundred here, so that a request's bytes
alone are no bound; clients send a thousand at a time."""
NAME_BYTES_MAX: Final = 255
"""Bytes of a name: the protocol's own bound."""


def payload_bytes_max(dialect: Dialect) -> int:
    """Bytes of payload: of one request in dialect A, of one message in all others."""
    return _PAYLOAD_BYTES_MAX_A if dialect is Dialect.A else _PAYLOAD_BYTES_MAX
