"""Protobuf: messages decoded by a descriptor, as columns.

    Protobuf                                column
    bool, float, double, string, bytes      boolean, float, double, string, binary
    int32, sint32, sfixed32                 int
    int64, sint64, sfixed64, (u)fixed32     bigint
    uint64, fixed64                         decimal(20, 0)
    enum                                    string: the name, or the number where the schema has no name for it
    message                                 struct
    repeated, map                           array, map
    google.protobuf.Timestamp               timestamp, in microseconds
    google.protobuf.Duration                interval day to second, in microseconds
    google.protobuf.*Value                  what it wraps

A field that knows whether it is set (`optional`, a message, one of a oneof) is null where it is not; any other has
its default then, as in every language. Fields that the descriptor does not know are passed over: that is how
Protobuf's schemas change. For the same reason nearly any bytes may be a message of nearly any type, with nothing
set: what is no Protobuf at all is not always found out.

A message that contains itself has no column type, and is refused with the path of the field.

Source: Protocol Buffers documentation, "Encoding", "Well-Known Types".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message

from millstream.spark.errors import BadSchema
from millstream.spark.values.framing import Undecodable

__all__ = ["ProtobufDecoder", "descriptor_set_of"]

_Field = FieldDescriptor
_SCALARS: Final = {
    _Field.TYPE_DOUBLE: pa.float64(),
    _Field.TYPE_FLOAT: pa.float32(),
    _Field.TYPE_INT64: pa.int64(),
    _Field.TYPE_UINT64: pa.decimal128(20, 0),
    _Field.TYPE_INT32: pa.int32(),
    _Field.TYPE_FIXED64: pa.decimal128(20, 0),
    _Field.TYPE_FIXED32: pa.int64(),
    _Field.TYPE_BOOL: pa.bool_(),
    _Field.TYPE_STRING: pa.string(),
    _Field.TYPE_BYTES: pa.binary(),
    _Field.TYPE_UINT32: pa.int64(),
    _Field.TYPE_ENUM: pa.string(),
    _Field.TYPE_SFIXED32: pa.int32(),
    _Field.TYPE_SFIXED64: pa.int64(),
    _Field.TYPE_SINT32: pa.int32(),
    _Field.TYPE_SINT64: pa.int64(),
}
_WRAPPERS: Final = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_DURATION: Final = "google.protobuf.Duration"
_MICROSECONDS: Final = 1_000_000
_DEPTH_MAX: Final = 32
_INDEXES_MAX: Final = 32
"""Depth of messages within messages that Confluent's framing may name."""

Shape = Callable[[Any], Any]
"""Makes what an Arrow array is made of from the value of a field."""


def descriptor_set_of(descriptor: Descriptor) -> bytes:
    """The FileDescriptorSet of a generated message's file and all that it imports."""
    files: dict[str, FileDescriptorProto] = {}

    def add(file: Any) -> None:
        if file.name not in files:
            for imported in file.dependencies:
                add(imported)
            files[file.name] = FileDescriptorProto()
            file.CopyToProto(files[file.name])

    add(descriptor.file)
    return FileDescriptorSet(file=files.values()).SerializeToString()


@dataclass
class ProtobufDecoder:
    """Decodes messages of one type.

    Args:
        descriptors: a serialized FileDescriptorSet, with all that is imported (`protoc --include_imports`).
        message: full name of the message.
        has_indexes: whether the indexes of the message stand before it, as Confluent's serializers write them.

    Raises (by `type`):
        BadSchema: the descriptors are none, or the message is not among them or has no column type.
    """

    descriptors: bytes
    message: str
    has_indexes: bool = False
    _made: "_Shaped | None" = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # Message classes are made anew where they are used.
        return {**self.__dict__, "_made": None}

    @property
    def type(self) -> Any:
        """The Arrow type of the columns."""
        return self._shaped.type

    @property
    def _shaped(self) -> "_Shaped":
        if self._made is None:
            self._made = _Shaped(_descriptor(self.descriptors, self.message))
        return self._made

    def parse(self, value: bytes, schema_id: int | None) -> object:
        """Decode one value; see `arrow_decoder.Decoder`."""
        shaped = self._shaped
        if self.has_indexes:
            indexes, position = _indexes(value)
            if indexes != shaped.indexes:
                raise Undecodable(f"it is the message {indexes} of its file, not {shaped.indexes}, {self.message}")
            value = value[position:]
        try:
            message = shaped.message_class.FromString(value)
        except DecodeError as error:
            raise Undecodable(f"it is not a {self.message}: {error}") from None
        if not message.IsInitialized():
            raise Undecodable(f"it is not a {self.message}: a required field is missing")
        return shaped.shape(message)

    def convert(self, parsed: Sequence[object]) -> Any:
        """Make an array of decoded values; see `arrow_decoder.Decoder`."""
        return pa.array(parsed, self._shaped.type)


class _Shaped:
    """A message's class, its column type, and what takes its fields out."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.message_class: type[Message] = message_factory.GetMessageClass(descriptor)
        self.type, self.shape = _message(descriptor, descriptor.full_name, ())
        self.indexes = _indexes_of(descriptor)


def _descriptor(descriptors: bytes, name: str) -> Descriptor:
    try:
        files = FileDescriptorSet.FromString(descriptors)
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        found: Descriptor = pool.FindMessageTypeByName(name)
    except DecodeError:
        raise BadSchema("the descriptors are no FileDescriptorSet; protoc --descriptor_set_out writes one") from None
    except KeyError:
        raise BadSchema(
            f"there is no message {name!r} in the descriptors, or something is missing that its file imports "
            "(protoc --include_imports)"
        ) from None
    except TypeError as error:
        raise BadSchema(f"the descriptors contradict themselves or lack imports: {error}") from None
    return found


def _message(descriptor: Descriptor, path: str, within: tuple[str, ...]) -> tuple[Any, Shape]:
    """The column type of a message, and what makes a dict of one."""
    if descriptor.full_name in within or len(within) > _DEPTH_MAX:
        raise BadSchema(f"the Protobuf field {path} is a message within itself, which has no column type")
    if not descriptor.fields:
        raise BadSchema(f"the Protobuf field {path} is a message without fields, which has no column type")
    parts = []
    for one in descriptor.fields:
        kind, shape = _repeatable(one, f"{path}.{one.name}", (*within, descriptor.full_name))
        is_optional = one.has_presence and (one.message_type is not None or not one.has_default_value)
        parts.append((one.name, kind, shape, is_optional))
    plain = [(name, shape) for name, _, shape, is_optional in parts if not is_optional]
    optional = [(name, shape) for name, _, shape, is_optional in parts if is_optional]

    def take(message: Any) -> Any:
        row = {name: shape(getattr(message, name)) for name, shape in plain}
        for name, shape in optional:
            if message.HasField(name):
                row[name] = shape(getattr(message, name))
        return row

    return pa.struct([(name, kind) for name, kind, *_ in parts]), take


def _repeatable(one: FieldDescriptor, path: str, within: tuple[str, ...]) -> tuple[Any, Shape]:
    entry = one.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, key_shape = _single(entry.fields_by_name["key"], path, within)
        value, value_shape = _single(entry.fields_by_name["value"], path, within)
        return pa.map_(key, value), lambda items: [(key_shape(name), value_shape(items[name])) for name in items]
    kind, shape = _single(one, path, within)
    if one.is_repeated:
        return pa.list_(pa.field("element", kind)), lambda items: [shape(item) for item in items]
    return kind, shape


def _single(one: FieldDescriptor, path: str, within: tuple[str, ...]) -> tuple[Any, Shape]:
    if one.enum_type is not None:
        names = {value.number: value.name for value in reversed(one.enum_type.values)}
        return pa.string(), lambda number: names.get(number) or str(number)
    if one.message_type is None:
        kind = _SCALARS[one.type]
        return kind, Decimal if pa.types.is_decimal(kind) else _same
    name = one.message_type.full_name
    if name == _TIMESTAMP:
        return pa.timestamp("us", "UTC"), _microseconds
    if name == _DURATION:
        return pa.duration("us"), _microseconds
    if name in _WRAPPERS:
        kind, shape = _single(one.message_type.fields_by_name["value"], path, within)
        return kind, lambda wrapper: shape(wrapper.value)
    return _message(one.message_type, path, within)


def _same(value: Any) -> Any:
    return value


def _microseconds(time: Any) -> int:
    # Nanoseconds are cut off towards the past, as Spark does.
    return int(time.seconds) * _MICROSECONDS + int(time.nanos) // 1000


def _indexes_of(descriptor: Descriptor) -> list[int]:
    """Where a message stands in its file: its index, below those of the messages that contain it."""
    indexes: list[int] = []
    inner: Descriptor | None = descriptor
    while inner is not None:
        outer: Descriptor | None = inner.containing_type
        siblings = inner.file.message_types_by_name.values() if outer is None else outer.nested_types
        indexes.insert(0, [one.full_name for one in siblings].index(inner.full_name))
        inner = outer
    return indexes


def _indexes(value: bytes) -> tuple[list[int], int]:
    """Read the indexes that Confluent's serializers write; a single 0 stands for the first message."""
    count, position = _zigzag(value, 0)
    if count == 0:
        return [0], position
    if not 0 < count <= _INDEXES_MAX:
        raise Undecodable("it does not begin with the indexes of its message")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(value, position)
        indexes.append(index)
    return indexes, position


def _zigzag(value: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(value) or shift > 35:
            raise Undecodable("it does not begin with the indexes of its message")
        byte = value[position]
        result |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), position
