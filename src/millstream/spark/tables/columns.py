"""Columns: what of Spark's types a table can hold, and what becomes of its schema when rows bring another one.

A column of a table only ever grows: new columns are nullable, a type becomes a wider one. Rows of narrower types, or
without some columns, fit at any time.
"""

from collections.abc import Iterator
from typing import Any, Final

from millstream.spark.errors import BadOption, SchemaMismatch

__all__ = ["arrow_schema", "check_partition_columns", "is_wider", "merged", "spark_schema", "widenings"]

_HINT: Final = "give the option mergeSchema=true to change the table"


def arrow_schema(spark_type: Any) -> Any:
    """The Arrow schema in which rows of a Spark schema are kept: nullable, timestamps in µs and UTC.

    Args:
        spark_type: a StructType.

    Raises:
        SchemaMismatch: a column has a type that tables cannot hold, or a name that another has too.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    fields, seen = [], set()
    for column in spark_type.fields:
        if column.name.lower() in seen:
            raise SchemaMismatch(f"column {column.name!r} comes twice; rename one of them")
        seen.add(column.name.lower())
        _check(column.name, column.dataType)
        fields.append(pa.field(column.name, _kept(to_arrow_type(column.dataType, timezone="UTC"))))
    if not fields:
        raise SchemaMismatch("the rows have no columns; select one at least")
    return pa.schema(fields)


def spark_schema(schema: Any) -> Any:
    """The Spark schema of a table's columns.

    Args:
        schema: an Arrow schema.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _check(name: str, spark_type: Any) -> None:
    from pyspark.sql import types

    if isinstance(spark_type, types.ArrayType):
        _check(f"{name}.element", spark_type.elementType)
    elif isinstance(spark_type, types.MapType):
        _check(f"{name}.key", spark_type.keyType)
        _check(f"{name}.value", spark_type.valueType)
    elif isinstance(spark_type, types.StructType):
        for field in spark_type.fields:
            _check(f"{name}.{field.name}", field.dataType)
    elif not isinstance(spark_type, _known_types()):
        raise SchemaMismatch(f"column {name!r} is of type {spark_type.simpleString()}, which no table holds; cast it")


def _known_types() -> tuple[type, ...]:
    from pyspark.sql import types

    integers = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
    numbers = (*integers, types.FloatType, types.DoubleType, types.DecimalType)
    times = (types.DateType, types.TimestampType, types.TimestampNTZType, types.DayTimeIntervalType)
    texts = (types.StringType, types.BinaryType)
    return (types.BooleanType, *numbers, *times, *texts)


def _kept(arrow_type: Any) -> Any:
    """The type with all of its parts nullable, and under the names that Parquet has for them."""
    import pyarrow as pa

    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(field.name, _kept(field.type)) for field in arrow_type])
    if pa.types.is_list(arrow_type):
        return pa.list_(pa.field("element", _kept(arrow_type.value_type)))
    if pa.types.is_map(arrow_type):
        return pa.map_(_kept(arrow_type.key_type), _kept(arrow_type.item_type))
    return arrow_type


def check_partition_columns(schema: Any, partition_by: tuple[str, ...]) -> tuple[str, ...]:
    """The partition columns in the spelling of the schema.

    Raises:
        BadOption: there is no such column, it is of a type whose values make no good names of directories, or no
            column would be left.
    """
    import pyarrow as pa

    by_lower_case = {name.lower(): name for name in schema.names}
    found = []
    for text in partition_by:
        name = by_lower_case.get(text.lower())
        if name is None or name in found:
            raise BadOption(
                f"partitionBy takes columns of the rows, each once: {', '.join(schema.names)}; not {text!r}"
            )
        kind = schema.field(name).type
        is_good = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind)
        if not (is_good or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
            raise BadOption(f"partitionBy: column {name!r} is of type {kind}; take a number, date, time or string")
        if name[0] <= "0":
            # Spark takes the schema of a Parquet table from the file whose path comes first.
            raise BadOption(f"partitionBy: the name of column {name!r} must begin with a letter")
        found.append(name)
    if len(found) == len(schema.names):
        raise BadOption("partitionBy names all columns of the rows; leave one at least")
    return tuple(found)


def merged(table: Any, rows: Any, *, changes: bool) -> Any:
    """The schema of a table after rows have come; columns keep their places and spelling, new ones follow.

    Args:
        table, rows: Arrow schemas of nullable fields.
        changes: whether the table may get columns and wider types (option mergeSchema).

    Raises:
        SchemaMismatch: a column is new and may not be added, or has a type that does not fit.
    """
    import pyarrow as pa

    return pa.schema(_merged_fields("", list(table), list(rows), changes=changes))


def _merged_fields(prefix: str, old: list[Any], new: list[Any], *, changes: bool) -> list[Any]:
    import pyarrow as pa

    places = {field.name.lower(): index for index, field in enumerate(old)}
    result = list(old)
    for field in new:
        name = f"{prefix}{field.name}"
        index = places.get(field.name.lower())
        if index is None:
            if not changes:
                raise SchemaMismatch(f"column {name!r} is not in the table; leave it out, or {_HINT}")
            result.append(field)
            continue
        kept = result[index]
        result[index] = pa.field(kept.name, _merged_type(name, kept.type, field.type, changes=changes))
    return result


def _merged_type(name: str, old: Any, new: Any, *, changes: bool) -> Any:
    import pyarrow as pa

    if old == new or is_wider(old, new):
        return old
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return pa.struct(_merged_fields(f"{name}.", list(old), list(new), changes=changes))
    if pa.types.is_list(old) and pa.types.is_list(new):
        inner = _merged_type(f"{name}.element", old.value_type, new.value_type, changes=changes)
        return pa.list_(pa.field(old.value_field.name, inner))
    if pa.types.is_map(old) and pa.types.is_map(new):
        key = _merged_type(f"{name}.key", old.key_type, new.key_type, changes=False)
        return pa.map_(key, _merged_type(f"{name}.value", old.item_type, new.item_type, changes=changes))
    what = f"column {name!r} is {_spark_name(old)} in the table and {_spark_name(new)} in the rows"
    if not is_wider(new, old):
        raise SchemaMismatch(f"{what}, which does not fit; cast it, also with mergeSchema=true")
    if not changes:
        raise SchemaMismatch(f"{what}; cast it, or {_HINT}")
    return new


def is_wider(wide: Any, narrow: Any) -> bool:
    """Whether a type holds every value of another, in the same form: more bits, or more digits."""
    import pyarrow as pa

    types = pa.types
    if types.is_signed_integer(wide) and types.is_signed_integer(narrow):
        return bool(wide.bit_width > narrow.bit_width)
    if types.is_float64(wide):
        return bool(types.is_float32(narrow))
    if types.is_decimal(wide) and types.is_decimal(narrow) and wide != narrow:
        digits = wide.precision - wide.scale >= narrow.precision - narrow.scale
        return bool(digits and wide.scale >= narrow.scale)
    return False


def widenings(old: Any, new: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where a schema has wider types than an earlier one: name of the column or part of one, old and new Arrow type.

    Args:
        old, new: Arrow schemas, or types that have parts; `new` came out of `merged`.
        prefix: in front of the names.
    """
    later = {field.name: field.type for field in new}
    for field in old:
        yield from _widenings(f"{prefix}{field.name}", field.type, later[field.name])


def _widenings(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    import pyarrow as pa

    if pa.types.is_struct(old):
        yield from widenings(old, new, f"{name}.")
    elif pa.types.is_list(old):
        yield from _widenings(f"{name}.element", old.value_type, new.value_type)
    elif pa.types.is_map(old):
        yield from _widenings(f"{name}.value", old.item_type, new.item_type)
    elif old != new:
        yield name, old, new


def _spark_name(arrow_type: Any) -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    name: str = from_arrow_type(arrow_type).simpleString()
    return name
