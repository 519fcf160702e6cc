"""Reading a table in Spark: the rows that are published when the query is planned."""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from millstream.spark.errors import BadOption
from millstream.spark.tables.columns import spark_schema
from millstream.spark.tables.formats import existing_table
from millstream.spark.tables.options import TableOptions
from millstream.spark.tables.table import DataFile, State

__all__ = ["TableReader", "table_columns"]

_TASK_BYTES: Final = 64 << 20
"""Files are read together by one task up to this size: a Python task costs about 80 ms before its first row."""


def table_columns(options: TableOptions) -> Any:
    """The columns that the options ask for, as a StructType.

    Raises:
        TableMissing: there is no table.
        BadOption: it has no such column.
    """
    _, state = existing_table(options.root, options.format, options.catalog)
    return spark_schema(state.schema.empty_table().select(_columns(options, state)).schema)


class TableReader(DataSourceReader):
    """Reads the rows of a table once.

    Args:
        options: of the format.
        spark_type: the columns, as `table_columns` gave them.
    """

    def __init__(self, options: TableOptions, spark_type: Any) -> None:
        self._options = options
        self._names = list(spark_type.names)
        self._spark_type = spark_type

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks."""
        options = self._options
        table, state = existing_table(options.root, options.format, options.catalog)
        if table_columns(options) != self._spark_type:
            raise BadOption(
                "the columns are those of the table; choose among them with the option columns, not schema()"
            )
        # Spark has pickled this reader for the tasks by now: what they need goes with each of them.
        source = table.source(state)
        return [InputPartition((table, source, files)) for files in _grouped(table.files(state))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the files of one task, as Arrow record batches."""
        from pyspark.sql.pandas.types import to_arrow_schema

        if partition.value is None:
            # What Spark makes of a plan without tasks.
            return
        schema = to_arrow_schema(self._spark_type, timezone="UTC")
        table, source, files = partition.value
        for batch in table.read(source, files, self._names):
            yield batch.cast(schema)


def _columns(options: TableOptions, state: State) -> list[str]:
    if options.columns is None:
        return list(state.schema.names)
    by_lower_case = {name.lower(): name for name in state.schema.names}
    unknown = [name for name in options.columns if name.lower() not in by_lower_case]
    if unknown or not options.columns:
        raise BadOption(f"columns takes some of {', '.join(state.schema.names)}, not {', '.join(unknown) or 'none'}")
    return [by_lower_case[name.lower()] for name in options.columns]


def _grouped(files: Sequence[DataFile]) -> list[list[DataFile]]:
    groups: list[list[DataFile]] = []
    size = _TASK_BYTES
    for file in files:
        if size + file.size_bytes > _TASK_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.size_bytes
    return groups
