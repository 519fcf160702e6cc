"""Frames, and the headers in front of what they carry.

    dialects A to C   request   length u32 = 4 + payload, code u32, payload
                      answer    status u32, length u32 = payload, payload
    from D0 on        both      a header of 256 bytes, which says the size of the whole, and a body

A length below 4 is impossible, so that the four zero bytes at the start of a long header tell the two apart.
"""

import struct
from typing import Final, NamedTuple

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.errors import Undecodable

__all__ = [
    "HEADER_BYTES",
    "EvictionReason",
    "LongHeader",
    "dialect_of_header",
    "eviction",
    "long_answer",
    "long_request",
    "measure",
    "read_long_header",
    "reads_long",
    "short_answer",
    "short_request",
]

HEADER_BYTES: Final = 256
_WORD: Final = struct.Struct("<I")
_PAIR: Final = struct.Struct("<II")
_CODE_BYTES: Final = 4
_SIZE_POSITION: Final = 48
_COMMAND_POSITION: Final = 60
_HEAD_BYTES: Final = 61
"""Bytes of a long header that tell whether it is one, and how long its frame is."""
_REQUEST, _REPLY, _EVICTION = 5, 8, 13
_D0_MARK: Final = 1 << 63
_REQUEST_HEADER: Final = struct.Struct("<48xI8xB67x16s16s8xQB7xQ4xI56x")
_D0_HEADER: Final = struct.Struct("<48xI8xB67x16s16s8xQB7xQQ4xI48x")
_REPLY_HEADER: Final = struct.Struct("<48xI8xB67x16s16x16sQQQQB7xI36x")
_EVICTION_HEADER: Final = struct.Struct("<48xI8xB67x16sII103xB")


class LongHeader(NamedTuple):
    """What a long header says.

    Args:
        client: 16 bytes that the answer repeats.
        checksum: 16 bytes that the answer repeats.
        request: a number that the answer repeats.
        operation: what is to be done; 2 stands for `code`.
        session: what the login has given.
        code: the command's code for operation 2.
        is_d0: whether it has the places of dialect D0.
    """

    client: bytes
    checksum: bytes
    request: int
    operation: int
    session: int
    code: int
    is_d0: bool = False


class EvictionReason:
    """Why a client is sent away."""

    NO_SESSION: Final = 1
    INVALID_CREDENTIALS: Final = 9
    INVALID_TOKEN: Final = 10
    USER_INACTIVE: Final = 11
    INCOMPATIBLE_PROTOCOL: Final = 14
    MALFORMED_LOGIN: Final = 15


def measure(buffer: memoryview, frame_bytes_max: int) -> int:
    """Tell where the frame at the start of a buffer ends.

    Args:
        buffer: what has arrived.
        frame_bytes_max: bytes of the longest frame that is taken.

    Returns:
        Bytes of the whole frame; 0 while that cannot be told.

    Raises:
        Undecodable: no frame is so short, or so long, or begins so.
    """
    if len(buffer) < _WORD.size:
        return 0
    (length,) = _WORD.unpack_from(buffer)
    if length:
        size = length + _WORD.size
        least = _WORD.size + _CODE_BYTES
    else:
        if len(buffer) < _HEAD_BYTES:
            return 0
        (size,) = _WORD.unpack_from(buffer, _SIZE_POSITION)
        least = HEADER_BYTES
        if buffer[_COMMAND_POSITION] != _REQUEST:
            raise Undecodable(f"a frame of kind {buffer[_COMMAND_POSITION]}, where requests are of kind {_REQUEST}")
    if not least <= size <= frame_bytes_max:
        raise Undecodable(f"a frame of {size} bytes")
    return int(size)


def read_long_header(frame: memoryview, *, is_d0: bool = False) -> LongHeader:
    """Read the header of a whole frame that begins with four zero bytes.

    Args:
        frame: the frame.
        is_d0: whether the connection is known to speak dialect D0: not every header of its shows it.
    """
    _, _, client, checksum, request, operation, namespace, code = _REQUEST_HEADER.unpack_from(frame)
    if is_d0 or namespace == _D0_MARK or (not code and _WORD.unpack_from(frame, 204)[0]):
        _, _, client, checksum, request, operation, _, session, code = _D0_HEADER.unpack_from(frame)
        return LongHeader(client, checksum, request, operation, session, code, True)
    return LongHeader(client, checksum, request, operation, namespace, code)


def long_request(header: LongHeader, body: bytes | bytearray) -> bytes:
    """A request with a long header."""
    size = HEADER_BYTES + len(body)
    common = size, _REQUEST, header.client, header.checksum, header.request, header.operation
    if header.is_d0:
        namespace = 0 if header.session or header.code else _D0_MARK
        return _D0_HEADER.pack(*common, namespace, header.session, header.code) + body
    return _REQUEST_HEADER.pack(*common, header.session, header.code) + body


def long_answer(header: LongHeader, status: int, body_bytes: int, commit: int, timestamp_us: int) -> bytes:
    """The header of the answer to a request.

    Args:
        header: the request's.
        status: 0, or an error's number; then there is no body.
        body_bytes: bytes of the body that follows.
        commit: the number of the operation in this connection.
        timestamp_us: when it was done.
    """
    return _REPLY_HEADER.pack(
        HEADER_BYTES + body_bytes,
        _REPLY,
        header.checksum,
        header.client,
        commit,
        commit,
        timestamp_us,
        header.request,
        header.operation,
        status,
    )


def eviction(header: LongHeader, reason: int, version: int, version_min: int) -> bytes:
    """The frame that sends a client away.

    Args:
        header: of the request that was the cause.
        reason: an `EvictionReason`.
        version, version_min: protocol versions of the server, packed.
    """
    return _EVICTION_HEADER.pack(HEADER_BYTES, _EVICTION, header.client, version, version_min, reason)


def short_request(code: int, payload: bytes | bytearray) -> bytes:
    """A request with a length and a code."""
    return _PAIR.pack(_CODE_BYTES + len(payload), code) + payload


def short_answer(status: int, payload_bytes: int) -> bytes:
    """The head of an answer; with a status other than 0 nothing follows."""
    return _PAIR.pack(status, payload_bytes)


def reads_long(frame: memoryview) -> bool:
    """Whether a frame begins with a long header."""
    return not _WORD.unpack_from(frame)[0]


def dialect_of_header(header: LongHeader) -> Dialect:
    """What a long header tells of its dialect; the login tells the rest."""
    return Dialect.D0 if header.is_d0 else Dialect.D
