"""Arrow types as Spark brings them. Libraries of table formats have more ways of spelling the same."""

from typing import Any

__all__ = ["as_spark_brings"]


def as_spark_brings(schema: Any) -> Any:
    """An Arrow schema without large and view types, in µs, nullable and without metadata."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: Any) -> Any:
    import pyarrow as pa

    types = pa.types
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain_type(kind.value_type)))
    if types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    return kind
