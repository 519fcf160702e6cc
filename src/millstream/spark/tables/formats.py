"""The formats of tables, and which one is where."""

import os
from collections.abc import Mapping
from enum import StrEnum

from millstream.spark.errors import BadOption, TableMissing
from millstream.spark.tables.layout import OWN
from millstream.spark.tables.table import State, Table

__all__ = ["TableFormat", "existing_table", "format_at", "open_table"]


class TableFormat(StrEnum):
    """How a table says which files it consists of."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


def format_at(root: str) -> TableFormat | None:
    """The format of the table in a directory; None if there is none."""
    if os.path.isdir(os.path.join(root, "_delta_log")):
        return TableFormat.DELTA
    if os.path.exists(os.path.join(root, OWN, "catalog.db")) or os.path.isdir(os.path.join(root, "metadata")):
        return TableFormat.ICEBERG
    if os.path.isdir(os.path.join(root, "_spark_metadata")):
        return TableFormat.PARQUET
    return None


def open_table(root: str, asked: TableFormat | None, catalog: Mapping[str, str]) -> Table:
    """The table in a directory, which need not be there yet.

    Args:
        root: the directory, absolute.
        asked: the format that the options name; None for what is there, or Parquet.
        catalog: the options `catalog.*`, for Iceberg.

    Raises:
        BadOption: the table that is there is of another format.
    """
    there = format_at(root)
    if asked is not None and there not in {None, asked}:
        raise BadOption(f"tableFormat={asked}, but the table in {root} is of format {there}")
    kind = asked or there or (TableFormat.ICEBERG if catalog else TableFormat.PARQUET)
    if catalog and kind is not TableFormat.ICEBERG:
        raise BadOption("the options catalog.* are for tableFormat=iceberg")
    # Each format's libraries take time to import, and two of the three are not needed.
    if kind is TableFormat.DELTA:
        from millstream.spark.tables.delta_table import DeltaTable

        return DeltaTable(root)
    if kind is TableFormat.ICEBERG:
        from millstream.spark.tables.iceberg_table import IcebergTable

        return IcebergTable(root, dict(catalog))
    from millstream.spark.tables.parquet_table import ParquetTable

    return ParquetTable(root)


def existing_table(root: str, asked: TableFormat | None, catalog: Mapping[str, str]) -> tuple[Table, State]:
    """The table in a directory, and its state.

    Raises:
        TableMissing: there is none.
        BadOption: it is of another format.
    """
    table = open_table(root, asked, catalog)
    state = table.load()
    if state is None:
        raise TableMissing(f"there is no table in {root}; change the option path")
    return table, state
