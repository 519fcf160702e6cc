"""Keys and values that Pulsar's clients have written together, taken apart; see `key_value`."""

from typing import Any, Final

from pyspark.sql import functions as F

from millstream.spark.values.columns import Parsed
from millstream.spark.values.key_value import LENGTH_BYTES, Part

__all__ = ["inline_part"]

_NOT_APART: Final = "it is no key and value as Pulsar writes them together"


def inline_part(value: Any, part: Part) -> Parsed:
    """A part of values that hold both.

    Args:
        value: a binary column.
        part: which.
    """
    key_bytes, after_key = _length_at(value, F.lit(1))
    value_bytes, after_value = _length_at(value, after_key)
    is_whole = after_value == F.octet_length(value) + 1
    reason = F.when(value.isNotNull() & ~F.coalesce(is_whole, F.lit(False)), F.lit(_NOT_APART))
    size, begin = (key_bytes, F.lit(1)) if part is Part.KEY else (value_bytes, after_key)
    content = F.substring(value, begin + LENGTH_BYTES, size)
    return Parsed(F.when(reason.isNull() & (size >= 0), content), reason)


def _length_at(value: Any, position: Any) -> tuple[Any, Any]:
    """The length at a position of a binary column, counted from 1, and the position behind what has it.

    Both are null where there is no room for it, or it is longer than what follows.
    """
    field = F.substring(value, position, F.lit(LENGTH_BYTES))
    unsigned = F.conv(F.hex(field), 16, 10).cast("long")
    length = F.when(unsigned < 2**31, unsigned).otherwise(unsigned - 2**32)
    begin = position + LENGTH_BYTES
    fits = (F.octet_length(field) == LENGTH_BYTES) & (length >= -1)
    fits &= length <= F.octet_length(value) - begin + 1
    end = (begin + F.greatest(length, F.lit(0))).cast("int")
    return F.when(fits, length.cast("int")), F.when(fits, end)
