"""The columns that a topic has in Spark: those of Spark's own Kafka source, under the same names and types."""

from typing import Final

__all__ = ["ALL_COLUMNS", "COLUMNS", "HEADERS", "ddl", "simple_string"]

HEADERS: Final = "headers"
_TYPES: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key:string,value:binary>>",
}
ALL_COLUMNS: Final = tuple(_TYPES)
COLUMNS: Final = tuple(name for name in _TYPES if name != HEADERS)
"""The columns that are read if the options say nothing."""


def ddl(columns: tuple[str, ...]) -> str:
    """The schema of some columns, as Spark's SQL writes it."""
    return ", ".join(f"`{name}` {_TYPES[name]}" for name in columns)


def simple_string(columns: tuple[str, ...]) -> str:
    """The schema of some columns, as the `simpleString` of a Spark type writes it.

    A Python worker has no Spark context, and cannot parse the other form.
    """
    return "struct<" + ",".join(f"{name}:{_TYPES[name]}" for name in columns) + ">"
