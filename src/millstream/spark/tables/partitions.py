"""Rows and the partitions they belong to; partition values and their text in names of directories."""

import datetime
from collections.abc import Iterator
from typing import Any

__all__ = ["by_partition", "partition_column", "partition_text"]


def by_partition(
    rows: Any, partition_by: tuple[str, ...], *, keeps: bool
) -> Iterator[tuple[tuple[tuple[str, str | None], ...], Any]]:
    """Sort the rows of an Arrow table out by their partition.

    Args:
        rows: an Arrow table.
        partition_by: names of the partition columns.
        keeps: whether those columns stay in the rows.

    Returns:
        Name and text of the partition columns, with the rows that have these values, in the order they came.
    """
    import numpy as np

    if not partition_by:
        yield (), rows
        return
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for name in partition_by:
        column = rows.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * len(column.dictionary) + column.indices.to_numpy(zero_copy_only=False)
        # Numbered anew after each column, so that the numbers stay small however many columns there are.
        codes = np.unique(codes, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    in_order = rows.take(order)
    data = in_order if keeps else in_order.drop_columns(list(partition_by))
    for start, stop in zip([0, *bounds], [*bounds, rows.num_rows], strict=True):
        texts = (partition_text(in_order.column(name)[int(start)].as_py()) for name in partition_by)
        # Where the value is kept in a name only, an empty text cannot be told from a missing one, as with Spark.
        values = tuple(
            (name, text if keeps else text or None) for name, text in zip(partition_by, texts, strict=True)
        )
        yield values, data.slice(start, stop - start)


def partition_text(value: Any) -> str | None:
    """The text of a partition value, as Spark and Delta write it; times in UTC."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return str(value.isoformat(sep=" ", timespec="microseconds" if value.microsecond else "seconds"))
    return str(value)


def partition_column(text: str | None, kind: Any, length: int) -> Any:
    """A column that has the same partition value in all rows.

    Args:
        text: as `partition_text` gives it.
        kind: the Arrow type of the column.
        length: how many rows.
    """
    import pyarrow as pa

    if text is None:
        return pa.nulls(length, kind)
    return pa.repeat(pa.scalar(_value(text, kind), kind), length)


def _value(text: str, kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return text == "true"
    if pa.types.is_integer(kind):
        return int(text)
    if pa.types.is_date32(kind):
        return datetime.date.fromisoformat(text)
    if pa.types.is_timestamp(kind):
        # Delta also takes the form with T and Z.
        value = datetime.datetime.fromisoformat(text)
        return value.replace(tzinfo=value.tzinfo or datetime.UTC) if kind.tz else value.replace(tzinfo=None)
    if pa.types.is_floating(kind):
        return float(text)
    if pa.types.is_decimal(kind):
        from decimal import Decimal

        return Decimal(text)
    return text
