"""The tasks that read from one set of offsets to another."""

from collections.abc import Mapping

from millstream.spark.client import EARLIEST, LATEST, Client, Topic
from millstream.spark.read.offsets import report_loss, split
from millstream.spark.read.options import Direct, ReadOptions
from millstream.spark.read.points import Offsets
from millstream.spark.read.pushdown import NOTHING_PUSHED, Pushed
from millstream.spark.read.reading import OffsetRange

__all__ = ["plan"]


def plan(
    client: Client,
    options: ReadOptions,
    topics: Mapping[str, Topic],
    start: Offsets,
    end: Offsets,
    pushed: Pushed = NOTHING_PUSHED,
) -> list[OffsetRange]:
    """Plan the tasks.

    Args:
        client: the broker.
        options: of the query.
        topics: what is read.
        start, end: the range of each partition; empty ones get no task.
        pushed: what the rows must meet; what cannot is not read.

    Raises:
        DataLost: the log does not reach so far back (any more), or not as far as the end, and that is an error.
    """
    fails = options.fails_on_data_loss
    earliest, latest = client.offsets(topics, EARLIEST), client.offsets(topics, LATEST)
    data_dirs: dict[str, str] = {}
    ranges = []
    for name, parts in sorted(end.items()):
        topic = topics.get(name)
        for partition, stop in sorted(parts.items()):
            first = start[name][partition]
            if topic is None or partition not in topic.leaders:
                if first < stop:
                    report_loss(name, partition, first, stop, fails=fails)
                continue
            first, stop = _held(name, partition, (first, stop), (earliest, latest), fails=fails)
            first, stop = _narrowed(pushed, first, stop)
            if first >= stop or not pushed.wants(name, partition):
                continue
            leader = topic.leaders[partition]
            if options.direct is not Direct.NEVER and leader not in data_dirs:
                data_dirs[leader] = client.data_dir(leader)
            ranges.append(
                OffsetRange(
                    servers=options.servers,
                    topic=name,
                    topic_id=topic.topic_id,
                    partition=partition,
                    leader=leader,
                    data_dir=data_dirs.get(leader, ""),
                    start=first,
                    stop=stop,
                    direct=options.direct,
                    fails_on_data_loss=fails,
                    patience_s=options.patience_s,
                    pushed=pushed,
                )
            )
    counts = split([one.stop - one.start for one in ranges], options.min_partitions, options.task_rows_max)
    return [part for one, count in zip(ranges, counts, strict=True) for part in one.split(count)]


def _held(
    topic: str, partition: int, wanted: tuple[int, int], log: tuple[Offsets, Offsets], *, fails: bool
) -> tuple[int, int]:
    """What of a range the log holds; the rest is lost."""
    first, stop = wanted
    if first >= stop:
        return wanted
    held_from = min(log[0][topic][partition], stop)
    if first < held_from:
        report_loss(topic, partition, first, held_from, fails=fails)
        first = held_from
    held_to = max(log[1][topic][partition], first)
    if held_to < stop:
        report_loss(topic, partition, held_to, stop, fails=fails)
        stop = held_to
    return first, stop


def _narrowed(pushed: Pushed, first: int, stop: int) -> tuple[int, int]:
    low, high = pushed.bounds("offset")
    return (
        first if low is None else max(first, low),
        stop if high is None else min(stop, high + 1),
    )
