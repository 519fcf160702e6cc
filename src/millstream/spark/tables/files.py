"""Reading Parquet files of a table: each under the table's present columns, whatever it was written with."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

from millstream.spark.tables.partitions import partition_column
from millstream.spark.tables.table import DataFile

__all__ = ["read_files"]

_BATCH_ROWS: Final = 65_536
"""Rows of a record batch: from 10,000 on, their number makes no difference."""


def read_files(root: str, files: Sequence[DataFile], schema: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Read files whose columns are found by name.

    Args:
        root: directory of the table.
        files: which.
        schema: the columns of the table, as an Arrow schema.
        columns: which of them, in which order.

    Returns:
        Record batches with these columns. What a file does not hold is missing there, and narrower types are widened.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = [schema.field(name) for name in columns]
    for file in files:
        values = dict(file.partition)
        with pq.ParquetFile(os.path.join(root, file.path)) as source:
            there = set(source.schema_arrow.names)
            names = [field.name for field in wanted if field.name in there and field.name not in values]
            # Without any column to read, the rows are still to be counted.
            batches = source.iter_batches(_BATCH_ROWS, columns=names)
            for batch in batches:
                arrays = [
                    partition_column(values[field.name], field.type, batch.num_rows)
                    if field.name in values
                    else _column(batch, field)
                    for field in wanted
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(wanted))


def _column(batch: Any, field: Any) -> Any:
    import pyarrow as pa

    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    return column if column.type == field.type else column.cast(field.type)
