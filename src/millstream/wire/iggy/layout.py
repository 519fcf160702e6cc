"""Messages of all dialects as data: a table of fields, of which each dialect has some.

A message is a dataclass whose fields are made by `field(kind, since=..., until=...)`, in the order in which they
travel. What a field looks like in a dialect is its kind's affair. At the first use of a message in a dialect the
straight-line Python that reads and writes it is put together: runs of plain numbers become one `struct` call.
"""

import dataclasses
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, cast, dataclass_transform

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused

__all__ = ["Codec", "Kind", "decode", "encode", "field", "fields_of", "message", "reader_of", "writer_of"]

T = TypeVar("T")
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How one kind of field travels in one dialect.

    Args:
        read: takes a payload and a position; returns the value and the position behind it. May raise Refused, or
            struct.error and IndexError at the end of the payload.
        write: takes the value and appends its bytes.
        number: for a plain number, its `struct` format.
    """

    read: Callable[[memoryview, int], tuple[T, int]]
    write: Callable[[T, bytearray], None]
    number: str = ""


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
_READERS: Final[dict[type, dict[Dialect, _Reader]]] = {}
_WRITERS: Final[dict[type, dict[Dialect, _Writer]]] = {}


def reader_of(cls: type[Any], dialect: Dialect) -> _Reader:
    """What reads a message in the midst of a payload, as `Codec.read` does."""
    made = _READERS.setdefault(cls, {})
    reader = made.get(dialect)
    if reader is None:
        reader = made[dialect] = _Source(cls, dialect).reader()
    return reader


def writer_of(cls: type[Any], dialect: Dialect) -> _Writer:
    """What appends a message to bytes, as `Codec.write` does."""
    made = _WRITERS.setdefault(cls, {})
    writer = made.get(dialect)
    if writer is None:
        writer = made[dialect] = _Source(cls, dialect).writer()
    return writer


class _Source:
    """Writes the functions for one message in one dialect.

    Args:
        cls: the message.
        dialect: whose bytes it reads and writes.
    """

    def __init__(self, cls: type[Any], dialect: Dialect) -> None:
        self._names: dict[str, Any] = {"cls": cls}
        self._runs: list[tuple[list[str], Codec[Any] | struct.Struct]] = []
        """The names of fields, with what reads and writes them together."""
        for name, kind in fields_of(cls, dialect):
            self._add(name, kind.codec(dialect))

    def _add(self, name: str, codec: Codec[Any]) -> None:
        """Take a field: on its own, or with the plain numbers before it."""
        if not codec.number:
            self._runs.append(([name], codec))
            return
        names, before = self._runs[-1] if self._runs else ([], None)
        if not isinstance(before, struct.Struct):
            self._runs.append(([name], struct.Struct("<" + codec.number)))
        else:
            self._runs[-1] = [*names, name], struct.Struct(before.format + codec.number)

    def reader(self) -> _Reader:
        """`read(payload, position)`."""
        lines = []
        for index, (names, how) in enumerate(self._runs):
            values = ", ".join(f"v_{name}" for name in names)
            if isinstance(how, struct.Struct):
                call = self._refer(f"r{index}", how.unpack_from)
                lines.append(f"{values}, = {call}(payload, position); position += {how.size}")
            else:
                lines.append(f"{values}, position = {self._refer(f'r{index}', how.read)}(payload, position)")
        arguments = ", ".join(f"{name}=v_{name}" for names, _ in self._runs for name in names)
        read: _Reader = self._build("read(payload, position)", [*lines, f"return cls({arguments}), position"])
        return read

    def writer(self) -> _Writer:
        """`write(value, out)`."""
        lines = ["pass"]
        for index, (names, how) in enumerate(self._runs):
            values = ", ".join(f"value.{name}" for name in names)
            if isinstance(how, struct.Struct):
                lines.append(f"out += {self._refer(f'w{index}', how.pack)}({values})")
            else:
                lines.append(f"{self._refer(f'w{index}', how.write)}({values}, out)")
        write: _Writer = self._build("write(value, out)", lines)
        return write

    def _refer(self, name: str, value: Any) -> str:
        self._names[name] = value
        return name

    def _build(self, signature: str, lines: list[str]) -> Any:
        source = f"def {signature}:\n    " + "\n    ".join(lines)
        exec(source, self._names)  # noqa: S102 - our own tables, never a peer's text
        return self._names[signature.partition("(")[0]]


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
        found, position = reader_of(cls, dialect)(payload, 0)
    except (struct.error, IndexError):
        raise Refused(ErrorCode.INVALID_COMMAND, f"a {cls.__name__} of {len(payload)} bytes is cut off") from None
    except UnicodeDecodeError:
        raise Refused(ErrorCode.INVALID_UTF8, f"text in a {cls.__name__} is not UTF-8") from None
    if whole and position != len(payload):
        raise Refused(ErrorCode.INVALID_COMMAND, f"{len(payload) - position} bytes follow a {cls.__name__}")
    return cast(M, found)


def encode(value: object, dialect: Dialect) -> bytearray:
    """The bytes of a message."""
    out = bytearray()
    writer_of(type(value), dialect)(value, out)
    return out
