"""Whether a definition is one of its type, and whether it may follow others.

    AVRO, JSON, PROTOBUF    the definition is an Avro schema; Avro's schema resolution decides what reads what.
                            A JSON schema may also be in the form of json-schema.org, which old Pulsar clients sent:
                            it may follow one of the same id, and an Avro form may follow it.
    KEY_VALUE               key and value each by the rule of its own type, which must stay.
    PROTOBUF_NATIVE         the name of the root message must stay; like Pulsar by default, fields are not compared.
    primitive types         the type must stay.
    NONE, BYTES             anything goes.

Source: Pulsar's broker, package service.schema; Avro specification, "Schema Resolution".
"""

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from millstream.broker.schemas.definition import AVRO_DESCRIBED, PRIMITIVES, Schema, SchemaType, SchemaVersion
from millstream.broker.schemas.errors import IncompatibleSchema, InvalidSchema
from millstream.broker.schemas.strategy import SchemaCompatibility

if TYPE_CHECKING:
    from avro.schema import Schema as AvroSchema

__all__ = ["check_follows", "check_valid", "find_identical"]

_CLIENT_SIDE: Final = frozenset({SchemaType.AUTO, SchemaType.AUTO_CONSUME, SchemaType.AUTO_PUBLISH})
_JSON_SCHEMA_TYPES: Final = frozenset({"object", "any"})
"""Types of json-schema.org at the root of a definition that are no Avro type as well."""
_NO_DEFINITIONS: Final = frozenset({b"", b"null"})
"""What stands for no definition: Python clients send the word."""


def check_valid(schema: Schema) -> None:
    """Check that a definition is one of its type. Raises InvalidSchema."""
    kind = schema.type
    if kind in _CLIENT_SIDE:
        raise InvalidSchema(f"{kind.value} stands for whatever the topic has, and is no schema of a topic")
    if kind in PRIMITIVES:
        if schema.data not in _NO_DEFINITIONS:
            raise InvalidSchema(f"a schema of type {kind.value} has no definition")
    elif kind is SchemaType.AVRO:
        if _avro(schema.data).type == "union":
            raise InvalidSchema("the definition of an AVRO schema is no union")
    elif kind is SchemaType.JSON:
        if not _is_json_schema(schema.data):
            _avro(schema.data)
    elif kind is SchemaType.PROTOBUF:
        _avro(schema.data)
    elif kind is SchemaType.PROTOBUF_NATIVE:
        _root_message(schema.data)
    elif kind is SchemaType.KEY_VALUE:
        for part in _key_value(schema):
            check_valid(part)


def find_identical(versions: Sequence[SchemaVersion], schema: Schema) -> int | None:
    """The latest of some versions that is the same as a valid schema, however it is laid out; None if none is."""
    parsed = _json(schema.data) if schema.type in AVRO_DESCRIBED else None
    for one in reversed(versions):
        if one.schema.type is not schema.type:
            continue
        if one.schema.data == schema.data:
            return one.version
        if parsed is not None and _json(one.schema.data) == parsed:
            return one.version
        if schema.type in PRIMITIVES:
            return one.version
    return None


def check_follows(versions: Sequence[SchemaVersion], schema: Schema, strategy: SchemaCompatibility) -> None:
    """Check that a schema may follow some versions.

    Args:
        versions: those in force, oldest first.
        schema: a valid one that is not identical with any.
        strategy: the rule.

    Raises:
        IncompatibleSchema.
    """
    if not versions or strategy is SchemaCompatibility.ALWAYS_COMPATIBLE:
        return
    for one in versions if strategy.transitive else versions[-1:]:
        _check_type(one.schema, schema)
        if strategy is SchemaCompatibility.ALWAYS_INCOMPATIBLE:
            raise IncompatibleSchema("no schema may follow another in this namespace (ALWAYS_INCOMPATIBLE)")
        _check_pair(one.schema, schema, strategy)


def _check_pair(older: Schema, newer: Schema, strategy: SchemaCompatibility) -> None:
    """Check two schemas of one type."""
    kind = newer.type
    if kind in AVRO_DESCRIBED:
        if kind is SchemaType.JSON and _is_json_schema(older.data):
            if _is_json_schema(newer.data) and _json(older.data).get("id") != _json(newer.data).get("id"):
                raise IncompatibleSchema("the id of the JSON schema is another one")
            return
        if kind is SchemaType.JSON and _is_json_schema(newer.data):
            raise IncompatibleSchema("a definition in the form of JSON schema cannot follow one in the form of Avro")
        _check_avro(older.data, newer.data, strategy)
    elif kind is SchemaType.PROTOBUF_NATIVE:
        name = _root_message(older.data)
        if name != _root_message(newer.data):
            raise IncompatibleSchema(f"the root message is {name}, and must stay so")
    elif kind is SchemaType.KEY_VALUE:
        for before, after in zip(_key_value(older), _key_value(newer), strict=True):
            _check_type(before, after)
            _check_pair(before, after, strategy)


def _check_type(older: Schema, newer: Schema) -> None:
    if older.type is not newer.type:
        before, after = older.type.value, newer.type.value
        raise IncompatibleSchema(f"Incompatible schema: exists schema type {before}, new schema type {after}")


# Avro


def _avro(data: bytes) -> "AvroSchema":
    # Loaded here: most servers never see a schema.
    from millstream.broker.schemas.avro import parse

    return parse(data)


def _check_avro(older: bytes, newer: bytes, strategy: SchemaCompatibility) -> None:
    from millstream.broker.schemas.avro import check_reads, parse

    before, after = parse(older), parse(newer)
    if strategy.reads_older:
        check_reads(reader=after, writer=before)
    if strategy.read_by_older:
        check_reads(reader=before, writer=after)


# The other forms


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"the definition is not JSON: {error}") from None


def _is_json_schema(data: bytes) -> bool:
    value = _json(data)
    return isinstance(value, dict) and value.get("type") in _JSON_SCHEMA_TYPES


def _root_message(data: bytes) -> str:
    """The full name of the root message of a PROTOBUF_NATIVE definition."""
    value = _json(data)
    if not isinstance(value, dict):
        raise InvalidSchema("the definition of a PROTOBUF_NATIVE schema is an object")
    name, descriptors = value.get("rootMessageTypeName"), value.get("fileDescriptorSet")
    if not isinstance(name, str) or not name or not isinstance(descriptors, str):
        raise InvalidSchema("a PROTOBUF_NATIVE schema has a rootMessageTypeName and a fileDescriptorSet")
    try:
        b64decode(descriptors, validate=True)
    except (Base64Error, ValueError):
        raise InvalidSchema("the fileDescriptorSet of a PROTOBUF_NATIVE schema is base64") from None
    return name


def _key_value(schema: Schema) -> tuple[Schema, Schema]:
    """The schemas of the key and of the value: each a length in 4 bytes, big-endian, and the definition."""
    data, position = schema.data, 0
    parts: list[Schema] = []
    for name in ("key", "value"):
        if len(data) < position + 4:
            raise InvalidSchema("the definition of a KEY_VALUE schema ends too soon")
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size > len(data) - position:
            raise InvalidSchema("the definition of a KEY_VALUE schema ends too soon")
        word = schema.properties.get(f"{name}.schema.type", SchemaType.BYTES.value)
        try:
            kind = SchemaType(word)
        except ValueError:
            raise InvalidSchema(f"there is no schema type {word!r}") from None
        if kind is SchemaType.KEY_VALUE:
            raise InvalidSchema(f"the {name} of a KEY_VALUE schema is not itself one")
        parts.append(Schema(kind, data[position : position + size]))
        position += size
    if position != len(data):
        raise InvalidSchema("the definition of a KEY_VALUE schema has bytes behind its value")
    return parts[0], parts[1]
