"""Kafka messages as data: one dataclass for all versions of a message, compiled to a codec for each version.

A message is a dataclass whose fields are made by the functions below (`int32()`, `string()`, `array()`, ...).
Each field says since which version it is on the wire, until which, whether it may be null and, for a tagged
field (KIP-482), its tag. `compiled_decoder` and `compiled_encoder` write the straight-line Python for one
message and version at its first use: runs of numbers become one `struct` call, nested structs are inlined.

The field tables in `millstream.wire.kafka.messages` carry the facts of Apache Kafka's message definitions
(clients/src/main/resources/common/message/*.json); the tests hold them against an independent codec.
"""

import dataclasses
import struct
import uuid
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeVar, cast, dataclass_transform

from millstream.wire.kafka import primitives
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.limits import ARRAY_ENTRIES_MAX

__all__ = [
    "OWN_TAGS",
    "Buffer",
    "Field",
    "array",
    "boolean",
    "bytes_",
    "compiled_decoder",
    "compiled_encoder",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "message",
    "records",
    "string",
    "struct_",
    "uint16",
    "uuid_",
]

Buffer = bytes | bytearray | memoryview
T = TypeVar("T")
Decoder = Callable[[memoryview, int], tuple[T, int]]
"""Takes a frame and a position in it; returns the message and the position behind it."""
Encoder = Callable[[Any, bytearray], list[Buffer]]
"""Takes a message and the bytes to put before it; returns buffers which, joined, are both."""

_FORMATS: Final = {
    "boolean": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
}
_LAST_VERSION: Final = 32767
NO_UUID: Final = uuid.UUID(int=0)
OWN_TAGS: Final = 10_000
"""From this tag on, fields are Millstream's own. Kafka numbers its tags from 0, and has no more than a few."""


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """How one field of a message travels.

    Args:
        kind: a key of `_FORMATS`, or "string", "bytes", "records", "uuid", "array".
        since, until: the first and last version in which the field is on the wire.
        nullable_since: the first version in which null is allowed, None for never.
        tag: the tag under which the field travels, None for a field in the fixed part.
        element: for an array, the kind of its elements or the dataclass of them; for a struct, its dataclass.
        default: makes the value of an absent field.
    """

    kind: str
    since: int
    until: int
    nullable_since: int | None
    tag: int | None
    element: Any = None
    default: Callable[[], Any] = lambda: None

    def nullable(self, version: int) -> bool:
        """Whether null may stand for the field in this version."""
        return self.nullable_since is not None and version >= self.nullable_since


def _field(
    kind: str,
    default: Any,
    *,
    since: int,
    until: int | None,
    nullable: int | None,
    tag: int | None,
    element: Any = None,
) -> Any:
    last = _LAST_VERSION if until is None else until
    made_anew = default is list or (kind == "struct" and default is element)
    factory = default if made_anew else lambda: default
    metadata = {"kafka": Field(kind, since, last, nullable, tag, element, factory)}
    if made_anew:
        return dataclasses.field(default_factory=factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _primitive(kind: str, zero: Any) -> Callable[..., Any]:
    def make(
        *,
        since: int = 0,
        until: int | None = None,
        nullable: int | None = None,
        tag: int | None = None,
        default: Any = zero,
    ) -> Any:
        return _field(kind, default, since=since, until=until, nullable=nullable, tag=tag)

    make.__name__ = kind
    make.__doc__ = f"A field of kind {kind}: the versions it is in, null since, tag, and its value where absent."
    return make


boolean = _primitive("boolean", False)
int8 = _primitive("int8", 0)
int16 = _primitive("int16", 0)
uint16 = _primitive("uint16", 0)
int32 = _primitive("int32", 0)
int64 = _primitive("int64", 0)
float64 = _primitive("float64", 0.0)
string = _primitive("string", "")
bytes_ = _primitive("bytes", b"")
records = _primitive("records", None)
uuid_ = _primitive("uuid", NO_UUID)


def array(
    element: Any,
    *,
    since: int = 0,
    until: int | None = None,
    nullable: int | None = None,
    tag: int | None = None,
    default: Any = list,
) -> Any:
    """A field that holds a list of primitives (named by their kind) or of structs (by their dataclass)."""
    return _field("array", default, since=since, until=until, nullable=nullable, tag=tag, element=element)


def struct_(
    element: Any,
    *,
    since: int = 0,
    until: int | None = None,
    nullable: int | None = None,
    tag: int | None = None,
    default: Any = dataclasses.MISSING,
) -> Any:
    """A field that is itself a struct; absent, it holds an empty one unless `default` says otherwise."""
    value = element if default is dataclasses.MISSING else default
    return _field("struct", value, since=since, until=until, nullable=nullable, tag=tag, element=element)


@dataclass_transform(kw_only_default=True)
def message(cls: type[T]) -> type[T]:
    """Make a class of the fields above into a message or a struct of one: slotted, keyword arguments only."""
    # A server has more than a hundred of these to make before it is ready, and what each has in common with the
    # others need not be compiled for each.
    made: Any = dataclasses.dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)(cls)
    made.__eq__, made.__repr__ = _equal, _shown
    return cast(type[T], made)


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and all(getattr(one, name) == getattr(other, name) for name in one.__slots__)


def _shown(one: Any) -> str:
    return f"{type(one).__name__}({', '.join(f'{name}={getattr(one, name)!r}' for name in one.__slots__)})"


def fields_of(cls: type) -> list[tuple[str, Field]]:
    """The fields of a message in wire order, with how each travels."""
    return [(f.name, f.metadata["kafka"]) for f in dataclasses.fields(cls)]


def _in_version(cls: type, version: int) -> tuple[list[tuple[str, Field]], list[tuple[str, Field]]]:
    """The fields of the fixed part and the tagged ones of a version."""
    present = [(name, f) for name, f in fields_of(cls) if f.since <= version <= f.until]
    return [p for p in present if p[1].tag is None], [p for p in present if p[1].tag is not None]


class _Source:
    """Lines of a function that is being written, and the objects it refers to."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.names: dict[str, Any] = {
            "Malformed": MalformedMessage,
            "UUID": uuid.UUID,
            "NO_UUID": NO_UUID,
            "uvarint": primitives.read_unsigned_varint,
            "write_uvarint": primitives.unsigned_varint,
            "read_tags": primitives.read_tags,
            "UV": primitives.SMALL_UNSIGNED_VARINTS,
        }
        self.lines: list[str] = []
        self.depth = 1
        self.counter = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def variable(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def refer(self, prefix: str, value: Any) -> str:
        """A name for an object within the function."""
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def packer(self, fmt: str) -> str:
        name = f"S_{fmt.replace('?', 'o')}"
        self.names.setdefault(name, struct.Struct(">" + fmt))
        return name

    def build(self, signature: str, name: str) -> Any:
        source = f"def {signature}:\n" + "\n".join(self.lines) + "\n"
        exec(compile(source, f"<{name}>", "exec"), self.names)  # noqa: S102 - our own tables, never a peer's text
        return self.names[signature.partition("(")[0]]


class _DecoderSource(_Source):
    """Writes `decode(buf, pos)`; `buf` is a memoryview that ends where the frame ends."""

    def struct(self, cls: type) -> str:
        fixed, tagged = _in_version(cls, self.version)
        values: dict[str, str] = {}
        run: list[tuple[str, Field]] = []
        for name, field in fixed:
            if field.kind in _FORMATS:
                run.append((name, field))
                continue
            self._numbers(run, values)
            run = []
            values[name] = self.value(field)
        self._numbers(run, values)
        if self.flexible:
            self._tags(tagged, values)
        result = self.variable()
        arguments = ", ".join(f"{name}={value}" for name, value in values.items())
        self.add(f"{result} = {self.refer('C', cls)}({arguments})")
        return result

    def _numbers(self, run: list[tuple[str, Field]], values: dict[str, str]) -> None:
        if not run:
            return
        fmt = "".join(_FORMATS[field.kind] for _, field in run)
        variables = [self.variable() for _ in run]
        self.add(f"{', '.join(variables)}, = {self.packer(fmt)}.unpack_from(buf, pos)")
        self.add(f"pos += {struct.calcsize('>' + fmt)}")
        values.update(zip((name for name, _ in run), variables, strict=True))

    def _tags(self, tagged: Sequence[tuple[str, Field]], values: dict[str, str]) -> None:
        if not tagged:
            self.add("if buf[pos]: _, pos = read_tags(buf, pos)")
            self.add("else: pos += 1")
            return
        tags = self.variable()
        known = self.refer("K", frozenset(field.tag for _, field in tagged))
        self.add(f"{tags}, pos = read_tags(buf, pos, {known})")
        for name, field in tagged:
            result, whole, after = self.variable(), self.variable(), self.variable()
            self.add(f"{result} = {self.refer('D', field.default)}()")
            self.add(f"if {field.tag} in {tags}:")
            self.depth += 1
            self.add(f"{whole}, {after} = buf, pos")
            self.add(f"buf = {tags}[{field.tag}]; pos = 0; end = len(buf)")
            value = self._single(field)
            self.add(f"{result} = {value}")
            self.add(f"buf, pos = {whole}, {after}; end = len(buf)")
            self.depth -= 1
            values[name] = result

    def _single(self, field: Field) -> str:
        if field.kind in _FORMATS:
            values: dict[str, str] = {}
            self._numbers([("value", field)], values)
            return values["value"]
        return self.value(field)

    def value(self, field: Field) -> str:
        if field.kind == "uuid":
            return self._uuid()
        if field.kind == "struct":
            return self._nested(field)
        length = self._length(short=field.kind == "string")
        result = self.variable()
        self.add(f"if {length} < 0:")
        if field.nullable(self.version) or field.kind == "records":
            self.add(f"    {result} = None")
        else:
            self.add(f"    raise Malformed('a {field.kind} that must not be null is null')")
        self.add(f"elif {length} > end - pos:")
        self.add(f"    raise Malformed('a {field.kind} is longer than its frame')")
        self.add("else:")
        self.depth += 1
        if field.kind == "array":
            self._array(field, length, result)
        else:
            stop = self.variable()
            self.add(f"{stop} = pos + {length}")
            slice_ = f"buf[pos:{stop}]"
            wrapped = {"string": f"str({slice_}, 'utf-8')", "bytes": f"bytes({slice_})", "records": slice_}
            self.add(f"{result} = {wrapped[field.kind]}")
            self.add(f"pos = {stop}")
        self.depth -= 1
        return result

    def _uuid(self) -> str:
        result = self.variable()
        self.add("if end - pos < 16: raise Malformed('a uuid is cut off')")
        self.add(f"{result} = UUID(bytes=bytes(buf[pos:pos + 16]))")
        self.add("pos += 16")
        return result

    def _nested(self, field: Field) -> str:
        result = self.variable()
        if not field.nullable(self.version):
            self.add(f"{result} = {self.struct(field.element)}")
            return result
        present = self.variable()
        self.add(f"{present}, = {self.packer('b')}.unpack_from(buf, pos)")
        self.add("pos += 1")
        self.add(f"{result} = None")
        self.add(f"if {present} >= 0:")
        self.depth += 1
        self.add(f"{result} = {self.struct(field.element)}")
        self.depth -= 1
        return result

    def _length(self, *, short: bool) -> str:
        length = self.variable()
        if self.flexible:
            self.add(f"{length} = buf[pos]; pos += 1")
            self.add(f"if {length} > 127: {length}, pos = uvarint(buf, pos - 1)")
            self.add(f"{length} -= 1")
        else:
            fmt, size = ("h", 2) if short else ("i", 4)
            self.add(f"{length}, = {self.packer(fmt)}.unpack_from(buf, pos)")
            self.add(f"pos += {size}")
        return length

    def _array(self, field: Field, length: str, result: str) -> None:
        element = field.element
        if isinstance(element, str) and element in _FORMATS:
            fmt = _FORMATS[element]
            size = struct.calcsize(">" + fmt)
            self.names.setdefault("unpack_from", struct.unpack_from)
            self.add(f"if {length} * {size} > end - pos: raise Malformed('an array is longer than its frame')")
            self.add(f"{result} = list(unpack_from(f'>{{{length}}}{fmt}', buf, pos))")
            self.add(f"pos += {length} * {size}")
            return
        self.add(f"entries += {length}")
        self.add(f"if entries > {ARRAY_ENTRIES_MAX}: raise Malformed('a message has too many entries in its arrays')")
        self.add(f"{result} = []")
        self.add(f"for _ in range({length}):")
        self.depth += 1
        if isinstance(element, str):
            value = self.value(Field(element, 0, _LAST_VERSION, None, None))
        else:
            value = self.struct(element)
        self.add(f"{result}.append({value})")
        self.depth -= 1


class _EncoderSource(_Source):
    """Writes `encode(m, out)`; `out` is a bytearray to go on from, the result a list of buffers."""

    def struct(self, cls: type, instance: str) -> None:
        fixed, tagged = _in_version(cls, self.version)
        run: list[tuple[str, Field]] = []
        for name, field in fixed:
            if field.kind in _FORMATS:
                run.append((name, field))
                continue
            self._numbers(run, instance)
            run = []
            self.value(field, f"{instance}.{name}")
        self._numbers(run, instance)
        if self.flexible:
            self._tags(tagged, instance)

    def _numbers(self, run: list[tuple[str, Field]], instance: str) -> None:
        if run:
            fmt = "".join(_FORMATS[field.kind] for _, field in run)
            self.add(f"out += {self.packer(fmt)}.pack({', '.join(f'{instance}.{name}' for name, _ in run)})")

    def _tags(self, tagged: Sequence[tuple[str, Field]], instance: str) -> None:
        if not tagged:
            self.add("out.append(0)")
            return
        sections = self.variable()
        self.add(f"{sections} = []")
        for name, field in sorted(tagged, key=lambda pair: pair[1].tag or 0):
            whole = self.variable()
            self.add(f"if {instance}.{name} != {self.refer('D', field.default())}:")
            self.depth += 1
            self.add(f"{whole} = out; out = bytearray()")
            if field.kind in _FORMATS:
                self._numbers([(name, field)], instance)
            else:
                self.value(field, f"{instance}.{name}")
            self.add(f"{sections}.append(({field.tag}, out)); out = {whole}")
            self.depth -= 1
        tag, body = self.variable(), self.variable()
        self.add(f"out += write_uvarint(len({sections}))")
        self.add(f"for {tag}, {body} in {sections}:")
        self.add(f"    out += write_uvarint({tag}); out += write_uvarint(len({body})); out += {body}")

    def value(self, field: Field, expression: str) -> None:
        value = self.variable()
        self.add(f"{value} = {expression}")
        if field.kind == "uuid":
            self.add(f"out += {value}.bytes")
            return
        if field.kind == "struct":
            self._nested(field, value)
            return
        nullable = field.nullable(self.version) or field.kind == "records"
        if nullable:
            self.add(f"if {value} is None:")
            self.add(f"    out += {self._null(field)}")
            self.add("else:")
            self.depth += 1
        if field.kind == "string":
            self.add(f"{value} = {value}.encode()")
        self._length(f"len({value})", short=field.kind == "string")
        if field.kind == "array":
            self._array(field, value)
        elif field.kind == "records":
            # The body of a batch is never copied: it becomes a buffer of its own.
            self.add(f"if {value}: parts.append({value}); out = bytearray(); parts.append(out)")
        else:
            self.add(f"out += {value}")
        if nullable:
            self.depth -= 1

    def _null(self, field: Field) -> str:
        if self.flexible:
            return r"b'\x00'"
        return r"b'\xff\xff'" if field.kind == "string" else r"b'\xff\xff\xff\xff'"

    def _nested(self, field: Field, value: str) -> None:
        if not field.nullable(self.version):
            self.struct(field.element, value)
            return
        self.add(f"if {value} is None:")
        self.add(r"    out += b'\xff'")
        self.add("else:")
        self.depth += 1
        self.add(r"out += b'\x01'")
        self.struct(field.element, value)
        self.depth -= 1

    def _length(self, expression: str, *, short: bool) -> None:
        if self.flexible:
            length = self.variable()
            self.add(f"{length} = {expression} + 1")
            self.add(f"out += UV[{length}] if {length} < 128 else write_uvarint({length})")
        else:
            self.add(f"out += {self.packer('h' if short else 'i')}.pack({expression})")

    def _array(self, field: Field, value: str) -> None:
        element = field.element
        if isinstance(element, str) and element in _FORMATS:
            self.names.setdefault("pack", struct.pack)
            self.add(f"out += pack(f'>{{len({value})}}{_FORMATS[element]}', *{value})")
            return
        item = self.variable()
        self.add(f"for {item} in {value}:")
        self.depth += 1
        if isinstance(element, str):
            self.value(Field(element, 0, _LAST_VERSION, None, None), item)
        else:
            self.struct(element, item)
        self.depth -= 1


@cache
def compiled_decoder(cls: type[T], version: int, *, flexible: bool) -> Decoder[T]:
    """A function that decodes one version of a message.

    Args:
        cls: the message, a class made by `message`.
        version: the version on the wire; the caller has checked that the message has it.
        flexible: whether the version has compact lengths and tagged fields.

    Returns:
        `decode(view, position) -> (message, position behind it)`. It raises MalformedMessage and nothing else
        on any bytes. Fields of kind "records" are views into the frame; all others are copies.
    """
    source = _DecoderSource(version, flexible)
    source.add("end = len(buf)")
    source.add("entries = 0")
    source.add("try:")
    source.depth += 1
    result = source.struct(cls)
    source.depth -= 1
    source.names["errors"] = (struct.error, IndexError, UnicodeDecodeError)
    source.add("except errors as error:")
    source.add(f"    raise Malformed(f'{cls.__name__} v{version}: {{error}}') from None")
    source.add(f"return {result}, pos")
    decoder: Decoder[T] = source.build("decode(buf, pos)", f"decode {cls.__name__} v{version}")
    return decoder


@cache
def compiled_encoder(cls: type, version: int, *, flexible: bool) -> Encoder:
    """A function that encodes one version of a message.

    Args:
        cls, version, flexible: as for `compiled_decoder`.

    Returns:
        `encode(message, head) -> buffers`: `head` (a bytearray, such as a header) comes first and is grown in
        place; a records body is its own buffer, not copied. What the version lacks is left out.
    """
    source = _EncoderSource(version, flexible)
    source.add("parts = [out]")
    source.struct(cls, "m")
    source.add("return parts")
    encoder: Encoder = source.build("encode(m, out)", f"encode {cls.__name__} v{version}")
    return encoder
