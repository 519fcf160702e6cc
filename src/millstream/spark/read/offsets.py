"""Which offsets a query or a micro-batch reads.

Offsets are held by topic and partition. In a checkpoint they stand as Spark's Kafka source has them,
{"topic": {"0": 23, "1": 42}}, in order: Spark takes two texts that differ for two places in the stream.
"""

import logging
from collections.abc import Mapping

from millstream.spark.errors import BadOption, DataLost
from millstream.spark.read.options import StartingPoint

__all__ = ["Offsets", "from_json", "limited", "report_loss", "resolved", "split", "to_json"]

_log = logging.getLogger(__name__)
_EARLIEST = -2

Offsets = dict[str, dict[int, int]]
"""Offsets by topic and partition."""


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets as a checkpoint holds them."""
    return {
        topic: {str(partition): at for partition, at in sorted(parts.items())}
        for topic, parts in sorted(offsets.items())
    }


def from_json(read: Mapping[str, Mapping[str, int]], topics: tuple[str, ...]) -> Offsets:
    """Offsets out of a checkpoint.

    Args:
        read: what the checkpoint holds.
        topics: those that are subscribed to.

    Raises:
        BadOption: the checkpoint is that of another query.
    """
    foreign = sorted(set(read) - set(topics))
    if foreign:
        raise BadOption(
            f"the checkpoint is of a query over {', '.join(foreign)}, which the option subscribe does not name; "
            "give this query a checkpointLocation of its own"
        )
    return {topic: {int(partition): int(at) for partition, at in parts.items()} for topic, parts in read.items()}


def resolved(option: str, point: StartingPoint, earliest: Offsets, latest: Offsets, *, fails: bool) -> Offsets:
    """The offsets that an option means.

    Args:
        option: its name, for messages.
        point: its value.
        earliest, latest: of all partitions there are.
        fails: whether an offset that the log does not hold is an error; else the nearest one is taken.

    Raises:
        BadOption: it does not name the partitions there are.
        DataLost: an offset that it names is not in the log.
    """
    if point == "earliest":
        return earliest
    if point == "latest":
        return latest
    assert isinstance(point, Mapping)
    result: Offsets = {}
    for topic, named in point.items():
        if set(named) != set(latest[topic]):
            raise BadOption(f"{option} must name all partitions of {topic!r}: 0 to {len(latest[topic]) - 1}")
        result[topic] = {}
        for partition, wanted in named.items():
            first, behind = earliest[topic][partition], latest[topic][partition]
            at = wanted if wanted >= 0 else first if wanted == _EARLIEST else behind
            if not first <= at <= behind:
                if fails:
                    raise DataLost(
                        f"{option}: topic {topic!r} partition {partition} holds the offsets {first} to {behind - 1}, "
                        f"{at} is not among them; change it, or set failOnDataLoss=false"
                    )
                at = min(max(at, first), behind)
            result[topic][partition] = at
    return result


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


def limited(start: Offsets, end: Offsets, records_max: int) -> Offsets:
    """An end at most so many records behind the start, shared out in proportion to what each partition has."""
    sizes = {
        (topic, partition): max(behind - start[topic][partition], 0)
        for topic, parts in end.items()
        for partition, behind in parts.items()
    }
    total = sum(sizes.values())
    if total <= records_max:
        return end
    shares = {place: size * records_max // total for place, size in sizes.items()}
    left = records_max - sum(shares.values())
    for place, size in sorted(sizes.items(), key=lambda item: -item[1]):
        # What rounding has left goes to the largest, one record each.
        if left and shares[place] < size:
            shares[place] += 1
            left -= 1
    return {
        topic: {
            partition: min(start[topic][partition], behind) + shares[topic, partition]
            for partition, behind in parts.items()
        }
        for topic, parts in end.items()
    }


def split(sizes: list[int], tasks_min: int | None) -> list[int]:
    """Into how many tasks each range of offsets is split, so that there are at least so many in all.

    Args:
        sizes: records of each range, above 0.
        tasks_min: how many tasks there should be; None for one for each range.
    """
    total = sum(sizes)
    if tasks_min is None or len(sizes) >= tasks_min:
        return [1] * len(sizes)
    return [min(-(-size * tasks_min // total), size) for size in sizes]
