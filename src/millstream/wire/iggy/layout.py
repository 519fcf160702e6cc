"""Messages of all dialects as data: a table of fields, of which each dialect has some.

A message is a dataclass whose fields are made by `field(kind, since=..., until=...)`, in the order in which they
travel. What a field looks like in a dialect is its kind's affair; which fields a dialect has is looked up once, at
the first use of a message in that dialect.
"""

import dataclasses
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, cast, dataclass_transform

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused

__all__ = ["Codec", "Kind", "decode", "decode_from", "encode", "encode_into", "field", "fields_of", "message"]

T = TypeVar("T")
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How one kind of field travels in one dialect.

    Args:
        read: takes a payload and a position; returns the value and the position behind it. May raise Refused, or
            struct.error and IndexError at the end of the payload.
        write: takes the value and appends its bytes.
    """

    read: Callable[[memoryview, int], tuple[T, int]]
    write: Callable[[T, bytearray], None]


class Kind(Protocol[T]):
    """A kind of field."""

    def codec(self, dialect: Dialect) -> Codec[T]:
        """How it travels in a dialect."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message: its kind, the dialects that have it, and its value in those that have not."""

    kind: Kind[Any]
    since: Dialect
    until: Dialect
    default: Any


_NOTHING: Final = object()


def field(
    kind: Kind[T],
    *,
    since: Dialect = Dialect.A,
    until: Dialect = Dialect.D12,
    default: Any = _NOTHING,
) -> Any:
    """A field.

    Args:
        kind: what it holds and how that travels.
        since, until: the first and the last dialect that has it.
        default: its value where a dialect lacks it; for a list, the class `list`.
    """
    if default is _NOTHING:
        return dataclasses.field(metadata={"iggy": Field(kind, since, until, None)})
    if default is list:
        return dataclasses.field(default_factory=list, metadata={"iggy": Field(kind, since, until, None)})
    return dataclasses.field(default=default, metadata={"iggy": Field(kind, since, until, default)})


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def message(cls: type[M]) -> type[M]:
    """Make a class of such fields into a message: slotted, keyword arguments only."""
    return cast(type[M], dataclasses.dataclass(slots=True, kw_only=True)(cls))


def fields_of(cls: type, dialect: Dialect) -> list[tuple[str, Kind[Any]]]:
    """The fields of a message that a dialect has, in order."""
    found = [(f.name, cast(Field, f.metadata["iggy"])) for f in dataclasses.fields(cls)]
    return [(name, one.kind) for name, one in found if one.since <= dialect <= one.until]


_Reader = Callable[[memoryview, int], tuple[Any, int]]
_Writer = Callable[[Any, bytearray], None]
_READERS: Final[dict[tuple[type, Dialect], list[tuple[str, _Reader]]]] = {}
_WRITERS: Final[dict[tuple[type, Dialect], list[tuple[str, _Writer]]]] = {}


def _readers(cls: type, dialect: Dialect) -> list[tuple[str, _Reader]]:
    readers = _READERS.get((cls, dialect))
    if readers is None:
        readers = [(name, kind.codec(dialect).read) for name, kind in fields_of(cls, dialect)]
        _READERS[cls, dialect] = readers
    return readers


def _writers(cls: type, dialect: Dialect) -> list[tuple[str, _Writer]]:
    writers = _WRITERS.get((cls, dialect))
    if writers is None:
        writers = [(name, kind.codec(dialect).write) for name, kind in fields_of(cls, dialect)]
        _WRITERS[cls, dialect] = writers
    return writers


def decode_from(cls: type[M], dialect: Dialect, payload: memoryview, position: int) -> tuple[M, int]:
    """Read a message in the midst of a payload; raises as `Codec.read` does."""
    values: dict[str, Any] = {}
    for name, read in _readers(cls, dialect):
        values[name], position = read(payload, position)
    return cls(**values), position


def decode(cls: type[M], dialect: Dialect, payload: memoryview, *, whole: bool = False) -> M:
    """Read a request or an answer.

    Args:
        cls: the message.
        dialect: whose bytes these are.
        payload: what follows the code or the header.
        whole: whether bytes behind the last field are refused; clients are known to send some.

    Raises:
        Refused: the payload is no such message.
    """
    try:
        found, position = decode_from(cls, dialect, payload, 0)
    except (struct.error, IndexError):
        raise Refused(ErrorCode.INVALID_COMMAND, f"a {cls.__name__} of {len(payload)} bytes is cut off") from None
    except UnicodeDecodeError:
        raise Refused(ErrorCode.INVALID_UTF8, f"text in a {cls.__name__} is not UTF-8") from None
    if whole and position != len(payload):
        raise Refused(ErrorCode.INVALID_COMMAND, f"{len(payload) - position} bytes follow a {cls.__name__}")
    return found


def encode_into(value: object, dialect: Dialect, out: bytearray) -> None:
    """Append a message to bytes."""
    for name, write in _writers(type(value), dialect):
        write(getattr(value, name), out)


def encode(value: object, dialect: Dialect) -> bytearray:
    """The bytes of a message."""
    out = bytearray()
    encode_into(value, dialect, out)
    return out
