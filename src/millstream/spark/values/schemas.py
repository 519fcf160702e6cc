"""What users give as a schema, as what the formats take."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pyspark.sql.types import StructField, StructType

from millstream.spark.errors import BadSchema
from millstream.spark.values.framing import Framing
from millstream.spark.values.registry import Registered, RegisteredSchema
from millstream.wire.pulsar.pulsar_pb2 import Schema

__all__ = ["ArrowFormat", "arrow_decoder_of", "struct_of"]

_AVRO_DESCRIBED: Final = {Schema.Avro, Schema.Json, Schema.Protobuf}
_EXISTS_DEFAULT: Final = "EXISTS_DEFAULT"
_CURRENT_DEFAULT: Final = "CURRENT_DEFAULT"


class ArrowFormat(NamedTuple):
    """How Python workers decode.

    Args:
        type: the Arrow type of the column.
        function: what an Arrow UDF is made of.
    """

    type: Any
    function: Any


def arrow_decoder_of(how: str, schema: Any, message: str | None, framing: Framing) -> ArrowFormat | None:
    """What decodes a format in Python workers; None for a format that Spark decodes itself.

    Raises:
        BadSchema: the schema cannot be used.
    """
    if how == "avro":
        decoder: Any = _avro(schema, framing)
    elif how == "protobuf":
        decoder = _protobuf(schema, message, framing)
    elif how == "bytes" and schema is not None and str(schema).strip().lower() != "binary":
        from millstream.spark.values.plain_values import NumberDecoder

        decoder = NumberDecoder(str(schema).strip().lower())
    elif how == "text" and schema is not None and str(schema).upper() not in {"UTF-8", "UTF8"}:
        from millstream.spark.values.plain_values import CharsetDecoder

        decoder = CharsetDecoder(str(schema))
    else:
        return None
    from millstream.spark.values.arrow_decoder import ArrowDecoder

    apply = ArrowDecoder(decoder, framing)
    # Spark wants a function, and would take hints at its parameters for a choice among kinds of functions.
    return ArrowFormat(decoder.type, lambda values, versions: apply(values, versions))


def _avro(schema: Any, framing: Framing) -> Any:
    from millstream.spark.values.avro import AvroDecoder
    from millstream.spark.values.registry import version_lookup

    if isinstance(schema, Registered):
        if framing is not Framing.NONE:
            raise BadSchema("a registered schema is Pulsar's, whose clients do not write Confluent's framing")
        found = _of_types(schema, {Schema.Avro}, "avro")
        only = found.version if found.version == 0 else None
        unnumbered = schema.unversioned if schema.unversioned is not None else only
        return AvroDecoder(found.definition.decode("utf-8", "replace"), version_lookup(schema), unnumbered)
    if isinstance(schema, Mapping) and schema and all(isinstance(key, int) for key in schema):
        if framing is Framing.NONE:
            raise BadSchema("schemas by id are for framing='confluent', where each value names its schema")
        texts = {number: _text(one) for number, one in schema.items()}
        return AvroDecoder(list(texts.values())[-1], SchemasById(texts))
    if schema is None:
        raise BadSchema("format='avro' needs a schema: the JSON of an Avro schema, or registered(...)")
    return AvroDecoder(_text(schema))


@dataclass
class SchemasById:
    """Avro schemas given by hand, by the id that Confluent's framing names."""

    texts: dict[int, str]

    def __call__(self, number: int) -> str:
        if number not in self.texts:
            raise BadSchema(f"its schema id {number} is not among those given")
        return self.texts[number]


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


def _protobuf(schema: Any, message: str | None, framing: Framing) -> Any:
    from millstream.spark.values.protobuf import ProtobufDecoder, descriptor_set_of

    has_indexes = framing is Framing.CONFLUENT
    if isinstance(schema, Registered):
        found = _of_types(schema, {Schema.ProtobufNative}, "protobuf")
        descriptors, name = _native(found)
        return ProtobufDecoder(descriptors, message or name, has_indexes)
    descriptor = getattr(schema, "DESCRIPTOR", None)
    if descriptor is not None:
        return ProtobufDecoder(descriptor_set_of(descriptor), descriptor.full_name, has_indexes)
    if isinstance(schema, str):
        try:
            with open(schema, "rb") as file:
                schema = file.read()
        except OSError as error:
            raise BadSchema(f"the descriptors cannot be read: {error}") from None
    if not isinstance(schema, bytes | bytearray):
        raise BadSchema("format='protobuf' needs a schema: a FileDescriptorSet, the path of one, or a message class")
    if not message:
        raise BadSchema("a FileDescriptorSet holds many messages: name one with message='package.Name'")
    return ProtobufDecoder(bytes(schema), message, has_indexes)


def _native(found: RegisteredSchema) -> tuple[bytes, str]:
    """What Pulsar registers for its PROTOBUF_NATIVE: JSON with the descriptors in base64."""
    try:
        told = json.loads(found.definition)
        return base64.b64decode(told["fileDescriptorSet"]), str(told["rootMessageTypeName"])
    except (ValueError, KeyError, TypeError):
        raise BadSchema(
            "the registered Protobuf schema does not hold descriptors as Pulsar's clients write"
        ) from None


def _of_types(schema: Registered, types: set[Any], how: str) -> RegisteredSchema:
    found = schema.get(schema.version)
    if found.type not in types:
        raise BadSchema(
            f"the topic {schema.topic!r} has a schema of the type {found.type_name} registered, which is not {how}"
        )
    return found


def struct_of(how: str, schema: Any) -> StructType:
    """The columns of a JSON object or a CSV row.

    Raises:
        BadSchema: the schema is none.
    """
    from pyspark.errors import PySparkException

    if isinstance(schema, Registered) and how == "json":
        return _registered_struct(schema)
    if isinstance(schema, str):
        try:
            schema = StructType.fromDDL(schema)
        except PySparkException as error:
            raise BadSchema(f"the schema is no list of columns in DDL: {str(error).splitlines()[0]}") from None
    if not isinstance(schema, StructType) or not schema.fields:
        raise BadSchema(f'format={how!r} needs a schema: a StructType, or DDL such as "id BIGINT, name STRING"')
    return schema


def _registered_struct(schema: Registered) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_type

    from millstream.spark.values.avro import parsed_avro
    from millstream.spark.values.avro_types import column_type

    found = _of_types(schema, _AVRO_DESCRIBED - {Schema.Avro, Schema.Protobuf}, "json")
    definition, names = parsed_avro(found.definition.decode("utf-8", "replace"))
    struct = from_arrow_type(column_type(definition, names), prefer_timestamp_ntz=True)
    if not isinstance(struct, StructType):
        raise BadSchema(f"the registered schema of {schema.topic!r} is not that of an object")
    defaults = {one["name"]: one.get("default") for one in definition["fields"]}
    fields = []
    for field in struct.fields:
        default = _sql(defaults[field.name])
        # In this metadata Spark looks for what stands in place of a field that is missing.
        metadata = {_EXISTS_DEFAULT: default, _CURRENT_DEFAULT: default} if default is not None else {}
        fields.append(StructField(field.name, field.dataType, True, metadata))
    return StructType(fields)


def _sql(value: Any) -> str | None:
    """A default as an expression of SQL; None if it is null, or no plain value."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return None
