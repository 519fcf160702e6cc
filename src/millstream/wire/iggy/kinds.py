"""The kinds of fields that messages are made of. All integers are little-endian.

Numbers of streams, topics, partitions and groups are counted from 0 here; the codecs of dialects that count from 1
add it and take it away, so that nothing above them has to know.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.layout import Codec, Kind, reader_of, writer_of
from millstream.wire.limits import ARRAY_ENTRIES_MAX

__all__ = [
    "BOOL",
    "BYTES8",
    "BYTES32",
    "CONSUMER",
    "F32",
    "ID",
    "IDENT",
    "NAME",
    "OPTIONAL_ID",
    "OPTIONAL_PARTITION",
    "PARTITIONING",
    "PLAIN_IDENT",
    "REST",
    "TEXT8",
    "TEXT32",
    "U8",
    "U16",
    "U32",
    "U64",
    "Consumer",
    "Counted",
    "Flagged",
    "Identifier",
    "Partitioning",
    "Sized",
    "Struct",
    "ToEnd",
]

Identifier = int | str
"""A number, counted from 0, or a name. A number of -1 is what dialects that count from 1 send as 0."""
T = TypeVar("T")
_U8: Final = struct.Struct("<B")
_U32: Final = struct.Struct("<I")
_IDENT_NUMBER: Final = struct.Struct("<BBI")
_NUMERIC, _NAMED = 1, 2


class _Same(Generic[T]):
    """A kind that looks the same in every dialect."""

    def __init__(
        self,
        read: Callable[[memoryview, int], tuple[T, int]],
        write: Callable[[T, bytearray], None],
        number: str = "",
    ) -> None:
        self._codec = Codec(read, write, number)

    def codec(self, dialect: Dialect) -> Codec[T]:
        return self._codec


def _number(format_: str) -> _Same[Any]:
    packer = struct.Struct("<" + format_)

    def read(payload: memoryview, position: int) -> tuple[Any, int]:
        return packer.unpack_from(payload, position)[0], position + packer.size

    def write(value: Any, out: bytearray) -> None:
        out += packer.pack(value)

    return _Same(read, write, format_)


U8 = _number("B")
U16 = _number("H")
U32 = _number("I")
U64 = _number("Q")
F32 = _number("f")


BOOL = _number("?")


def _slice(payload: memoryview, start: int, length: int) -> memoryview:
    if length > len(payload) - start:
        raise IndexError
    return payload[start : start + length]


def _sized(size: struct.Struct, refused_empty: ErrorCode | None = None) -> _Same[bytes]:
    def read(payload: memoryview, position: int) -> tuple[bytes, int]:
        (length,) = size.unpack_from(payload, position)
        start = position + size.size
        if not length and refused_empty is not None:
            raise Refused(refused_empty)
        return bytes(_slice(payload, start, length)), start + length

    def write(value: bytes, out: bytearray) -> None:
        out += size.pack(len(value))
        out += value

    return _Same(read, write)


def _text(kind: _Same[bytes]) -> _Same[str]:
    codec = kind.codec(Dialect.A)

    def read(payload: memoryview, position: int) -> tuple[str, int]:
        content, position = codec.read(payload, position)
        return content.decode(), position

    return _Same(read, lambda value, out: codec.write(value.encode(), out))


BYTES8 = _sized(_U8)
BYTES32 = _sized(_U32)
TEXT8 = _text(BYTES8)
TEXT32 = _text(BYTES32)
NAME = TEXT8
"""A name of 1 to 255 bytes; that it is not empty is checked by who knows which error that is."""

REST: _Same[memoryview] = _Same(
    lambda payload, position: (payload[position:], len(payload)), lambda value, out: out.extend(value)
)
"""Everything up to the end of the payload, uncopied."""


class _Based:
    """A number that some dialects count from 1."""

    def codec(self, dialect: Dialect) -> Codec[int]:
        first = dialect.first_id
        if not first:
            return U32.codec(dialect)

        def read(payload: memoryview, position: int) -> tuple[int, int]:
            return _U32.unpack_from(payload, position)[0] - first, position + _U32.size

        def write(value: int, out: bytearray) -> None:
            out += _U32.pack(value + first & 0xFFFFFFFF)

        return Codec(read, write)


ID = _Based()


class _OptionalId:
    """A number that a client may leave to the server, by sending 0; only dialects that count from 1 have it."""

    def codec(self, dialect: Dialect) -> Codec[int | None]:
        def read(payload: memoryview, position: int) -> tuple[int | None, int]:
            (value,) = _U32.unpack_from(payload, position)
            return (value - 1 if value or not dialect.has_login else None), position + _U32.size

        def write(value: int | None, out: bytearray) -> None:
            out += _U32.pack(0 if value is None else value + 1)

        return Codec(read, write)


OPTIONAL_ID = _OptionalId()


class _OptionalPartition:
    """A partition that need not be named: 0 stands for none, or a flag byte before it from C2 on."""

    def codec(self, dialect: Dialect) -> Codec[int | None]:
        if dialect >= Dialect.C2:
            flagged = struct.Struct("<BI")

            def read(payload: memoryview, position: int) -> tuple[int | None, int]:
                flag, value = flagged.unpack_from(payload, position)
                return (value if flag else None), position + flagged.size

            def write(value: int | None, out: bytearray) -> None:
                out += flagged.pack(value is not None, value or 0)

            return Codec(read, write)

        def read_number(payload: memoryview, position: int) -> tuple[int | None, int]:
            (value,) = _U32.unpack_from(payload, position)
            return (value - 1 if value else None), position + _U32.size

        def write_number(value: int | None, out: bytearray) -> None:
            out += _U32.pack(0 if value is None else value + 1)

        return Codec(read_number, write_number)


OPTIONAL_PARTITION = _OptionalPartition()


class _Ident:
    """An identifier: kind u8 (1 number, 2 name), length u8, value."""

    def codec(self, dialect: Dialect) -> Codec[Identifier]:
        first = dialect.first_id

        def read(payload: memoryview, position: int) -> tuple[Identifier, int]:
            kind, length = payload[position], payload[position + 1]
            start = position + 2
            if kind == _NUMERIC:
                if length != _U32.size:
                    raise Refused(ErrorCode.INVALID_IDENTIFIER, f"a numeric identifier of {length} bytes")
                return _U32.unpack_from(payload, start)[0] - first, start + length
            if kind != _NAMED or not length:
                raise Refused(ErrorCode.INVALID_IDENTIFIER, f"an identifier of kind {kind} and {length} bytes")
            return str(_slice(payload, start, length), "utf-8"), start + length

        def write(value: Identifier, out: bytearray) -> None:
            if isinstance(value, int):
                out += _IDENT_NUMBER.pack(_NUMERIC, _U32.size, value + first)
            else:
                name = value.encode()
                out += bytes((_NAMED, len(name)))
                out += name

        return Codec(read, write)


IDENT = _Ident()


class _PlainIdent:
    """An identifier whose numbers are nobody's count: of users and consumers."""

    def codec(self, dialect: Dialect) -> Codec[Identifier]:
        return IDENT.codec(Dialect.C2)


PLAIN_IDENT = _PlainIdent()


class Consumer(NamedTuple):
    """Who polls or keeps an offset.

    Args:
        in_group: whether it is a consumer group.
        id: a single consumer's number or name, or the group's.
    """

    in_group: bool
    id: Identifier


class _Consumer:
    """kind u8 (1 consumer, 2 group) and an identifier; in dialect A a u32 in its place."""

    def codec(self, dialect: Dialect) -> Codec[Consumer]:
        number = struct.Struct("<BI")
        single, group = PLAIN_IDENT.codec(dialect), IDENT.codec(dialect)

        def read(payload: memoryview, position: int) -> tuple[Consumer, int]:
            in_group = _is_group(payload[position])
            value, position = (group if in_group else single).read(payload, position + 1)
            return Consumer(in_group, value), position

        def write(value: Consumer, out: bytearray) -> None:
            out.append(1 + value.in_group)
            (group if value.in_group else single).write(value.id, out)

        def read_number(payload: memoryview, position: int) -> tuple[Consumer, int]:
            kind, value = number.unpack_from(payload, position)
            in_group = _is_group(kind)
            return Consumer(in_group, value - in_group), position + number.size

        def write_number(value: Consumer, out: bytearray) -> None:
            assert isinstance(value.id, int), "dialect A knows no names of consumers"
            out += number.pack(1 + value.in_group, value.id + value.in_group)

        return Codec(read_number, write_number) if dialect is Dialect.A else Codec(read, write)


def _is_group(kind: int) -> bool:
    if kind not in {1, 2}:
        raise Refused(ErrorCode.INVALID_COMMAND, f"there is no consumer of kind {kind}")
    return kind == 2


CONSUMER = _Consumer()


class Partitioning(NamedTuple):
    """How the partition of a batch is chosen: in turn (neither is given), by number, or by a key's hash."""

    partition: int | None = None
    key: bytes | None = None


class _Partitioning:
    """kind u8 (1 balanced, 2 partition, 3 key), length u8, value."""

    def codec(self, dialect: Dialect) -> Codec[Partitioning]:
        first = dialect.first_id

        def read(payload: memoryview, position: int) -> tuple[Partitioning, int]:
            kind, length = payload[position], payload[position + 1]
            start = position + 2
            value = _slice(payload, start, length)
            if kind == 1 and not length:
                return Partitioning(), start
            if kind == 2 and length == _U32.size:
                return Partitioning(partition=_U32.unpack(value)[0] - first), start + length
            if kind == 3 and length:
                return Partitioning(key=bytes(value)), start + length
            if kind in {1, 2, 3}:
                raise Refused(ErrorCode.INVALID_KEY_VALUE_LENGTH, f"partitioning {kind} of {length} bytes")
            raise Refused(ErrorCode.INVALID_COMMAND, f"there is no partitioning {kind}")

        def write(value: Partitioning, out: bytearray) -> None:
            if value.partition is not None:
                out += _IDENT_NUMBER.pack(2, _U32.size, value.partition + first)
            elif value.key is not None:
                out += bytes((3, len(value.key)))
                out += value.key
            else:
                out += b"\x01\x00"

        return Codec(read, write)


PARTITIONING = _Partitioning()


class Struct(Generic[T]):
    """A message within a message."""

    def __init__(self, cls: type[T]) -> None:
        self._cls = cls

    def codec(self, dialect: Dialect) -> Codec[T]:
        return Codec(reader_of(self._cls, dialect), writer_of(self._cls, dialect))


class Counted(Generic[T]):
    """A list behind the number of its entries; `count` is how that travels, a u32 by default."""

    def __init__(self, element: Kind[T], count: Kind[int] = U32) -> None:
        self._element = element
        self._count = count

    def codec(self, dialect: Dialect) -> Codec[list[T]]:
        element, counts = self._element.codec(dialect), self._count.codec(dialect)

        def read(payload: memoryview, position: int) -> tuple[list[T], int]:
            count, position = counts.read(payload, position)
            if count > min(len(payload) - position, ARRAY_ENTRIES_MAX):
                raise IndexError
            values = []
            for _ in range(count):
                value, position = element.read(payload, position)
                values.append(value)
            return values, position

        def write(values: list[T], out: bytearray) -> None:
            counts.write(len(values), out)
            for value in values:
                element.write(value, out)

        return Codec(read, write)


class ToEnd(Generic[T]):
    """A list that goes on to the end of the payload. Its elements take a byte at least."""

    def __init__(self, element: Kind[T]) -> None:
        self._element = element

    def codec(self, dialect: Dialect) -> Codec[list[T]]:
        element = self._element.codec(dialect)

        def read(payload: memoryview, position: int) -> tuple[list[T], int]:
            values = []
            while position < len(payload):
                value, position = element.read(payload, position)
                values.append(value)
            return values, position

        def write(values: list[T], out: bytearray) -> None:
            for value in values:
                element.write(value, out)

        return Codec(read, write)


class Flagged(Generic[T]):
    """A value behind a byte that says whether it is there."""

    def __init__(self, element: Kind[T]) -> None:
        self._element = element

    def codec(self, dialect: Dialect) -> Codec[T | None]:
        element = self._element.codec(dialect)

        def read(payload: memoryview, position: int) -> tuple[T | None, int]:
            if not payload[position]:
                return None, position + 1
            return element.read(payload, position + 1)

        def write(value: T | None, out: bytearray) -> None:
            out.append(value is not None)
            if value is not None:
                element.write(value, out)

        return Codec(read, write)


class Sized(Generic[T]):
    """A value behind the number of its bytes, a u32; it must take them all."""

    def __init__(self, element: Kind[T]) -> None:
        self._element = element

    def codec(self, dialect: Dialect) -> Codec[T]:
        element = self._element.codec(dialect)

        def read(payload: memoryview, position: int) -> tuple[T, int]:
            (length,) = _U32.unpack_from(payload, position)
            start = position + _U32.size
            value, end = element.read(_slice(payload, start, length), 0)
            if end != length:
                raise IndexError
            return value, start + length

        def write(value: T, out: bytearray) -> None:
            content = bytearray()
            element.write(value, content)
            out += _U32.pack(len(content))
            out += content

        return Codec(read, write)
