"""The columns of a topic in Spark: those of Spark's own Kafka source, by the same names and types, and some more."""

from typing import Final

__all__ = ["ALL_COLUMNS", "COLUMNS", "HEADERS", "ORIGIN_COLUMNS", "ddl", "simple_string"]

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
    "protocol": "string",
    "codec": "string",
    "producerId": "bigint",
    "producerEpoch": "int",
}
ALL_COLUMNS: Final = tuple(_TYPES)
ORIGIN_COLUMNS: Final = ("protocol", "codec", "producerId", "producerEpoch")
"""What the log knows of a batch beside its records: there if they are asked for with the option columns."""
COLUMNS: Final = tuple(name for name in _TYPES if name != HEADERS and name not in ORIGIN_COLUMNS)
"""The columns that are read if the options say nothing."""


def ddl(columns: tuple[str, ...]) -> str:
    """The schema of some columns, as Spark's SQL writes it."""
    return ", ".join(f"`{name}` {_TYPES[name]}" for name in columns)


def simple_string(columns: tuple[str, ...]) -> str:
    """The schema of some columns, as the `simpleString` of a Spark type writes it.

    A Python worker has no Spark context, and cannot parse the other form.
    """
    return "struct<" + ",".join(f"{name}:{_TYPES[name]}" for name in columns) + ">"
