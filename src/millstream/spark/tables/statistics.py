"""What is known of a file's columns, in the form of Delta's log, so that readers can pass over files."""

import datetime
import json
from typing import Any, Final

__all__ = ["file_statistics"]

_LONGEST_TEXT: Final = 64
"""Characters. Longer values cost more in the log than they save."""


def file_statistics(metadata: Any) -> str:
    """Statistics of a Parquet file as JSON: rows, and nulls, least and greatest value by column.

    Of floating-point columns only the nulls are given, because Parquet leaves NaN out of its extremes and Delta does
    not. Columns inside of others are left out.

    Args:
        metadata: a pyarrow.parquet.FileMetaData.

    Source: the Delta transaction log protocol, "Per-file Statistics".
    """
    nulls: dict[str, int] = {}
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        if column.path != column.name or column.max_repetition_level:
            continue
        parts = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        if not parts or any(part is None or not part.has_null_count for part in parts):
            continue
        nulls[column.name] = sum(part.null_count for part in parts)
        ranges = [(part.min, part.max) for part in parts if part.has_min_max]
        without = [part for part in parts if not part.has_min_max and part.num_values]
        if not ranges or without:
            continue
        low, high = _told(min(low for low, _ in ranges)), _told(max(high for _, high in ranges))
        if low is not None and high is not None:
            least[column.name], greatest[column.name] = low, high
    return json.dumps(
        {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls},
        ensure_ascii=False,
    )


def _told(value: Any) -> Any:
    """A value as Delta's log spells it; None if it is of a type that is left out."""
    if isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else None
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="microseconds")
        return value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return None
