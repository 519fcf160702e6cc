"""How many bytes records take in the log, estimated: the broker tells sizes of partitions, not of ranges of offsets.

The mean of a partition, its bytes over its records, is what there is without reading. Records to come may be larger
than the mean, so that before a limit is applied the frames at the place where reading goes on are looked at as well,
and the larger of both counts: a limit is rather kept than used up.
"""

from collections.abc import Mapping
from typing import Final

from millstream.model.frame import HEADER_BYTES
from millstream.spark.client import Client, Topic
from millstream.spark.read.frames import walk
from millstream.spark.read.offsets import rows_between, shares
from millstream.spark.read.points import Offsets

__all__ = ["limited_by_bytes", "mean_bytes", "record_bytes"]

_SAMPLE_BYTES: Final = 64 * 1024
_UNKNOWN_BYTES: Final = float(HEADER_BYTES)
"""Of a record where nothing tells: a log is not empty that has one."""


def mean_bytes(
    client: Client, topics: Mapping[str, Topic], earliest: Offsets, latest: Offsets
) -> dict[tuple[str, int], float]:
    """Bytes of a record in the log, the mean of each partition."""
    sizes = client.sizes(topics)
    return {
        (topic, part): sizes[topic][part] / rows if rows and sizes[topic].get(part) else _UNKNOWN_BYTES
        for (topic, part), rows in rows_between(earliest, latest).items()
    }


def record_bytes(client: Client, topic: Topic, partition: int, offset: int) -> float:
    """Bytes of a record in the frames at an offset, as they travel; 0 if there are none."""
    leader = topic.leaders[partition]
    fetched = client.fetch(topic.name, topic.topic_id, partition, leader, offset, _SAMPLE_BYTES)
    walked = walk(memoryview(fetched.records), None, offset, 2**63 - 1)
    if not walked.found:
        return 0.0
    last = walked.found[-1]
    rows = last.header.last_offset + 1 - walked.found[0].header.base_offset
    return (last.position + last.header.size - walked.found[0].position) / rows


def limited_by_bytes(
    client: Client,
    topics: Mapping[str, Topic],
    start: Offsets,
    end: Offsets,
    means: Mapping[tuple[str, int], float],
    bytes_max: int,
) -> Offsets:
    """An end at most so many bytes behind the start, about; at least one record if there is one.

    Args:
        client: is asked for samples.
        topics: what is read.
        start, end: the range that is too large.
        means: as `mean_bytes` tells them, of all partitions with records in the range.
        bytes_max: bytes in the log.
    """
    rows = {place: count for place, count in rows_between(start, end).items() if count}
    each = {
        (topic, part): max(means[topic, part], record_bytes(client, topics[topic], part, start[topic][part]))
        for topic, part in rows
    }
    sizes = {place: int(count * each[place]) for place, count in rows.items()}
    if sum(sizes.values()) <= bytes_max:
        return end
    allowed = shares(sizes, bytes_max)
    taken = {place: min(round(allowed[place] / each[place]), count) for place, count in rows.items()}
    if rows and not any(taken.values()):
        # A record that is larger than the limit is read all the same, or nothing would ever be.
        taken[max(rows, key=lambda place: allowed[place])] = 1
    return {
        topic: {part: min(start[topic][part], behind) + taken.get((topic, part), 0) for part, behind in parts.items()}
        for topic, parts in end.items()
    }
