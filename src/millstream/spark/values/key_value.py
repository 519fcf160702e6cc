"""Pulsar's KEY_VALUE schemas: one schema for the keys and one for the values of a topic.

The definition holds those of both, and properties say of which types they are. What is written stands either apart
(SEPARATED), the key as the key of the record, or together in the value (INLINE):

    definition, inline value:    length of the key: int32    key    length of the value: int32    value

Numbers are big-endian, and in an inline value a length of -1 is a null.

Source: Apache Pulsar, KeyValueSchemaInfo and KeyValue of its Java client.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from millstream.spark.errors import BadSchema
from millstream.wire.pulsar.pulsar_pb2 import Schema

__all__ = ["LENGTH_BYTES", "Part", "PartSchema", "part_schema"]

LENGTH_BYTES: Final = 4
"""Bytes before each part."""
_ENCODING: Final = "kv.encoding.type"
_INLINE: Final = "INLINE"
_SEPARATED: Final = "SEPARATED"
_TYPES: Final = {name.upper(): number for name, number in Schema.Type.items()} | {
    "BYTES": Schema.NoSchema,
    "BOOLEAN": Schema.Bool,
    "PROTOBUF_NATIVE": Schema.ProtobufNative,
}
"""Types of schemas by the names that properties have for them."""


class Part(StrEnum):
    """One of the two."""

    KEY = "key"
    VALUE = "value"


class PartSchema(NamedTuple):
    """The schema of a part.

    Args:
        type: a number of Pulsar's Schema.Type.
        definition: of it.
        is_inline: whether keys and values stand together in the values of records.
    """

    type: int
    definition: bytes
    is_inline: bool


def part_schema(definition: bytes, properties: Mapping[str, str], part: Part) -> PartSchema:
    """Take the schema of a part out of that of both.

    Raises:
        BadSchema: it is none.
    """
    encoding = properties.get(_ENCODING, _INLINE)
    kind = _TYPES.get(properties.get(f"{part}.schema.type", ""))
    definitions = _split(definition)
    if definitions is None or kind is None or encoding not in {_INLINE, _SEPARATED}:
        raise BadSchema("the registered KEY_VALUE schema is none as Pulsar's clients write")
    return PartSchema(kind, definitions[part is Part.VALUE], encoding == _INLINE)


def _split(data: bytes) -> tuple[bytes, bytes] | None:
    parts = []
    for _ in range(2):
        size = int.from_bytes(data[:LENGTH_BYTES], "big")
        data = data[LENGTH_BYTES:]
        if size > len(data):
            return None
        parts.append(data[:size])
        data = data[size:]
    return None if data else (parts[0], parts[1])
