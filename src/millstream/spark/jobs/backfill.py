"""Backfilling: a range of a topic, by offsets or by time, into a table or a topic, once."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from millstream.spark.client import LATEST, Client
from millstream.spark.errors import JobError
from millstream.spark.jobs.archive import DEFAULT_BATCH_ROWS
from millstream.spark.jobs.ranges import Piece, pieces_of, planned, unplanned
from millstream.spark.jobs.running import TOPIC, JobEnd, Sink, run_pieces
from millstream.spark.jobs.state import job_state
from millstream.spark.jobs.topics import ARCHIVE_COLUMNS, Ends, ends_of, ensure_topic, topic_rows
from millstream.spark.servers import Servers

__all__ = ["Bound", "backfill", "read_piece"]

Bound = int | datetime | Mapping[int, int] | None
"""One end of a range: an offset in every partition, a time, an offset by partition, or None for that of the topic."""


def backfill(
    spark: Any,
    *,
    servers: str | Servers,
    topic: str,
    sink: Sink,
    checkpoint: str,
    start: Bound = None,
    end: Bound = None,
    transform: Callable[[Any], Any] | None = None,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    shows_progress: bool = False,
) -> JobEnd:
    """Write a range of a topic into a sink, piece by piece. Which offsets that are is settled when the job is new;
    stopped or killed, it goes on where it was, and run again when it is complete, it writes nothing.

    Args:
        spark: the session.
        servers: HOST:PORT of a broker, or several separated by commas; `Servers` where they let in who they know.
        topic: its name.
        sink: `table_sink` or `topic_sink`. A topic that is not there is made with as many partitions.
        checkpoint: a local directory where the job remembers how far it is.
        start: the first that is written.
        end: the first that is not; by time, the first record of each partition as late as that.
        transform: makes of each piece, with the columns of an archive, what is written; None for all columns as they
            are, or for a topic each record with its partition.
        batch_rows: of one piece, about.
        shows_progress: whether standard output shows how it comes along.

    Raises:
        JobError: it failed, the checkpoint is of another job, or the range is none.
        BadOption, DataLost, TopicMissing, BrokerUnreachable: as they say.
    """
    what = {"topic": topic, "sink": sink.name, "start": _told(start), "end": _told(end), "batch_rows": batch_rows}
    with job_state(checkpoint, "backfill", what, lambda: planned(_ranges(servers, topic, start, end))) as state:
        ranges = unplanned(state.plan)
        if sink.format == TOPIC and "topic" in sink.options and transform is None:
            ensure_topic(Servers.of(sink.options), sink.options["topic"], len(ranges[topic]))

        def read(piece: Piece) -> Any:
            rows = read_piece(spark, servers, piece)
            if transform is not None:
                return transform(rows)
            is_topic = sink.format == TOPIC
            return topic_rows(rows, topic=sink.options.get("topic"), keeps_partition=True) if is_topic else rows

        pieces = pieces_of(ranges, batch_rows)
        return run_pieces(pieces, read, sink, state, name="backfill", shows_progress=shows_progress)


def read_piece(spark: Any, servers: str | Servers, piece: Piece) -> Any:
    """Some ranges of offsets as a table with ARCHIVE_COLUMNS, one task for each."""
    starts, ends = (
        {topic: {part: span[side] for part, span in parts.items()} for topic, parts in piece.items()}
        for side in (0, 1)
    )
    options = {
        **Servers.at(servers).options,
        "assign": json.dumps({topic: sorted(parts) for topic, parts in piece.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "columns": ",".join(ARCHIVE_COLUMNS),
    }
    return spark.read.format("millstream").options(**options).load()


def _told(bound: Bound) -> Any:
    if isinstance(bound, datetime):
        return bound.isoformat()
    return {str(part): offset for part, offset in bound.items()} if isinstance(bound, Mapping) else bound


def _ranges(servers: str | Servers, topic: str, start: Bound, end: Bound) -> Ends:
    held = ends_of(servers, [topic])[topic]
    first = _offsets(servers, topic, start, {part: span[0] for part, span in held.items()})
    behind = _offsets(servers, topic, end, {part: span[1] for part, span in held.items()})
    ranges = {}
    for part, (earliest, latest) in held.items():
        if isinstance(start, int | Mapping) and not earliest <= first[part] <= latest:
            raise JobError(
                f"the topic {topic!r} holds at partition {part} the offsets {earliest} to {latest - 1}, and "
                f"{first[part]} is not one of them; change the start"
            )
        if isinstance(end, int | Mapping) and not first[part] <= behind[part] <= latest:
            raise JobError(
                f"the range of partition {part} of the topic {topic!r} would end at {behind[part]}, and it begins at "
                f"{first[part]} and the topic ends at {latest}; change the end"
            )
        ranges[part] = (first[part], max(first[part], behind[part]))
    return {topic: ranges}


def _offsets(servers: str | Servers, topic: str, bound: Bound, default: Mapping[int, int]) -> dict[int, int]:
    match bound:
        case None:
            return dict(default)
        case datetime():
            ms = int(bound.timestamp() * 1000)
            with Client(servers) as client:
                described = client.topics([topic])
                latest = client.offsets(described, LATEST)[topic]
                found = client.offsets(described, max(0, ms))[topic]
            # Where no record is as late, the range begins, or ends, at the end.
            return {part: at if at >= 0 else latest[part] for part, at in found.items()}
        case int():
            return dict.fromkeys(default, bound)
    unknown = bound.keys() - default.keys()
    if unknown:
        raise JobError(f"the topic {topic!r} has no partition {min(unknown)}; it has {len(default)}")
    return {part: bound.get(part, at) for part, at in default.items()}
