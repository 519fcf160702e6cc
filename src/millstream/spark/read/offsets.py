"""Offsets of a query: in a checkpoint, between two micro-batches, and split into tasks.

In a checkpoint they stand as Spark's Kafka source has them, {"topic": {"0": 23, "1": 42}}, in order: Spark takes two
texts that differ for two places in the stream.
"""

import logging
from collections.abc import Mapping

from millstream.spark.errors import BadOption, DataLost
from millstream.spark.read.points import Offsets
from millstream.spark.read.selection import Selection

__all__ = ["Json", "from_json", "limited", "report_loss", "rows_between", "shares", "split", "to_json"]

_log = logging.getLogger(__name__)

Json = dict[str, dict[str, int]]
"""Offsets as a checkpoint holds them."""


def to_json(offsets: Offsets) -> Json:
    """Offsets as a checkpoint holds them."""
    return {
        topic: {str(partition): at for partition, at in sorted(parts.items())}
        for topic, parts in sorted(offsets.items())
    }


def from_json(read: Mapping[str, Mapping[str, int]], selection: Selection) -> Offsets:
    """Offsets out of a checkpoint.

    Args:
        read: what the checkpoint holds.
        selection: what the query reads.

    Raises:
        BadOption: the checkpoint is that of another query.
    """
    offsets = {topic: {int(partition): int(at) for partition, at in parts.items()} for topic, parts in read.items()}
    foreign = sorted(topic for topic in offsets if not selection.admits(topic))
    foreign += [
        f"partition {partition} of {topic}"
        for topic, parts in offsets.items()
        for partition in parts
        if selection.admits(topic) and not selection.admits(topic, partition)
    ]
    if foreign:
        raise BadOption(
            f"the checkpoint is of a query over {', '.join(foreign)}, which the option {selection.option} does not "
            "name; give this query a checkpointLocation of its own"
        )
    return offsets


def report_loss(topic: str, partition: int, first: int, behind: int, *, fails: bool) -> None:
    """Say that some records are gone.

    Args:
        first, behind: the first offset that is lost, and the one behind the last.
        fails: whether that is an error or a warning in the logs.

    Raises:
        DataLost: it is an error.
    """
    lost = f"topic {topic!r} partition {partition} has lost the offsets {first} to {behind - 1}"
    if fails:
        raise DataLost(
            f"{lost} (deleted or damaged) before they were read; failOnDataLoss=false goes on without them"
        )
    _log.warning("%s: they are left out, as failOnDataLoss=false says", lost)


def rows_between(start: Offsets, end: Offsets) -> dict[tuple[str, int], int]:
    """How many records each partition has from one place to another, 0 where that is behind it."""
    return {
        (topic, partition): max(behind - start[topic][partition], 0)
        for topic, parts in end.items()
        for partition, behind in parts.items()
    }


def shares(sizes: Mapping[tuple[str, int], int], most: int) -> dict[tuple[str, int], int]:
    """Share a limit out in proportion to what each partition has; no share is larger than that."""
    total = sum(sizes.values())
    if total <= most:
        return dict(sizes)
    result = {place: size * most // total for place, size in sizes.items()}
    left = most - sum(result.values())
    for place, size in sorted(sizes.items(), key=lambda item: -item[1]):
        # What rounding has left goes to the largest, one each.
        if left and result[place] < size:
            result[place] += 1
            left -= 1
    return result


def limited(start: Offsets, end: Offsets, records_max: int) -> Offsets:
    """An end at most so many records behind the start, shared out in proportion to what each partition has."""
    rows = shares(rows_between(start, end), records_max)
    return {
        topic: {
            partition: min(start[topic][partition], behind) + rows[topic, partition]
            for partition, behind in parts.items()
        }
        for topic, parts in end.items()
    }


def split(sizes: list[int], tasks_min: int | None, task_rows_max: int | None = None) -> list[int]:
    """Into how many tasks each range of offsets is split, so that there are at least so many in all.

    Args:
        sizes: records of each range, above 0.
        tasks_min: how many tasks there should be; None for one for each range.
        task_rows_max: records that a task may have; None for any number.
    """
    total = sum(sizes)
    counts = [1] * len(sizes)
    if task_rows_max is not None:
        counts = [-(-size // task_rows_max) for size in sizes]
    if tasks_min is not None and sum(counts) < tasks_min:
        counts = [
            min(max(-(-size * tasks_min // total), count), size) for size, count in zip(sizes, counts, strict=True)
        ]
    return counts
