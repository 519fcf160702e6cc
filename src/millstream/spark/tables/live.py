"""The live files of a table, for readers that know Parquet and nothing else."""

import os
from collections.abc import Mapping
from typing import Any

from millstream.spark.errors import TableError
from millstream.spark.tables.columns import spark_schema
from millstream.spark.tables.formats import TableFormat, existing_table
from millstream.spark.tables.layout import table_root
from millstream.spark.tables.table import DataFile, State, Table

__all__ = ["live_files", "read_live"]


def live_files(
    path: str, table_format: TableFormat | None = None, catalog: Mapping[str, str] | None = None
) -> list[str]:
    """The files with the rows of a table, each row in one of them once.

    They hold all columns but the partition columns of Parquet and Delta tables. They stay where they are until an
    expiry removes what was replaced.

    Args:
        path: directory of the table.
        table_format: None for what is there.
        catalog: the options `catalog.*` without that beginning, for an Iceberg table in a catalog with others.

    Returns:
        Absolute paths.

    Raises:
        TableMissing: there is no table.
        TableError: Iceberg keeps deletions of rows beside the files, so that the files alone are not the table.
    """
    table, state = existing_table(table_root(path), table_format, catalog or {})
    return [os.path.join(table.root, file.path) for file in _whole(table, state)]


def read_live(
    spark: Any, path: str, table_format: TableFormat | None = None, catalog: Mapping[str, str] | None = None
) -> Any:
    """A table as a DataFrame that Spark reads with its own Parquet reader, pruning columns and pushing filters down.

    Args:
        spark: the session.
        path, table_format, catalog: as for `live_files`.

    Raises:
        TableMissing, TableError: as `live_files`.
    """
    from pyspark.sql.functions import broadcast, col

    table, state = existing_table(table_root(path), table_format, catalog or {})
    files = _whole(table, state)
    schema = spark_schema(state.schema)
    if not files:
        return spark.createDataFrame([], schema)
    in_files = [
        name for name in state.schema.names if table.writes_partition_columns() or name not in state.partition_by
    ]
    in_names = spark_schema(state.schema.empty_table().select(in_files).schema)
    frame = spark.read.schema(in_names).parquet(*(os.path.join(table.root, file.path) for file in files))
    if len(in_files) == len(state.schema.names):
        return frame
    # The partition values stand in the table's log: they are joined to the rows by the name of the file.
    rows = [(os.path.basename(file.path), *(value for _, value in file.partition)) for file in files]
    names = [f"_partition_{index}" for index in range(len(state.partition_by))]
    values = spark.createDataFrame(rows, ", ".join(f"{name} string" for name in ("_file", *names)))
    joined = frame.withColumn("_file", col("_metadata.file_name")).join(broadcast(values), "_file")
    sources = dict(zip(state.partition_by, names, strict=True))
    return joined.select(
        *(
            col(f"`{sources.get(field.name, field.name)}`").cast(field.dataType).alias(field.name)
            for field in schema.fields
        )
    )


def _whole(table: Table, state: State) -> list[DataFile]:
    files = table.files(state)
    if any(getattr(file.detail, "delete_files", None) for file in files):
        raise TableError(
            f"{table.root} has deleted rows that its files still hold; read it as format millstream-table"
        )
    return files
