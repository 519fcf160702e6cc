"""Archiving topics: all their records into a table, exactly once, as they are and were."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from millstream.spark.jobs.running import JobEnd, run_stream, table_sink
from millstream.spark.jobs.state import job_state
from millstream.spark.jobs.topics import partitions_of, read_stream
from millstream.spark.servers import Servers

__all__ = ["DEFAULT_BATCH_ROWS", "archive"]

DEFAULT_BATCH_ROWS: Final = 1_000_000
"""Rows that are written at once: a hundred megabytes of small records, some seconds of work."""


def archive(
    spark: Any,
    *,
    servers: str | Servers,
    topics: Sequence[str],
    path: str,
    checkpoint: str,
    table_format: str | None = None,
    table_options: Mapping[str, str] | None = None,
    start: str = "earliest",
    batch_rows: int = DEFAULT_BATCH_ROWS,
    follows: bool = False,
    shows_progress: bool = False,
) -> JobEnd:
    """Write topics into a table with the columns key, value, topic, partition, offset, timestamp, timestampType,
    headers and protocol. Run again, it adds what has come since.

    Args:
        spark: the session.
        servers: HOST:PORT of a broker, or several separated by commas; `Servers` where they let in who they know.
        topics: their names.
        path: directory of the table.
        checkpoint: a local directory where the job remembers how far it is.
        table_format: parquet, delta or iceberg; None for that of the table that is there, or Parquet.
        table_options: further options of the table, such as partitionBy.
        start: earliest or latest, or JSON as for the option startingOffsets; where a new archive begins.
        batch_rows: written at once at most.
        follows: whether it goes on until it is stopped; else it ends with what there is when it begins.
        shows_progress: whether standard output shows how it comes along.

    Raises:
        JobError: it failed, or the checkpoint is of another job.
        BadOption, TopicMissing, BrokerUnreachable: as they say.
    """
    partitions_of(servers, topics)
    what = {"topics": sorted(topics), "path": path, "start": start}
    with job_state(checkpoint, "archive", what) as state:
        frame = read_stream(spark, servers, topics, batch_rows, start)
        sink = table_sink(path, table_format, table_options)
        return run_stream(frame, sink, state, name="archive", follows=follows, shows_progress=shows_progress)
