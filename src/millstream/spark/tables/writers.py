"""The two writers that Spark drives: of one batch, and of a stream of micro-batches.

Spark makes a writer on the driver, pickles it for the tasks, and makes another for the commit of each micro-batch.
"""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from millstream.spark.errors import BadOption, TableError
from millstream.spark.tables.application import attempt
from millstream.spark.tables.columns import arrow_schema, check_partition_columns, merged
from millstream.spark.tables.formats import open_table
from millstream.spark.tables.ledger import Batch
from millstream.spark.tables.options import TableOptions
from millstream.spark.tables.publishing import batch_directory, discard, publish
from millstream.spark.tables.staging import Staging, WritePlan
from millstream.spark.tables.table import DataFile

__all__ = ["BatchWriter", "Staged", "StreamWriter", "plan_write"]


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What a task answers.

    Args:
        query: id of the streaming query that it worked for; empty for a batch.
        files: what it has staged.
    """

    query: str
    files: tuple[DataFile, ...]


def plan_write(options: TableOptions, spark_type: Any) -> WritePlan:
    """Check that rows fit into the table, and plan how they are written.

    Args:
        options: of the format.
        spark_type: the columns of the rows, as a StructType.

    Raises:
        BadOption, SchemaMismatch, TableError: what does not fit; nothing was changed.
    """
    table = open_table(options.root, options.format, options.catalog)
    schema = table.columns_of(arrow_schema(spark_type))
    state = table.load()
    if state is None:
        partition_by = check_partition_columns(schema, options.partition_by or ())
    else:
        asked, partition_by = options.partition_by, state.partition_by
        if asked is not None and [name.lower() for name in asked] != [name.lower() for name in partition_by]:
            raise BadOption(
                f"partitionBy={','.join(asked)}, but the table is partitioned by {partition_by or 'nothing'}"
            )
        missing = {name.lower() for name in partition_by} - {name.lower() for name in schema.names}
        if missing:
            raise BadOption(f"the rows have no column {missing.pop()!r}, by which the table is partitioned")
        whole = merged(state.schema, schema, changes=options.changes_schema)
        table.check_change(state.schema, whole)
        rows = {name.lower() for name in schema.names}
        # Tasks write the columns that rows have; what becomes of the table's others is none of their business.
        schema = whole.empty_table().select([name for name in whole.names if name.lower() in rows]).schema
    return WritePlan(
        table=table,
        schema=schema,
        partition_by=partition_by,
        compression=options.compression,
        file_bytes=options.file_bytes,
        write_id=uuid.uuid4().hex,
    )


class BatchWriter(DataSourceArrowWriter):
    """Writes rows to a table, all or none.

    Args:
        options: of the format.
        spark_type: the columns of the rows.
        overwrites: whether the rows that are there go.
    """

    def __init__(self, options: TableOptions, spark_type: Any, *, overwrites: bool) -> None:
        self._options = options
        self._plan = plan_write(options, spark_type)
        self._overwrites = overwrites

    def write(self, iterator: Iterator[Any]) -> Staged:
        """Write the rows of one task. See `Staging.write`."""
        return _staged(self._plan, iterator, batch_directory("write", self._plan.write_id))

    def commit(self, messages: list[Any]) -> None:
        """Publish what the tasks have staged. See `publish`."""
        options = self._options
        batch = None if options.batch_id is None else Batch(options.application, options.batch_id)
        publish(
            self._plan,
            _files(messages),
            batch,
            overwrites=self._overwrites,
            changes_schema=options.changes_schema,
            keeps_empty=not self._overwrites,
        )

    def abort(self, messages: list[Any]) -> None:
        """Remove what the tasks have staged and nobody has published."""
        discard(self._plan.table, _files(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches to a table, each once.

    Args:
        options: of the format.
        spark_type: the columns of the rows.
        overwrites: whether each micro-batch takes the place of all rows (output mode complete).
    """

    def __init__(self, options: TableOptions, spark_type: Any, *, overwrites: bool) -> None:
        if options.batch_id is not None:
            raise BadOption("batchId is for batches; those of a stream are numbered by Spark")
        self._options = options
        self._plan = plan_write(options, spark_type)
        self._overwrites = overwrites

    def write(self, iterator: Iterator[Any]) -> Staged:
        """Write the rows of one task. See `Staging.write`."""
        current = attempt()
        application = self._options.application or current.query
        if not application:
            raise TableError("Spark does not tell the id of the query; give the option applicationId")
        return _staged(self._plan, iterator, batch_directory(application, current.batch or "unknown"))

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish what the tasks have staged, unless the table holds this micro-batch already. See `publish`."""
        queries = {message.query for message in messages if message is not None}
        if not queries:
            return  # A micro-batch without tasks has no rows.
        (query,) = queries
        publish(
            self._plan,
            _files(messages),
            Batch(self._options.application or query, batchId, query),
            overwrites=self._overwrites,
            changes_schema=self._options.changes_schema,
            keeps_empty=not self._overwrites,
        )

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove what the tasks have staged and nobody has published: published files have other places."""
        discard(self._plan.table, _files(messages))


def _staged(plan: WritePlan, batches: Iterable[Any], directory: str) -> Staged:
    current = attempt()
    files = Staging(plan, directory, current.name).write(batches)
    return Staged(current.query, tuple(files))


def _files(messages: list[Any]) -> list[DataFile]:
    return [file for message in messages if message is not None for file in message.files]
