"""The columns that a table may have when it is written to topics, and their rows as Arrow arrays.

    column     type                                  if it is missing or null
    key        string or binary                      the record has no key
    value      string or binary                      must be there; a null is a record without a value
    headers    array<struct<key: string, value: binary>>, no headers
               values may be strings too
    topic      string                                the option topic, which goes before the column
    partition  int                                   the partitioner chooses
    timestamp  timestamp                             the time at which the row is written

Other columns are an error: what is not written should not look as if it were.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.spark.errors import BadOption, UnwritableRow
from millstream.spark.write.varints import Ints

__all__ = ["Rows", "check_columns", "rows_of"]

_TEXT: Final = ("string", "binary")
_HEADERS: Final = tuple(f"array<struct<key:string,value:{text}>>" for text in ("binary", "string"))
_TYPES: Final = {
    "key": _TEXT,
    "value": _TEXT,
    "headers": _HEADERS,
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a table, column by column; None for a column that is not there.

    Args:
        key, value: binary.
        headers: list<struct<key: binary, value: binary>>.
        topic: string; None if all go to the topic of the option.
        partition: int64, -1 where none is given.
        timestamp_ms: int64, ms since 1970.
    """

    key: Any | None
    value: Any
    headers: Any | None
    topic: Any | None
    partition: Ints | None
    timestamp_ms: Ints

    def __len__(self) -> int:
        return len(self.value)

    def take(self, order: Ints) -> "Rows":
        """The same rows in another order, or some of them."""
        indexes = pa.array(order)
        return Rows(
            key=None if self.key is None else self.key.take(indexes),
            value=self.value.take(indexes),
            headers=None if self.headers is None else self.headers.take(indexes),
            topic=None if self.topic is None else self.topic.take(indexes),
            partition=None if self.partition is None else self.partition[order],
            timestamp_ms=self.timestamp_ms[order],
        )


def check_columns(columns: Sequence[tuple[str, str]], *, has_topic: bool) -> None:
    """Check the columns of a table before anything of it is written.

    Args:
        columns: name and type of each, as Spark spells types.
        has_topic: whether the option topic is given.

    Raises:
        BadOption: a column has another name or type than those above, is there twice, or one is missing.
    """
    seen: set[str] = set()
    for name, kind in columns:
        allowed = _TYPES.get(name)
        if allowed is None:
            raise BadOption(f"a topic has no column {name!r}; it has {', '.join(_TYPES)}: select them, or drop it")
        if name in seen:
            raise BadOption(f"there are two columns {name!r}")
        if kind not in allowed and not (name in ("key", "value") and kind.startswith(("char(", "varchar("))):
            raise BadOption(f"the column {name} is of type {kind}, and must be {' or '.join(allowed)}: cast it")
        seen.add(name)
    if "value" not in seen:
        raise BadOption("the column value is missing; it holds what is written (string or binary)")
    if "topic" not in seen and not has_topic:
        raise BadOption("the option topic is missing: the name of a topic, or a column topic")


def rows_of(batch: Any, *, topic_is_given: bool, now_ms: int) -> Rows:
    """The rows of an Arrow record batch or table whose columns `check_columns` has let through.

    Args:
        batch: a record batch.
        topic_is_given: whether the option topic says where all rows go.
        now_ms: the time of rows without one, in ms since 1970.

    Raises:
        UnwritableRow: a row names no topic, or a header has no name.
    """
    found = {name: batch.column(index) for index, name in enumerate(batch.schema.names)}
    headers, topic, partition = found.get("headers"), found.get("topic"), found.get("partition")
    if topic_is_given:
        topic = None
    elif topic is not None and topic.null_count:
        raise UnwritableRow("a row names no topic: fill the column topic, or set the option topic")
    return Rows(
        key=_binary(found["key"]) if "key" in found else None,
        value=_binary(found["value"]),
        headers=None if headers is None else _headers(headers),
        topic=topic,
        partition=None if partition is None else _integers(partition, -1),
        timestamp_ms=_times(found.get("timestamp"), len(batch), now_ms),
    )


def _binary(column: Any) -> Any:
    if isinstance(column.type, pa.DataType) and pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.binary())
    return column if column.type == pa.binary() else column.cast(pa.binary())


def _headers(column: Any) -> Any:
    """The headers as list<struct<key: binary, value: binary>>, none where there are nulls."""
    if column.null_count:
        # What stands under a null does not count, so that an empty list may take its place.
        column = pc.if_else(column.is_valid(), column, pa.scalar([], column.type))
    structs = column.values
    keys, values = structs.field(0), structs.field(1)
    first, last = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
    used = structs.slice(first, last - first)
    if used.null_count or used.field(0).null_count:
        raise UnwritableRow("a header has no name: the key of every element of the column headers must be there")
    made = pa.StructArray.from_arrays([_binary(keys), _binary(values)], names=["key", "value"])
    return pa.ListArray.from_arrays(column.offsets.cast(pa.int32()), made)


def _integers(column: Any, null: int) -> Ints:
    filled = pc.fill_null(column.cast(pa.int64()), null)
    result: Ints = filled.to_numpy(zero_copy_only=False)
    return result


def _times(column: Any | None, count: int, now_ms: int) -> Ints:
    if column is None:
        return np.full(count, now_ms, dtype=np.int64)
    micros = _integers(column.cast(pa.timestamp("us", "UTC")), 0)
    times: Ints = micros // 1000
    if column.null_count:
        times = np.where(column.is_null().to_numpy(zero_copy_only=False), now_ms, times)
    return times
