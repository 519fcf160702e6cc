"""What a decoded value is while it is a Spark column, and what the formats that Spark reads itself have in common."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import functions as F

from millstream.spark.values.framing import CONFLUENT_BYTES, Framing

__all__ = ["Parsed", "first_reason", "without_framing"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """Two columns, and what they are made of.

    Args:
        value: what a value is decoded to; null where it is null itself, anything where there is a reason.
        reason: why it could not be decoded, text; null where it was.
        once: columns by name that both may refer to. Spark works an expression out anew wherever it is named, so
            that what costs something must be a column before it is named twice.
    """

    value: Any
    reason: Any
    once: Mapping[str, Any] = field(default_factory=dict)


def without_framing(value: Any, framing: Framing) -> Parsed:
    """The bytes behind the framing.

    Args:
        value: a binary column.
        framing: what stands before each value.
    """
    if framing is Framing.NONE:
        return Parsed(value, F.lit(None).cast("string"))
    is_framed = (F.octet_length(value) >= CONFLUENT_BYTES) & (F.substring(value, 1, 1) == F.lit(b"\x00"))
    reason = F.when(~is_framed, "it does not begin with a schema id in Confluent's form")
    return Parsed(F.substring(value, CONFLUENT_BYTES + 1, 2**31 - 1), reason)


def first_reason(value: Any, *reasons: Any) -> Any:
    """The first reason that is not null, of a value that is not null; the others are not looked at."""
    return F.when(value.isNotNull(), F.coalesce(*reasons))
