"""The data source that Spark sees under the name `millstream-table`."""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamWriter, DataSourceWriter

__all__ = ["MillstreamTableSource"]


class MillstreamTableSource(DataSource):
    """`df.write|writeStream.format("millstream-table")` and `spark.read.format("millstream-table")`.

    Options: see `tables.options`. Spark imports this module in every process that plans a query, so all else is
    imported where it is needed.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "millstream-table"

    def schema(self) -> Any:
        """The columns of the table that the options name. Raises BadOption, TableMissing."""
        from millstream.spark.tables.options import TableOptions
        from millstream.spark.tables.reader import table_columns

        return table_columns(TableOptions.of(self.options, reads=True))

    def reader(self, schema: Any) -> DataSourceReader:
        """A reader of the rows that the table has now. Raises BadOption, TableMissing."""
        from millstream.spark.tables.options import TableOptions
        from millstream.spark.tables.reader import TableReader

        return TableReader(TableOptions.of(self.options, reads=True), schema)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        """A writer of a batch. Raises BadOption, SchemaMismatch."""
        from millstream.spark.tables.options import TableOptions
        from millstream.spark.tables.writers import BatchWriter

        return BatchWriter(TableOptions.of(self.options, reads=False), schema, overwrites=overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """A writer of micro-batches. Raises BadOption, SchemaMismatch."""
        from millstream.spark.tables.options import TableOptions
        from millstream.spark.tables.writers import StreamWriter

        return StreamWriter(TableOptions.of(self.options, reads=False), schema, overwrites=overwrite)
