"""CSV, text and bytes: what Spark's own functions and plain casts decode.

CSV: one row a value, read by Spark's from_csv; quotes within quotes are doubled, as RFC 4180 has it. A row has as
many fields as the schema; a line break at its end is not part of it. A value of several rows is not decoded.
"""

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.spark.values.columns import Parsed, first_reason

__all__ = ["parse_csv", "parse_text"]

_CORRUPT: Final = "__millstream_corrupt"
_PARSED: Final = "__millstream_parsed"
_RFC_4180: Final = {"escape": '"'}


def parse_csv(value: Any, schema: StructType, options: Mapping[str, str]) -> Parsed:
    """Decode a binary column.

    Args:
        value: the column.
        schema: of the rows.
        options: further options of from_csv, such as sep.
    """
    text = F.rtrim(value.cast("string"), F.lit("\r\n"))
    columns = ", ".join(
        f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in schema.fields
    )
    parser = {**_RFC_4180, **options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    once = {_PARSED: F.from_csv(text, f"{columns}, `{_CORRUPT}` string", parser)}
    parsed = F.col(_PARSED)
    reason = first_reason(
        value,
        F.when(F.trim(text) == "", "it is empty"),
        F.when(~F.is_valid_utf8(text), "it is not UTF-8"),
        F.when(
            parsed.getField(_CORRUPT).isNotNull() | parsed.isNull(),
            f"it does not fit the schema of {len(schema.fields)} fields",
        ),
        *(
            F.when(parsed.getField(field.name).isNull(), f"its field {field.name} is missing or null")
            for field in schema.fields
            if not field.nullable
        ),
    )
    fields = [parsed.getField(field.name).alias(field.name) for field in schema.fields]
    return Parsed(F.when(value.isNotNull(), F.struct(*fields)), reason, once)


def parse_text(value: Any) -> Parsed:
    """Decode a binary column to text."""
    text = value.cast("string")
    return Parsed(text, F.when(~F.is_valid_utf8(text), "it is not UTF-8"))
