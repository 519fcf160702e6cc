"""Replaying tables: the records of an archive back into topics, each once, as they were."""

from collections.abc import Mapping
from typing import Any, Final

from millstream.spark.errors import BadOption, JobError
from millstream.spark.jobs.ranges import Piece, condition, pieces_of, planned, unplanned
from millstream.spark.jobs.running import JobEnd, run_pieces, topic_sink
from millstream.spark.jobs.state import job_state
from millstream.spark.jobs.topics import Ends, ensure_topic, topic_rows
from millstream.spark.servers import Servers

__all__ = ["replay"]

_NEEDED: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_DEFAULT_BATCH_ROWS: Final = 500_000


def replay(
    spark: Any,
    *,
    path: str,
    servers: str | Servers,
    checkpoint: str,
    topic: str | None = None,
    source_topic: str | None = None,
    table_format: str | None = None,
    offset_header: str | None = None,
    batch_rows: int = _DEFAULT_BATCH_ROWS,
    sink_options: Mapping[str, str] | None = None,
    shows_progress: bool = False,
) -> JobEnd:
    """Write the records of an archive into topics: key, value, headers, time and partition as they were, in the
    order of their offsets. What the archive holds when the job is new is replayed, piece by piece; stopped or killed,
    it goes on where it was.

    Args:
        spark: the session.
        path: directory of the table, as `archive` has written it.
        servers: HOST:PORT of a broker, or several separated by commas; `Servers` where they let in who they know.
        checkpoint: a local directory where the job remembers how far it is.
        topic: where the records go; None for the topic that each was in. A topic that is not there is made, with as
            many partitions as are needed, and keeps its records for ever.
        source_topic: whose records; None for all.
        table_format: parquet, delta or iceberg; None for what is there.
        offset_header: name of a header to add with the offset that a record had, in decimal.
        batch_rows: of one piece, about.
        sink_options: further options of the sink, such as kafka.compression.type.
        shows_progress: whether standard output shows how it comes along.

    Raises:
        JobError: it failed, the checkpoint is of another job, the table is no archive, or several topics would
            become one.
        BadOption, TableMissing, TopicMissing, BrokerUnreachable: as they say.
    """
    archive = _archive(spark, path, table_format)
    what = {"path": path, "servers": str(servers), "topic": topic, "source_topic": source_topic}
    what |= {"batch_rows": str(batch_rows), "offset_header": offset_header}
    with job_state(checkpoint, "replay", what, lambda: planned(_ranges(archive, path, topic, source_topic))) as state:
        ranges = unplanned(state.plan)
        for name, parts in ranges.items():
            ensure_topic(servers, topic or name, max(parts) + 1)

        def read(piece: Piece) -> Any:
            return _rows(archive, piece, topic, offset_header)

        return run_pieces(
            pieces_of(ranges, batch_rows),
            read,
            topic_sink(servers, topic, sink_options),
            state,
            name="replay",
            shows_progress=shows_progress,
        )


def _archive(spark: Any, path: str, table_format: str | None) -> Any:
    from millstream.spark.tables import TableFormat, read_live

    if table_format is not None and table_format not in set(TableFormat):
        raise BadOption(f"tableFormat is one of {', '.join(TableFormat)}, not {table_format!r}")
    frame = read_live(spark, path, None if table_format is None else TableFormat(table_format))
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise JobError(f"the table {path} is no archive of topics: it has no column {missing[0]!r}")
    return frame


def _ranges(archive: Any, path: str, topic: str | None, source_topic: str | None) -> Ends:
    """What the archive holds, by topic and partition."""
    from pyspark.sql import functions as F

    rows = archive if source_topic is None else archive.where(F.col("topic") == source_topic)
    found = rows.groupBy("topic", "partition").agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
    ranges: Ends = {}
    for row in found.orderBy("topic", "partition").collect():
        ranges.setdefault(row["topic"], {})[row["partition"]] = (row["first"], row["last"] + 1)
    if topic is not None and len(ranges) > 1:
        raise JobError(
            f"the table {path} holds the topics {', '.join(ranges)}, whose partitions would be mixed in one topic; "
            "name one of them, or let each go where it was"
        )
    return ranges


def _rows(archive: Any, piece: Piece, topic: str | None, offset_header: str | None) -> Any:
    from pyspark.sql import functions as F

    rows = archive.where(condition(piece))
    if offset_header is not None:
        # Arrays are joined; a record without headers has none, which is a null and not an empty array.
        told = F.array(
            F.struct(F.lit(offset_header).alias("key"), F.col("offset").cast("string").cast("binary").alias("value"))
        )
        none = F.array().cast(rows.schema["headers"].dataType)
        rows = rows.withColumn("headers", F.concat(F.coalesce("headers", none), told))
    parts = sum(len(parts) for parts in piece.values())
    # All of a partition is one task's, in order; a sink writes the rows of a task as they come.
    ordered = rows.repartition(parts, "topic", "partition").sortWithinPartitions("topic", "partition", "offset")
    return topic_rows(ordered, topic=topic, keeps_partition=True)
