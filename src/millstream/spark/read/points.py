"""Where a query begins and ends, by offsets, by time or by the position of a consumer group."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from millstream.spark.client import Client, Topic
from millstream.spark.errors import BadOption, DataLost
from millstream.spark.read.selection import Selection

__all__ = ["EARLIEST_OFFSET", "LATEST_OFFSET", "Offsets", "Point", "read_point", "resolve"]

EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1
"""What stands in JSON for the first offset, and for the one behind the last."""

Offsets = dict[str, dict[int, int]]
"""Offsets by topic and partition."""
Edge = Literal["earliest", "latest"]
Numbers = Mapping[str, Mapping[int, int]]

_NAMES: Final = {
    "starting": ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"),
    "ending": ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"),
}
_STRATEGY: Final = "startingOffsetsByTimestampStrategy"
_GROUP: Final = "startingGroup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One end of what is read.

    Args:
        option: the option that says so, for messages.
        offsets: earliest, latest, or an offset by topic and partition (-2 for earliest, -1 for latest).
        times: ms since 1970, for all partitions or by topic and partition, instead of offsets.
        is_start: whether the first record as late as a time begins what is read, or is the first that is not.
        takes_latest: whether a start where no record is as late is the latest offset; else it is an error.
        group: the group or subscription whose position it is; `offsets` says where it has none.
    """

    option: str
    offsets: Edge | Numbers
    times: int | Numbers | None = None
    is_start: bool = True
    takes_latest: bool = False
    group: str = ""

    def holds(self, edge: int) -> bool:
        """Whether EARLIEST_OFFSET or LATEST_OFFSET is named for a partition, or for all of them."""
        if self.times is not None:
            return False
        if isinstance(self.offsets, str):
            return self.offsets == ("latest" if edge == LATEST_OFFSET else "earliest")
        return any(edge in parts.values() for parts in self.offsets.values())


def read_point(given: Mapping[str, str], end: Literal["starting", "ending"], selection: Selection) -> Point | None:
    """Read the options of one end; a time for all comes before times by partition, and these before offsets.

    Returns:
        The point; None if no option says anything.

    Raises:
        BadOption: one of them makes no sense.
    """
    at, by_time, by_offset = _NAMES[end]
    is_start = end == "starting"
    strategy = given.get(_STRATEGY, "error").lower()
    if strategy not in {"error", "latest"}:
        raise BadOption(f"{_STRATEGY} is error or latest, not {given[_STRATEGY]!r}")
    offsets: Edge | Numbers = "latest"
    if by_offset in given:
        offsets = _offsets(by_offset, given[by_offset], selection)
    takes_latest = strategy == "latest"
    group = given.get(_GROUP, "") if is_start else ""
    if group and (at in given or by_time in given):
        raise BadOption(f"{_GROUP} and {at if at in given else by_time} both say where to begin; take one of them")
    if at in given:
        if not given[at].isdecimal():
            raise BadOption(f"{at} takes milliseconds since 1970, not {given[at]!r}")
        times: int | Numbers = int(given[at])
        return Point(option=at, offsets=offsets, times=times, is_start=is_start, takes_latest=takes_latest)
    if by_time in given:
        times = _numbers(by_time, given[by_time], selection, '{"topic": {"0": 1700000000000}}')
        if any(time < 0 for parts in times.values() for time in parts.values()):
            raise BadOption(f"{by_time} takes milliseconds since 1970, none below 0")
        return Point(option=by_time, offsets=offsets, times=times, is_start=is_start, takes_latest=takes_latest)
    if group:
        edge = offsets if by_offset in given else "earliest"
        return Point(option=_GROUP, offsets=edge, group=group)
    return Point(option=by_offset, offsets=offsets, is_start=is_start) if by_offset in given else None


def _offsets(name: str, text: str, selection: Selection) -> Edge | Numbers:
    if text.lower() == "earliest":
        return "earliest"
    if text.lower() == "latest":
        return "latest"
    offsets = _numbers(name, text, selection, 'earliest, latest or JSON such as {"topic": {"0": 23}}')
    if any(at < EARLIEST_OFFSET for parts in offsets.values() for at in parts.values()):
        raise BadOption(f"{name}: an offset is 0 or more, -1 for the latest or -2 for the earliest")
    return offsets


def _numbers(name: str, text: str, selection: Selection, example: str) -> Numbers:
    """Read JSON such as {"orders": {"0": 23, "1": -2}}."""
    try:
        read = json.loads(text)
        numbers = {str(topic): {int(part): int(at) for part, at in parts.items()} for topic, parts in read.items()}
    except (ValueError, AttributeError, TypeError):
        raise BadOption(f"{name} takes {example}, not {text!r}") from None
    if not selection.pattern and set(numbers) != set(selection.names):
        raise BadOption(
            f"{name} must name the topics of {selection.option}, all of them and no others: "
            f"{', '.join(selection.names)}"
        )
    return numbers


def resolve(
    point: Point, client: Client, topics: Mapping[str, Topic], earliest: Offsets, latest: Offsets, *, fails: bool
) -> Offsets:
    """The offsets that a point means.

    Args:
        point: one end of what is read.
        client: is asked about times and groups.
        topics: what is read.
        earliest, latest: of all partitions of them.
        fails: whether an offset that the log does not hold is an error; else the nearest one is taken.

    Raises:
        BadOption: it does not name the partitions there are, or no record is as late as a time.
        DataLost: an offset that it names is not in the log.
    """
    if point.times is not None:
        return _by_time(point, client, topics, latest)
    if isinstance(point.offsets, str):
        result = earliest if point.offsets == "earliest" else latest
    else:
        _check_named(point.option, point.offsets, latest)
        result = _by_offset(point.option, point.offsets, earliest, latest, fails=fails)
    if not point.group:
        return result
    committed = client.committed(point.group, topics)
    named = {
        name: {part: committed[name][part] if committed[name][part] >= 0 else at for part, at in parts.items()}
        for name, parts in result.items()
    }
    return _by_offset(f"{_GROUP}={point.group}", named, earliest, latest, fails=fails)


def _by_time(point: Point, client: Client, topics: Mapping[str, Topic], latest: Offsets) -> Offsets:
    times = point.times
    if isinstance(times, int):
        times = {name: dict.fromkeys(parts, times) for name, parts in latest.items()}
    assert times is not None
    _check_named(point.option, times, latest)
    found = client.offsets_at(topics, times)
    for name, parts in found.items():
        for part, at in parts.items():
            if at >= 0:
                # What is as late may not be decided yet.
                parts[part] = min(at, latest[name][part])
                continue
            if point.is_start and not point.takes_latest:
                raise BadOption(
                    f"{point.option}: topic {name!r} partition {part} holds no record as late as "
                    f"{times[name][part]}; "
                    f"take an earlier time, or {_STRATEGY}=latest"
                )
            parts[part] = latest[name][part]
    return found


def _check_named(option: str, named: Numbers, latest: Offsets) -> None:
    if set(named) != set(latest):
        raise BadOption(f"{option} must name the topics there are, all of them and no others: {', '.join(latest)}")
    for topic, parts in named.items():
        if set(parts) != set(latest[topic]):
            numbers = sorted(latest[topic])
            named_as = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"
            raise BadOption(f"{option} must name all partitions of {topic!r}: {named_as}")


def _by_offset(option: str, named: Numbers, earliest: Offsets, latest: Offsets, *, fails: bool) -> Offsets:
    result: Offsets = {}
    for topic, parts in named.items():
        result[topic] = {}
        for partition, wanted in parts.items():
            first, behind = earliest[topic][partition], latest[topic][partition]
            at = wanted if wanted >= 0 else first if wanted == EARLIEST_OFFSET else behind
            if not first <= at <= behind:
                if fails:
                    raise DataLost(
                        f"{option}: topic {topic!r} partition {partition} holds the offsets {first} to {behind - 1}, "
                        f"{at} is not among them; change it, or set failOnDataLoss=false"
                    )
                at = min(max(at, first), behind)
            result[topic][partition] = at
    return result
