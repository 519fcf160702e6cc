"""The two writers that Spark drives: of one table, and of the micro-batches of a stream.

Spark pickles a writer for its tasks, and again for the process in which it commits.
"""

# mypy: disable-error-code="misc"
# PySpark is not looked into by the type checker, so that its classes have no known type to be a subclass of.

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from millstream.spark.errors import BadOption, WriteRefused
from millstream.spark.write.cluster import Cluster
from millstream.spark.write.columns import check_columns
from millstream.spark.write.options import WriteOptions
from millstream.spark.write.publishing import publish, withdraw
from millstream.spark.write.task import Job, Written, write_rows
from millstream.spark.write.transactions import Slot

__all__ = ["BatchWriter", "StreamWriter", "batch_writer", "stream_writer"]

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
"""Properties that Spark sets in the tasks of a micro-batch. The id of a query lives in its checkpoint."""
_ABORT_PATIENCE_S: Final = 5.0
"""What is not dropped by then is dropped by the broker. Somebody waits to be told what went wrong."""


@dataclass(frozen=True, slots=True)
class _Message(WriterCommitMessage):
    """What a task tells the driver."""

    written: Written


def batch_writer(options: WriteOptions, schema: Any, *, overwrite: bool) -> "BatchWriter":
    """A writer of one table, after checking all that can be checked.

    Raises:
        BadOption, BrokerUnreachable, TopicMissing: it cannot be written.
    """
    _check(options, schema, overwrite=overwrite)
    # Nobody else is to take its transactions for his own.
    application_id = options.application_id or str(uuid.uuid4())
    with Cluster(options) as cluster:
        if options.topic is not None:
            cluster.topics.partition_counts([options.topic])
    return BatchWriter(options, Job(application_id=application_id, query_id=None, batch_id=options.batch_id))


def stream_writer(options: WriteOptions, schema: Any, *, overwrite: bool) -> "StreamWriter":
    """A writer of a stream, after checking all that can be checked without asking a broker that may restart.

    Raises:
        BadOption: it cannot be written.
    """
    _check(options, schema, overwrite=overwrite)
    return StreamWriter(options)


class BatchWriter(DataSourceArrowWriter):
    """Writes one table."""

    def __init__(self, options: WriteOptions, job: Job) -> None:
        self._options = options
        self._job = job

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one task."""
        return _Message(write_rows(self._options, self._job, _slot(), iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish what all tasks have written."""
        publish(self._options, _written(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop what tasks have written."""
        withdraw(_hasty(self._options), _written(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batch after micro-batch."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one task of a micro-batch."""
        from pyspark import TaskContext

        context = TaskContext.get()
        query_id, batch_id = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if query_id is None or batch_id is None:
            raise WriteRefused(
                "this Spark does not tell its tasks which query they are of; the sink is for Spark 4.3"
            )
        job = Job(application_id=self._options.application_id or query_id, query_id=query_id, batch_id=int(batch_id))
        return _Message(write_rows(self._options, job, _slot(), iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish a micro-batch."""
        publish(self._options, _written(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Drop a micro-batch, unless it is to be published when it runs again."""
        withdraw(_hasty(self._options), _written(messages))


def _check(options: WriteOptions, schema: Any, *, overwrite: bool) -> None:
    if overwrite:
        raise BadOption('a topic is not overwritten: records are appended, take mode("append")')
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    check_columns(columns, has_topic=options.topic is not None)


def _slot() -> Slot:
    from pyspark import TaskContext

    context = TaskContext.get()
    return Slot(context.partitionId(), context.attemptNumber())


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message.written for message in messages if isinstance(message, _Message)]


def _hasty(options: WriteOptions) -> WriteOptions:
    return replace(options, patience_s=min(options.patience_s, _ABORT_PATIENCE_S))
