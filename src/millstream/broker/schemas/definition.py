"""A schema: its type and its definition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

__all__ = ["AVRO_DESCRIBED", "PRIMITIVES", "Schema", "SchemaType", "SchemaVersion"]


class SchemaType(Enum):
    """The types of schemas, by Pulsar's names."""

    NONE = "NONE"
    BYTES = "BYTES"
    STRING = "STRING"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"
    AVRO = "AVRO"
    BOOLEAN = "BOOLEAN"
    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    INSTANT = "INSTANT"
    LOCAL_DATE = "LOCAL_DATE"
    LOCAL_TIME = "LOCAL_TIME"
    LOCAL_DATE_TIME = "LOCAL_DATE_TIME"
    KEY_VALUE = "KEY_VALUE"
    PROTOBUF_NATIVE = "PROTOBUF_NATIVE"
    AUTO = "AUTO"
    AUTO_CONSUME = "AUTO_CONSUME"
    AUTO_PUBLISH = "AUTO_PUBLISH"


PRIMITIVES: Final = frozenset(
    {
        SchemaType.STRING,
        SchemaType.BOOLEAN,
        SchemaType.INT8,
        SchemaType.INT16,
        SchemaType.INT32,
        SchemaType.INT64,
        SchemaType.FLOAT,
        SchemaType.DOUBLE,
        SchemaType.DATE,
        SchemaType.TIME,
        SchemaType.TIMESTAMP,
        SchemaType.INSTANT,
        SchemaType.LOCAL_DATE,
        SchemaType.LOCAL_TIME,
        SchemaType.LOCAL_DATE_TIME,
    }
)
"""Types that are their own definition."""

AVRO_DESCRIBED: Final = frozenset({SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF})
"""Types whose definition is an Avro schema, however their records are encoded."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema.

    Args:
        type: its type.
        data: its definition, in the form of its type; empty for primitive types.
        properties: what its author noted with it.
    """

    type: SchemaType
    data: bytes = b""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A version of a topic's schema.

    Args:
        version: its number, from 0 on.
        schema: what was registered.
        created_ms: when, ms since 1970.
    """

    version: int
    schema: Schema
    created_ms: int
