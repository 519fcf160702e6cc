"""The schemas of topics: their versions, and the rules by which one may follow another."""

from millstream.broker.schemas.definition import Schema, SchemaType, SchemaVersion
from millstream.broker.schemas.errors import IncompatibleSchema, InvalidSchema, SchemaError, UnknownSchema
from millstream.broker.schemas.registry import SchemaRegistry
from millstream.broker.schemas.strategy import SchemaCompatibility

__all__ = [
    "IncompatibleSchema",
    "InvalidSchema",
    "Schema",
    "SchemaCompatibility",
    "SchemaError",
    "SchemaRegistry",
    "SchemaType",
    "SchemaVersion",
    "UnknownSchema",
]
