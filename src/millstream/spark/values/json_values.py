"""JSON: one object a value, read by Spark's own from_json.

Stricter than that alone: a value is one JSON object and nothing behind it (from_json stops reading at the end of the
first value), encoded in UTF-8, with names and texts in double quotes. A field that does not have its type is no
reason to leave only that field out: the whole row goes where rows go that do not decode.

Fields that are missing are null, or have the default of the schema (the metadata EXISTS_DEFAULT of a StructField, an
SQL expression, as in Spark's tables); fields that the schema does not know are left out.
"""

import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from millstream.spark.values.columns import Parsed, first_reason

__all__ = ["parse_json"]

_CORRUPT: Final = "__millstream_corrupt"
_PARSED: Final = "__millstream_parsed"
_IS_WHOLE: Final = "__millstream_is_whole"
_ITEMS: Final = "items"
_ITEMS_IN_ALL: Final = 2
_EXISTS_DEFAULT: Final = "EXISTS_DEFAULT"
_STRICT: Final = {"allowSingleQuotes": "false"}
_TOLERANT: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
_SPACE: Final = " \t\r\n"
_NOT_WHOLE: Final = "it is not one JSON object and nothing else"
_MISFIT: Final = "its type does not fit: "
_NAMED_FIELDS_MAX: Final = 200
"""Fields that are looked at to say which one does not fit. Each is an expression in the plan of the query."""


def parse_json(value: Any, schema: StructType, options: Mapping[str, str]) -> Parsed:
    """Decode a binary column.

    Args:
        value: the column.
        schema: of the objects; a field that is not nullable must be there.
        options: further options of from_json, such as timestampFormat.
    """
    text = value.cast("string")
    read = _read_with_defaults if any(_EXISTS_DEFAULT in one.metadata for one in schema.fields) else _read
    parsed, is_misfit, is_whole, once = read(text, _nullable(schema), {**_STRICT, **options, **_TOLERANT})
    misfits = F.concat_ws(", ", *_misfits(text, parsed, schema))
    is_good = parsed.isNotNull() & ~is_misfit & is_whole & F.is_valid_utf8(text)
    why = F.coalesce(
        F.when(F.trim(text, F.lit(_SPACE)) == "", "it is empty"),
        F.when(~F.is_valid_utf8(text), "it is not UTF-8"),
        F.when(~F.startswith(F.ltrim(text, F.lit(_SPACE)), F.lit("{")), "it is no JSON object"),
        F.when(~is_whole | (is_misfit & F.try_parse_json(text).isNull()), _NOT_WHOLE),
        F.when(parsed.isNotNull() & is_misfit & (misfits != ""), F.concat(F.lit(_MISFIT), misfits)),
        F.lit("it does not fit the schema"),
    )
    reason = first_reason(value, F.when(~is_good, why), *_missing(parsed, schema))
    columns = [parsed.getField(field.name).alias(field.name) for field in schema.fields]
    return Parsed(F.when(value.isNotNull(), F.struct(*columns)), reason, once)


class _Read(NamedTuple):
    """What Spark has read of a text, in columns.

    Args:
        parsed: the object; null if the text does not begin with one.
        is_misfit: something in it is not of its type, or it is no JSON at all.
        is_whole: the text is one JSON value and nothing else.
        once: see `Parsed`.
    """

    parsed: Any
    is_misfit: Any
    is_whole: Any
    once: Mapping[str, Any]


def _read(text: Any, schema: StructType, options: Mapping[str, str]) -> _Read:
    """Read a text as the first item of an array, whose second is a mark that nobody can know.

    A text that is more than one value, or less, moves the mark or takes the array apart.
    """
    mark = f"__millstream_{secrets.token_hex(8)}"
    items = ArrayType(StructType([*schema.fields, StructField(mark, BooleanType())]))
    around = StructType([StructField(_ITEMS, items), StructField(_CORRUPT, StringType())])
    wrapped = F.concat(F.lit(f'{{"{_ITEMS}":['), text, F.lit(f',{{"{mark}":true}}]}}'))
    read = F.col(_PARSED)
    found = read.getField(_ITEMS)
    corrupt = read.getField(_CORRUPT)
    is_whole = F.get(found, F.lit(1)).getField(mark).eqNullSafe(F.lit(True)) & (F.size(found) == _ITEMS_IN_ALL)
    return _Read(
        F.get(found, F.lit(0)), corrupt.isNotNull(), is_whole, {_PARSED: F.from_json(wrapped, around, options)}
    )


def _read_with_defaults(text: Any, schema: StructType, options: Mapping[str, str]) -> _Read:
    """Read a text by itself, as Spark knows of defaults only there; a second pass looks what is behind it."""
    mark = secrets.token_hex(8)
    behind = F.get_json_object(F.concat(F.lit("["), text, F.lit(f',"{mark}"]')), "$[1]")
    around = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    parsed = F.col(_PARSED)
    corrupt = parsed.getField(_CORRUPT)
    once = {_PARSED: F.from_json(text, around, options), _IS_WHOLE: behind.eqNullSafe(F.lit(mark))}
    return _Read(parsed, corrupt.isNotNull(), F.col(_IS_WHOLE), once)


def _nullable(schema: StructType) -> StructType:
    return StructType([StructField(one.name, one.dataType, True, one.metadata) for one in schema.fields])


def _missing(parsed: Any, schema: StructType) -> list[Any]:
    return [
        F.when(parsed.getField(field.name).isNull(), f"its field {field.name} is missing or null")
        for field in schema.fields
        if not field.nullable
    ]


def _misfits(text: Any, parsed: Any, schema: StructType) -> list[Any]:
    """For each field, outside of arrays and maps: its name and type where the text has it and the column does not."""
    found = []
    for number, (path, column, kind) in enumerate(_leaves(schema, parsed, "$")):
        if number >= _NAMED_FIELDS_MAX:
            break
        is_there = F.get_json_object(text, path).isNotNull()
        found.append(F.when(is_there & column.isNull(), f"{_name(path)} is no {kind}"))
    return found


def _leaves(schema: StructType, column: Any, path: str) -> Iterator[tuple[str, Any, str]]:
    for field in schema.fields:
        if "'" in field.name or "]" in field.name:
            continue  # it cannot be named in a path
        inner, below = column.getField(field.name), f"{path}['{field.name}']"
        if isinstance(field.dataType, StructType):
            yield from _leaves(field.dataType, inner, below)
        else:
            yield below, inner, field.dataType.simpleString().upper()


def _name(path: str) -> str:
    return path.removeprefix("$['").removesuffix("']").replace("']['", ".")
