"""Compacting a topic by key: into a topic that holds the latest record of every key."""

from collections.abc import Mapping
from typing import Any

from millstream.spark.errors import JobError
from millstream.spark.jobs.backfill import read_piece
from millstream.spark.jobs.ranges import planned, unplanned
from millstream.spark.jobs.running import JobEnd, run_pieces, topic_sink
from millstream.spark.jobs.state import job_state
from millstream.spark.jobs.topics import Ends, ends_of, ensure_topic, topic_rows
from millstream.spark.servers import Servers

__all__ = ["compact"]


def compact(
    spark: Any,
    *,
    servers: str | Servers,
    topic: str,
    to: str,
    checkpoint: str,
    to_servers: str | Servers | None = None,
    keeps_tombstones: bool = False,
    drops_unkeyed: bool = False,
    sink_options: Mapping[str, str] | None = None,
    shows_progress: bool = False,
) -> JobEnd:
    """Write a compacted copy of a topic, as it is when the job is new: of the records with one key in one partition
    the latest, in the order and the partitions that they were in, with their headers and times.

    A record without a value says that its key is gone: where it is the latest, nothing of the key is copied. Records
    without a key are copied, all of them. The copy appears as a whole, or not at all.

    Args:
        spark: the session.
        servers: HOST:PORT of a broker, or several separated by commas; `Servers` where they let in who they know.
        topic: its name.
        to: name of the copy; it is made with as many partitions if it is not there, and keeps its records for ever.
        checkpoint: a local directory where the job remembers what it does.
        to_servers: where the copy is; the same broker if not given.
        keeps_tombstones: whether records without a value are copied where they are the latest of their key.
        drops_unkeyed: whether records without a key are left out.
        sink_options: further options of the sink, such as kafka.compression.type.
        shows_progress: whether standard output shows how it comes along.

    Raises:
        JobError: it failed, the checkpoint is of another job, or the copy has fewer partitions.
        BadOption, DataLost, TopicMissing, BrokerUnreachable: as they say.
    """
    target = to_servers or servers
    if str(target) == str(servers) and to == topic:
        raise JobError("a topic would be compacted into itself; give the copy another name")
    what = {"topic": topic, "to": to, "to_servers": str(target)}
    what |= {"keeps_tombstones": str(keeps_tombstones), "drops_unkeyed": str(drops_unkeyed)}
    with job_state(checkpoint, "compact", what, lambda: planned(ends_of(servers, [topic]))) as state:
        ranges = unplanned(state.plan)
        ensure_topic(target, to, len(ranges[topic]))
        held: Ends = {topic: {part: span for part, span in ranges[topic].items() if span[0] < span[1]}}

        def read(piece: Ends) -> Any:
            rows = read_piece(spark, servers, piece)
            latest = _latest(rows, keeps_tombstones=keeps_tombstones, drops_unkeyed=drops_unkeyed)
            parts = len(piece[topic])
            ordered = latest.repartition(parts, "partition").sortWithinPartitions("partition", "offset")
            return topic_rows(ordered, topic=to, keeps_partition=True)

        return run_pieces(
            [held] if held[topic] else [],
            read,
            topic_sink(target, to, sink_options),
            state,
            name="compact",
            shows_progress=shows_progress,
        )


def _latest(rows: Any, *, keeps_tombstones: bool, drops_unkeyed: bool) -> Any:
    from pyspark.sql import functions as F

    names = ["partition", "key", "value", "headers", "timestamp", "offset"]
    last = F.max_by(F.struct(*names), "offset").alias("last")
    latest = rows.where(F.col("key").isNotNull()).groupBy("partition", "key").agg(last).select("last.*")
    if not keeps_tombstones:
        latest = latest.where(F.col("value").isNotNull())
    if drops_unkeyed:
        return latest
    return latest.unionByName(rows.where(F.col("key").isNull()).select(*names))
