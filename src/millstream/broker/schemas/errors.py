"""Errors of schemas.

SchemaError
├── UnknownSchema
├── InvalidSchema           it is no definition of its type
└── IncompatibleSchema      the rules of the namespace do not let it follow those before it
"""

from millstream.broker.errors import BrokerError

__all__ = ["IncompatibleSchema", "InvalidSchema", "SchemaError", "UnknownSchema"]


class SchemaError(BrokerError):
    """A schema cannot be had or registered as asked."""


class UnknownSchema(SchemaError):
    """The topic has no schema, or no such version."""


class InvalidSchema(SchemaError):
    """The definition is not one of its type, or it is too large."""


class IncompatibleSchema(SchemaError):
    """A schema that may not follow the ones the topic has."""
