"""The data source that Spark sees under the name `millstream`."""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from millstream.spark.errors import BadOption
from millstream.spark.read.options import ReadOptions
from millstream.spark.read.schema import ddl, simple_string

__all__ = ["MillstreamSource"]


class MillstreamSource(DataSource):
    """`spark.read.format("millstream")`, `spark.readStream`, and the same for `write` and `writeStream`.

    Options and columns: see `read.options` and `read.schema`, `write.options` and `write.columns`. The options are
    checked when a table is loaded or written, the broker is asked when it is read.
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
        from millstream.spark.read.readers import batch_reader

        options = ReadOptions.of(self.options).for_batch()
        _check_schema(schema, options)
        return batch_reader(options, schema)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A reader of a stream. Raises BadOption."""
        from millstream.spark.read.readers import StreamReader

        options = ReadOptions.of(self.options).for_stream()
        _check_schema(schema, options)
        return StreamReader(options, schema)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        """A writer of a table. Raises BadOption, BrokerUnreachable, TopicMissing."""
        from millstream.spark.write.options import WriteOptions
        from millstream.spark.write.writers import batch_writer

        return batch_writer(WriteOptions.of(self.options).for_batch(), schema, overwrite=overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """A writer of a stream. Raises BadOption."""
        from millstream.spark.write.options import WriteOptions
        from millstream.spark.write.writers import stream_writer

        return stream_writer(WriteOptions.of(self.options).for_stream(), schema, overwrite=overwrite)


def _check_schema(schema: Any, options: ReadOptions) -> None:
    own = simple_string(options.columns)
    if schema.simpleString() != own:
        raise BadOption(f"the columns are {own}; choose among them with the option columns, not with schema()")
