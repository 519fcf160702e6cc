"""Copying topics into topics: between brokers, or into a topic with another number of partitions."""

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.spark.errors import JobError
from millstream.spark.jobs.archive import DEFAULT_BATCH_ROWS
from millstream.spark.jobs.running import JobEnd, run_stream, topic_sink
from millstream.spark.jobs.state import job_state
from millstream.spark.jobs.topics import ensure_topic, partitions_of, read_stream, topic_rows
from millstream.spark.servers import Servers

__all__ = ["copy", "repartition"]


def copy(
    spark: Any,
    *,
    servers: str | Servers,
    topics: Sequence[str],
    to_servers: str | Servers,
    checkpoint: str,
    to: str | None = None,
    start: str = "earliest",
    batch_rows: int = DEFAULT_BATCH_ROWS,
    sink_options: Mapping[str, str] | None = None,
    follows: bool = False,
    shows_progress: bool = False,
) -> JobEnd:
    """Copy topics to a broker, each record with its key, value, headers, time and partition, in the order of the
    partition. Run again, it adds what has come since.

    Offsets are the same only where a topic begins at 0 and has no gaps. Topics that are not there are made with as
    many partitions, and keep their records for ever; settings, groups and schemas are not copied.

    Args:
        spark: the session.
        servers, to_servers: HOST:PORT of brokers, or several separated by commas; `Servers` where they let in who
            they know. They may be the same.
        topics: their names.
        checkpoint: a local directory where the job remembers how far it is.
        to: the name of the copy of one topic; None for the same name.
        start, batch_rows, follows, shows_progress: as for `archive`.
        sink_options: further options of the sink, such as kafka.compression.type.

    Raises:
        JobError: it failed, the checkpoint is of another job, or a topic there has fewer partitions.
        BadOption, TopicMissing, BrokerUnreachable: as they say.
    """
    if to is not None and len(topics) != 1:
        raise JobError("several topics are copied under their own names; give one topic, or no other name")
    if str(servers) == str(to_servers) and (to is None or to in topics):
        raise JobError("a topic would be copied into itself; give another broker, or another name")
    counts = partitions_of(servers, topics)
    what = {"topics": sorted(topics), "to_servers": str(to_servers), "to": to, "start": start}
    with job_state(checkpoint, "copy", what) as state:
        for name, count in counts.items():
            ensure_topic(to_servers, to or name, count)
        rows = topic_rows(read_stream(spark, servers, topics, batch_rows, start), topic=to, keeps_partition=True)
        sink = topic_sink(to_servers, to, sink_options)
        return run_stream(rows, sink, state, name="copy", follows=follows, shows_progress=shows_progress)


def repartition(
    spark: Any,
    *,
    servers: str | Servers,
    topic: str,
    to: str,
    partitions: int,
    checkpoint: str,
    partitioner: str = "murmur2_random",
    to_servers: str | Servers | None = None,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    sink_options: Mapping[str, str] | None = None,
    follows: bool = False,
    shows_progress: bool = False,
) -> JobEnd:
    """Copy a topic into one with another number of partitions, by key.

    Records with the same key stay in order, as long as they were in one partition before; those without a key are
    spread. Run again, it adds what has come since.

    Args:
        spark: the session.
        servers: HOST:PORT of a broker, or several separated by commas; `Servers` where they let in who they know.
        topic: its name.
        to: name of the copy; it is made, or must have as many partitions.
        partitions: how many.
        checkpoint: a local directory where the job remembers how far it is.
        partitioner: by which hash of keys, as for the option of the sink; that of Kafka's clients if not given.
        to_servers: where the copy is; the same broker if not given.
        batch_rows, sink_options, follows, shows_progress: as for `copy`.

    Raises:
        JobError: it failed, the checkpoint is of another job, or the copy has another number of partitions.
        BadOption, TopicMissing, BrokerUnreachable: as they say.
    """
    if partitions < 1:
        raise JobError(f"a topic has 1 partition or more, not {partitions}")
    target = to_servers or servers
    if str(target) == str(servers) and to == topic:
        raise JobError("a topic would be copied into itself; give the copy another name")
    partitions_of(servers, [topic])
    what = {
        "topic": topic, "to": to, "to_servers": str(target), "partitions": partitions, "partitioner": partitioner,
    }  # fmt: skip
    with job_state(checkpoint, "repartition", what) as state:
        ensure_topic(target, to, partitions, exactly=True)
        rows = topic_rows(read_stream(spark, servers, [topic], batch_rows), topic=to, keeps_partition=False)
        sink = topic_sink(target, to, {"partitioner": partitioner, **(sink_options or {})})
        return run_stream(rows, sink, state, name="repartition", follows=follows, shows_progress=shows_progress)
