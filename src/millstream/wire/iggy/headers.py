"""User headers of messages, and the options of dialect D, which travel in the same form.

    dialects A to C2    key_len u32, key, kind u8, value_len u32, value
    from C3 on          key_kind u8, key_len u32, key, kind u8, value_len u32, value

each repeated to the end. Keys and values have 1 to 255 bytes.
"""

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.layout import Codec

__all__ = ["HEADERS", "PART_BYTES_MAX", "HeaderKind", "UserHeader", "check_headers", "read_headers", "write_headers"]

PART_BYTES_MAX: Final = 255
"""Bytes of a key, and of a value: the protocol's own bound."""


class HeaderKind(IntEnum):
    """What the bytes of a key or a value are; numbers are little-endian."""

    RAW = 1
    STRING = 2
    BOOL = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    INT128 = 8
    UINT8 = 9
    UINT16 = 10
    UINT32 = 11
    UINT64 = 12
    UINT128 = 13
    FLOAT32 = 14
    FLOAT64 = 15


_KINDS_MAX: Final = max(HeaderKind)


class UserHeader(NamedTuple):
    """One header: its key, its value, and the kind of either."""

    key: bytes
    value: bytes
    kind: int = HeaderKind.RAW
    key_kind: int = HeaderKind.STRING


_PLAIN_KEY: Final = struct.Struct("<I")
_KINDED_KEY: Final = struct.Struct("<BI")
_VALUE: Final = struct.Struct("<BI")


def read_headers(block: memoryview, *, kinded_keys: bool) -> list[UserHeader]:
    """Take a block of headers apart.

    Args:
        block: the headers and nothing else.
        kinded_keys: whether keys have a kind, as from dialect C3 on; without one they are text.

    Raises:
        Refused: INVALID_HEADER_KEY, INVALID_HEADER_VALUE or INVALID_HEADER_KIND.
    """
    return list(_headers(block, kinded_keys=kinded_keys))


def _headers(block: memoryview, *, kinded_keys: bool) -> Iterator[UserHeader]:
    position, end = 0, len(block)
    key_kind = int(HeaderKind.STRING)
    code = ErrorCode.INVALID_HEADER_KEY
    try:
        while position < end:
            code = ErrorCode.INVALID_HEADER_KEY
            if kinded_keys:
                key_kind, length = _KINDED_KEY.unpack_from(block, position)
                position += _KINDED_KEY.size
            else:
                (length,) = _PLAIN_KEY.unpack_from(block, position)
                position += _PLAIN_KEY.size
            if not 1 <= length <= PART_BYTES_MAX or length > end - position:
                raise Refused(code, f"a header's key of {length} bytes")
            key = bytes(block[position : position + length])
            position += length
            code = ErrorCode.INVALID_HEADER_VALUE
            kind, length = _VALUE.unpack_from(block, position)
            position += _VALUE.size
            if not 1 <= length <= PART_BYTES_MAX or length > end - position:
                raise Refused(code, f"a header's value of {length} bytes")
            if not (1 <= kind <= _KINDS_MAX and 1 <= key_kind <= _KINDS_MAX):
                raise Refused(ErrorCode.INVALID_HEADER_KIND, f"a header of kind {key_kind}, {kind}")
            yield UserHeader(key, bytes(block[position : position + length]), kind, key_kind)
            position += length
    except struct.error:
        raise Refused(code, "the headers of a message are cut off") from None


def check_headers(block: memoryview, *, kinded_keys: bool, value_bytes_max: int | None = None) -> int:
    """Check a block of headers before it is kept; raises as `read_headers`.

    Args:
        block, kinded_keys: as there.
        value_bytes_max: bytes of all values together; None for no bound.

    Returns:
        Bytes of all values together.

    Raises:
        Refused: TOO_BIG_USER_HEADERS too; INVALID_HEADER_KEY for a key without a kind that is not UTF-8: a client
            would get none of the messages that come with it.
    """
    value_bytes = 0
    for header in _headers(block, kinded_keys=kinded_keys):
        value_bytes += len(header.value)
        if value_bytes_max is not None and value_bytes > value_bytes_max:
            raise Refused(ErrorCode.TOO_BIG_USER_HEADERS, f"values of headers with more than {value_bytes_max} bytes")
        if not kinded_keys and not _is_text(header.key):
            raise Refused(ErrorCode.INVALID_HEADER_KEY, "a header's key is not UTF-8")
    return value_bytes


def write_headers(headers: Iterable[UserHeader], *, kinded_keys: bool) -> bytes:
    """A block of headers.

    Without kinds of keys, keys are text: others go as their bytes where those are UTF-8, and else in hexadecimal. A
    header whose key would be too long so is left out.
    """
    parts = []
    for header in headers:
        if kinded_keys:
            parts += [_KINDED_KEY.pack(header.key_kind, len(header.key)), header.key]
        else:
            key = header.key if _is_text(header.key) else header.key.hex().encode()
            if len(key) > PART_BYTES_MAX:
                continue
            parts += [_PLAIN_KEY.pack(len(key)), key]
        parts += [_VALUE.pack(header.kind, len(header.value)), header.value]
    return b"".join(parts)


def _is_text(key: bytes) -> bool:
    """Whether a key is UTF-8."""
    try:
        return key.isascii() or bool(key.decode())
    except UnicodeDecodeError:
        return False


class _Headers:
    """Headers up to the end of the payload, as the kind of a field."""

    def codec(self, dialect: Dialect) -> Codec[list[UserHeader]]:
        kinded = dialect >= Dialect.C3

        def read(payload: memoryview, position: int) -> tuple[list[UserHeader], int]:
            return read_headers(payload[position:], kinded_keys=kinded), len(payload)

        return Codec(read, lambda value, out: out.extend(write_headers(value, kinded_keys=kinded)))


HEADERS = _Headers()
