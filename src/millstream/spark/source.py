"""The data source that Spark sees under the name `millstream`."""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from millstream.spark.errors import BadOption
from millstream.spark.read.options import ReadOptions
from millstream.spark.read.schema import ddl, simple_string

__all__ = ["MillstreamSource"]


class MillstreamSource(DataSource):
    """`spark.read.format("millstream")` and `spark.readStream.format("millstream")`.

    Options and columns: see `read.options` and `read.schema`. The options are checked when
    a table is loaded, the broker is asked when it is read.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "millstream"

    def schema(self) -> str:
        """The columns that the options ask for. Raises BadOption."""
        return ddl(ReadOptions.of(self.options).columns)

    def reader(self, schema: Any) -> DataSourceReader:
        """A reader of a batch. Raises BadOption."""
        from millstream.spark.read.readers import BatchReader

        options = ReadOptions.of(self.options).for_batch()
        _check_schema(schema, options)
        return BatchReader(options, schema)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A reader of a stream. Raises BadOption."""
        from millstream.spark.read.readers import StreamReader

        options = ReadOptions.of(self.options).for_stream()
        _check_schema(schema, options)
        return StreamReader(options, schema)


def _check_schema(schema: Any, options: ReadOptions) -> None:
    own = simple_string(options.columns)
    if schema.simpleString() != own:
        raise BadOption(f"the columns are {own}; choose among them with the option columns, not with schema()")
