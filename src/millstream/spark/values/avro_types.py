"""Avro schemas as column types, and values written by one schema as columns of another.

    Avro                                     column
    null in a union with a type              that type (every column may be null)
    boolean, int, long, float, double        boolean, int, bigint, float, double
    string, enum, uuid                       string
    bytes, fixed, duration                   binary
    record, array, map                       struct, array, map<string, ...>
    a union of int and long                  bigint
    a union of float, double, int, long      double
    decimal                                  decimal, of 38 digits at most
    date                                     date
    timestamp-millis, -micros, -nanos        timestamp, in microseconds
    local-timestamp-millis, -micros, -nanos  timestamp_ntz, likewise
    time-millis, time-micros                 int, bigint: the number itself

Other unions, a null alone, and records that contain themselves have no column type: they are refused with the path of
the field, unless the reader's schema leaves the field out.

Values are decoded by the schema that they were written with, and resolved against the reader's, column by column, as
Avro's rules for schema resolution say: by name or the reader's alias, a missing field as its default, numbers and
strings promoted.

Source: Apache Avro 1.12 specification, "Logical Types", "Schema Resolution".
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from millstream.spark.errors import BadSchema

__all__ = ["AvroNames", "Resolution", "column_type", "resolution"]

AvroNames = Mapping[str, Any]
"""Named types by full name, as fastavro.parse_schema collects them."""

_UTC: Final = "UTC"
_PRIMITIVES: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_TIMES: Final = {
    "date": ("int", pa.date32()),
    "timestamp-millis": ("long", pa.timestamp("ms", _UTC)),
    "timestamp-micros": ("long", pa.timestamp("us", _UTC)),
    "timestamp-nanos": ("long", pa.timestamp("ns", _UTC)),
    "local-timestamp-millis": ("long", pa.timestamp("ms")),
    "local-timestamp-micros": ("long", pa.timestamp("us")),
    "local-timestamp-nanos": ("long", pa.timestamp("ns")),
}
_NUMBERS: Final = ("int", "long", "float", "double")
_PROMOTIONS: Final = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}
_DECIMAL_DIGITS_MAX: Final = 38
_DEPTH_MAX: Final = 32
"""Types within types; Spark's own plans grow with the depth of a schema."""

Resolve = Callable[[Any], Any]


class Resolution(NamedTuple):
    """How values written by one schema become columns of another.

    Args:
        stored: the Arrow type of values as they were written, of the fields that are read only.
        resolve: makes an array of the reader's column type of one of that type.
    """

    stored: Any
    resolve: Resolve


def column_type(schema: Any, names: AvroNames) -> Any:
    """The Arrow type of the column that an Avro schema describes, times in microseconds.

    Args:
        schema, names: as fastavro.parse_schema gives them.

    Raises:
        BadSchema: it has none; the message names the field.
    """
    return column_type_at(schema, names, "")


def column_type_at(schema: Any, names: AvroNames, path: str) -> Any:
    """As `column_type`, of a part of a schema."""
    return _in_microseconds(_stored_type(schema, names, path))


def resolution(writer: Any, writer_names: AvroNames, reader: Any, reader_names: AvroNames) -> Resolution:
    """Plan how values of one schema become columns of another.

    Raises:
        BadSchema: the reader's schema does not read what was written with the writer's.
    """
    return _Planner(writer_names, reader_names).plan(writer, reader, "")


def _kind(schema: Any, names: AvroNames) -> tuple[Any, str]:
    """A type with its references resolved, and the name of its kind."""
    if isinstance(schema, list):
        return schema, "union"
    kind = schema if isinstance(schema, str) else schema["type"]
    if isinstance(kind, dict | list):
        return _kind(kind, names)
    if kind in names:
        return names[kind], names[kind]["type"]
    return schema, "record" if kind == "error" else kind


def _logical(schema: Any) -> str | None:
    return schema.get("logicalType") if isinstance(schema, dict) else None


def _branch(branches: Sequence[Any], names: AvroNames, path: str) -> Any:
    """The one type that a union is a column of; null is left out."""
    others = [branch for branch in branches if branch != "null"]
    if len(others) == 1:
        return others[0]
    if others and all(isinstance(one, str) and one in _NUMBERS for one in others):
        return "long" if set(others) == {"int", "long"} else "double"
    raise BadSchema(f"{_called(path)} is a union of several types, which has no column type")


def _called(path: str) -> str:
    return f"the Avro field {path!r}" if path else "the Avro schema"


def _stored_type(schema: Any, names: AvroNames, path: str) -> Any:
    if path.count(".") > _DEPTH_MAX:
        raise BadSchema(f"{_called(path[:60] + '...')} contains itself, or more than {_DEPTH_MAX} types")
    schema, kind = _kind(schema, names)
    match kind:
        case "union":
            return _stored_type(_branch(schema, names, path), names, path)
        case "record":
            fields = [
                (one["name"], _stored_type(one["type"], names, _under(path, one["name"]))) for one in schema["fields"]
            ]
            if not fields:
                raise BadSchema(f"{_called(path)} is a record without fields, which has no column type")
            return pa.struct(fields)
        case "array":
            return pa.list_(pa.field("element", _stored_type(schema["items"], names, _under(path, "item"))))
        case "map":
            return pa.map_(pa.string(), _stored_type(schema["values"], names, _under(path, "value")))
        case "enum":
            return pa.string()
        case "null":
            raise BadSchema(f"{_called(path)} is of the type null, which has no column type")
    return _plain_type(schema, kind, path)


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _plain_type(schema: Any, kind: str, path: str) -> Any:
    logical = _logical(schema)
    if logical == "decimal" and kind in {"bytes", "fixed"}:
        precision, scale = schema.get("precision", 0), schema.get("scale", 0)
        if not 0 <= scale <= precision <= _DECIMAL_DIGITS_MAX or not precision:
            raise BadSchema(f"{_called(path)} is a decimal of more than {_DECIMAL_DIGITS_MAX} digits")
        return pa.decimal128(precision, scale)
    if logical in _TIMES and _TIMES[logical][0] == kind:
        return _TIMES[logical][1]
    return pa.binary() if kind == "fixed" else _PRIMITIVES[kind]


def _in_microseconds(stored: Any) -> Any:
    """A type whose times are all in microseconds, as Spark has them."""
    if pa.types.is_timestamp(stored):
        return pa.timestamp("us", stored.tz)
    if pa.types.is_struct(stored):
        return pa.struct([(one.name, _in_microseconds(one.type)) for one in stored])
    if pa.types.is_map(stored):
        return pa.map_(stored.key_type, _in_microseconds(stored.item_type))
    if pa.types.is_list(stored):
        return pa.list_(pa.field("element", _in_microseconds(stored.value_type)))
    return stored


class _Planner:
    """Plans resolutions between two schemas.

    Args:
        writer_names, reader_names: named types of each.
    """

    def __init__(self, writer_names: AvroNames, reader_names: AvroNames) -> None:
        self._writer_names = writer_names
        self._reader_names = reader_names

    def plan(self, writer: Any, reader: Any, path: str) -> Resolution:
        writer, writer_kind = _kind(writer, self._writer_names)
        reader, reader_kind = _kind(reader, self._reader_names)
        if reader_kind == "union":
            return self.plan(writer, _branch(reader, self._reader_names, path), path)
        if writer_kind == "union":
            return self.plan(_branch(writer, self._writer_names, path), reader, path)
        match writer_kind, reader_kind:
            case "record", "record":
                return self._plan_record(writer, reader, path)
            case "array", "array":
                return self._plan_array(writer, reader, path)
            case "map", "map":
                return self._plan_map(writer, reader, path)
            case "enum", "enum":
                return _plan_enum(writer, reader, path)
        return _plan_plain(writer, writer_kind, reader, reader_kind, path)

    def _plan_record(self, writer: Any, reader: Any, path: str) -> Resolution:
        written = {field["name"]: field for field in writer["fields"]}
        stored: list[tuple[str, Any]] = []
        wanted: list[tuple[str, Any]] = []
        columns: list[Callable[[Any], Any]] = []
        for field in reader["fields"]:
            name, kind = field["name"], column_type_at(field["type"], self._reader_names, _under(path, field["name"]))
            wanted.append((name, kind))
            source = next((one for one in (name, *field.get("aliases", ())) if one in written), None)
            if source is not None:
                part = self.plan(written[source]["type"], field["type"], _under(path, name))
                is_needed = self._is_nullable(written[source]["type"], self._writer_names) and not self._is_nullable(
                    field["type"], self._reader_names
                )
                columns.append(_field(len(stored), part.resolve, _under(path, name) if is_needed else None))
                stored.append((source, part.stored))
            elif "default" in field:
                columns.append(_default(_plain_default(field["type"], field["default"], self._reader_names), kind))
            else:
                raise BadSchema(
                    f"{_called(_under(path, name))} was not written, and the reader's schema has no default"
                )
        if not columns:
            raise BadSchema(f"{_called(path)} is a record without fields, which has no column type")

        def resolve(array: Any) -> Any:
            arrays = [column(array) for column in columns]
            return pa.StructArray.from_arrays(arrays, fields=list(pa.struct(wanted)), mask=array.is_null())

        return Resolution(pa.struct(stored), resolve)

    def _is_nullable(self, schema: Any, names: AvroNames) -> bool:
        schema, kind = _kind(schema, names)
        return kind == "union" and "null" in schema

    def _plan_array(self, writer: Any, reader: Any, path: str) -> Resolution:
        item = self.plan(writer["items"], reader["items"], _under(path, "item"))
        wanted = _in_microseconds(_stored_type(reader, self._reader_names, path))

        def resolve(array: Any) -> Any:
            return pa.ListArray.from_arrays(array.offsets, item.resolve(array.values), wanted, mask=array.is_null())

        return Resolution(pa.list_(pa.field("element", item.stored)), resolve)

    def _plan_map(self, writer: Any, reader: Any, path: str) -> Resolution:
        value = self.plan(writer["values"], reader["values"], _under(path, "value"))
        wanted = _in_microseconds(_stored_type(reader, self._reader_names, path))

        def resolve(array: Any) -> Any:
            return pa.MapArray.from_arrays(
                array.offsets, array.keys, value.resolve(array.items), wanted, mask=array.is_null()
            )

        return Resolution(pa.map_(pa.string(), value.stored), resolve)


def _plan_enum(writer: Any, reader: Any, path: str) -> Resolution:
    unknown = set(writer["symbols"]) - set(reader["symbols"])
    if not unknown:
        return Resolution(pa.string(), _unchanged)
    default = reader.get("default")

    def resolve(array: Any) -> Any:
        is_known = pc.is_in(array, pa.array(reader["symbols"]))
        is_unknown = pc.and_(pc.invert(is_known), array.is_valid())
        if default is None and pc.any(is_unknown).as_py():
            raise ValueError(f"{_called(path)} holds a symbol that the reader's schema does not have")
        return pc.if_else(is_unknown, default, array)

    return Resolution(pa.string(), resolve)


def _plan_plain(writer: Any, writer_kind: str, reader: Any, reader_kind: str, path: str) -> Resolution:
    """Plan for what holds no other types."""
    is_same = writer_kind == reader_kind and (writer_kind != "fixed" or writer["size"] == reader["size"])
    is_plain = reader_kind in _PRIMITIVES or reader_kind == "fixed"
    if not is_plain or not (is_same or (writer_kind, reader_kind) in _PROMOTIONS):
        raise BadSchema(f"{_called(path)} was written as {writer_kind} and cannot be read as {reader_kind}")
    stored, wanted = _plain_type(writer, writer_kind, path), _plain_type(reader, reader_kind, path)
    if pa.types.is_decimal(stored) or pa.types.is_decimal(wanted):
        if stored != wanted:
            raise BadSchema(f"{_called(path)} was written as {stored} and cannot be read as {wanted}")
        return Resolution(stored, _unchanged)
    if is_same and _logical(writer) not in _TIMES:
        # What a number means is for the reader to say, where the writer did not.
        stored = wanted
    elif is_same and _logical(reader) not in _TIMES:
        stored = wanted
    wanted = _in_microseconds(wanted)
    is_number = writer_kind in _NUMBERS and reader_kind in {"float", "double"}
    is_safe = not is_number and not (pa.types.is_timestamp(stored) and stored.unit == "ns")
    return Resolution(stored, _unchanged if stored == wanted else lambda array: array.cast(wanted, safe=is_safe))


def _unchanged(array: Any) -> Any:
    return array


def _field(index: int, resolve: Resolve, required_path: str | None) -> Callable[[Any], Any]:
    """Takes a field of an array of records; if it is required, it may be null only where its record is."""

    def column(array: Any) -> Any:
        values = array.field(index)
        if required_path is not None and pc.any(pc.and_(values.is_null(), array.is_valid())).as_py():
            raise ValueError(f"{_called(required_path)} is null, and the reader's schema does not allow it")
        return resolve(values)

    return column


def _default(value: object, kind: Any) -> Callable[[Any], Any]:
    """Makes an array of a default, null where the record is."""
    one = pa.array([value], kind)

    def column(array: Any) -> Any:
        return one.take(pa.array([0] * len(array), pa.int32()))

    return column


def _plain_default(schema: Any, default: Any, names: AvroNames) -> Any:
    """A default as Avro's JSON form has it, as what an Arrow array is made of; bytes are text there."""
    schema, kind = _kind(schema, names)
    match kind:
        case "union":
            # The default is of the first branch, as the specification says; libraries allow one of any branch.
            return None if default is None else _plain_default(_branch(schema, names, ""), default, names)
        case "bytes" | "fixed":
            data = str(default).encode("latin-1")
            if _logical(schema) == "decimal":
                return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-schema.get("scale", 0))
            return data
        case "record":
            return {
                one["name"]: _plain_default(one["type"], default.get(one["name"], one.get("default")), names)
                for one in schema["fields"]
            }
        case "array":
            return [_plain_default(schema["items"], item, names) for item in default]
        case "map":
            return [(key, _plain_default(schema["values"], value, names)) for key, value in default.items()]
    return _in_unit(schema, kind, default)


def _in_unit(schema: Any, kind: str, default: Any) -> Any:
    stored = _plain_type(schema, kind, "") if kind != "enum" else pa.string()
    if pa.types.is_timestamp(stored):
        return pa.scalar(default, stored).cast(_in_microseconds(stored), safe=False).value
    return default
