"""Which protocol a connection speaks, from the first bytes that its client sends.

Facts that tell the protocols apart:

- HTTP begins with the name of a method, in capital letters.
- Pulsar begins with two big-endian sizes, the second smaller than the first, and a CONNECT command, whose protobuf
  starts with 08 02 (`BaseCommand.type` = CONNECT).
- Iggy's frames begin with a little-endian size, so that what is the highest byte of a big-endian one is not zero,
  but where the size is a multiple of 256; then the little-endian code behind it would be an API key of 256 at least.
  Its latest dialect begins with a header whose first 48 bytes are zero.
- Kafka begins with a big-endian size, a 16-bit API key and a 16-bit version. Kafka 0.7 has a request type of 0 to 4
  and the length of a printable topic (or a count of topics) in the same places. Today's clients begin with
  ApiVersions (18), SaslHandshake (17) or another key above 4; where one begins with a key up to 4, what would be
  the topic in the old format tells.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import Final, Protocol, cast

__all__ = ["RecognisingConnection", "recognise"]

_log = logging.getLogger(__name__)
_METHODS: Final = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC")
_HEAD_BYTES: Final = 12
"""Bytes that tell all protocols apart; fewer tell some."""
_SILENCE_S: Final = 10.0
"""Seconds in which a client must say enough to be recognised: every client measured speaks first, and at once."""
_BIG_HEAD: Final = struct.Struct(">iHH")
_PULSAR_HEAD: Final = struct.Struct(">II")
_PULSAR_CONNECT: Final = b"\x08\x02"
_API_KEYS: Final = 256
"""Where API keys of Kafka end, by far; a Pulsar CONNECT of 16 MiB would look like a higher one."""
_OLD_REQUEST_TYPES: Final = 5
_OLD_MULTI: Final = (2, 3)
_OLD_TOPIC_BYTES_MAX: Final = 255


def recognise(head: bytes) -> str | None:
    """Tell the protocol from the first bytes.

    Args:
        head: what has arrived so far.

    Returns:
        The name of the listener that serves it, or would be the nearest: that one's session refuses what it cannot
        read. None if more bytes are needed.
    """
    if len(head) < 4:
        return None
    if head[:4] in _METHODS:
        return "http"
    if head[0]:
        return "iggy"
    if len(head) < _HEAD_BYTES:
        return None
    if not any(head[:_HEAD_BYTES]):
        return "iggy"
    total, command = _PULSAR_HEAD.unpack_from(head)
    if command + 4 <= total and head[8:10] == _PULSAR_CONNECT:
        return "pulsar"
    _, key, second = _BIG_HEAD.unpack_from(head)
    if key >= _API_KEYS:
        return "iggy"
    return "kafka07" if _is_old(key, second, head[8:]) else "kafka"


def _is_old(key: int, second: int, rest: bytes) -> bool:
    """Whether a request is one of Kafka 0.7, given its type, and the length of its topic or a count."""
    if key >= _OLD_REQUEST_TYPES:
        return False
    if key in _OLD_MULTI:
        length = int.from_bytes(rest[:2], "big")
        return second > 0 and 0 < length <= _OLD_TOPIC_BYTES_MAX and _printable(rest[2 : 2 + length])
    return 0 < second <= _OLD_TOPIC_BYTES_MAX and _printable(rest[:second])


def _printable(text: bytes) -> bool:
    return all(byte > 0x20 and byte != 0x7F for byte in text)


class Owner(Protocol):
    """Who keeps track of connections."""

    def opened(self, connection: "RecognisingConnection") -> None:
        """A connection has begun."""

    def closed(self, connection: "RecognisingConnection") -> None:
        """A connection has ended, or is another's now."""


class Recognised(Protocol):
    """The connection that goes on with what was recognised."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""

    def take(self, head: bytes) -> None:
        """Take the first bytes."""


class RecognisingConnection(asyncio.Protocol):
    """A connection that has not said yet what it speaks; it hands itself on as soon as it has.

    Args:
        connection: makes the protocol object for a listener's name.
        owner: keeps track of it.
    """

    def __init__(self, connection: Callable[[str], Recognised], owner: Owner) -> None:
        self._connection = connection
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._head = b""
        self.closing = False
        self.address = "?"
        self.waiting = 0
        self.last_request_s = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = f"{peer[0]}:{peer[1]}" if peer else "?"
        self._owner.opened(self)
        self._timer = self._loop.call_later(_SILENCE_S, self._refuse, "it said too little to be recognised")

    def data_received(self, data: bytes) -> None:
        if self.closing:
            return
        self._head += data
        name = recognise(self._head)
        if name is None:
            return
        self._timer.cancel()
        self._owner.closed(self)
        connection = self._connection(name)
        self._transport.set_protocol(cast(asyncio.BaseProtocol, connection))
        connection.connection_made(self._transport)
        connection.take(self._head)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        self._timer.cancel()
        self._owner.closed(self)

    def _refuse(self, reason: str) -> None:
        _log.warning("connection refused peer=%s reason=%s", self.address, reason)
        self.abort()

    def stop_serving(self) -> None:
        """Nothing is served before it is recognised."""

    def close(self) -> None:
        """End the connection."""
        self.closing = True
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self.closing = True
        self._transport.abort()
