"""A checker of histories: what producers were told, and what consumers then saw, of one topic.

The anomalies and their names are those of Jepsen's Kafka workload, as far as they concern a log without
transactions; "never-sent" is ours. A history is judged as a whole, when all is over:

    lost-write          an acknowledged value was not read, although something behind it in its partition was
    unseen              an acknowledged value was not read, and nothing behind it either
    duplicate           one value was read at two places
    inconsistent-offsets one place held two values, or a value is not where its acknowledgement said
    never-sent          a value was read that nobody had sent
    nonmonotonic-send   of two values that one producer sent in order, the later got the smaller offset
    nonmonotonic-poll   one consumer went back to an offset it had been given, or one before it
    poll-skip           one consumer jumped over something that was there
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

__all__ = ["ANOMALIES", "History", "Read", "Sent"]

ANOMALIES: Final = (
    "lost-write",
    "unseen",
    "duplicate",
    "inconsistent-offsets",
    "never-sent",
    "nonmonotonic-send",
    "nonmonotonic-poll",
    "poll-skip",
)

Place = tuple[int, int]
"""A partition and an offset."""


@dataclass(slots=True)
class Sent:
    """A value that a producer sent. Values are never sent twice.

    Args:
        value: what was sent.
        partition: where to.
        offset: what the acknowledgement said; None if there was none, whatever the reason.
    """

    value: int
    partition: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A value that a consumer was given."""

    partition: int
    offset: int
    value: int


@dataclass(slots=True)
class History:
    """All that happened.

    Args:
        sends: by producer, in the order in which it sent them.
        polls: by consumer, in the order in which it got them.
    """

    sends: dict[str, list[Sent]] = field(default_factory=lambda: defaultdict(list))
    polls: dict[str, list[Read]] = field(default_factory=lambda: defaultdict(list))

    @property
    def acknowledged(self) -> int:
        """How many sends were acknowledged."""
        return sum(sent.offset is not None for sent in self._all_sends())

    def anomalies(self) -> dict[str, int]:
        """How often each anomaly occurs; all of them, with 0 for those that do not."""
        found = Counter(dict.fromkeys(ANOMALIES, 0))
        self._count_missing(found)
        self._count_misplaced(found)
        for sends in self.sends.values():
            for offsets in _by_partition((s.partition, s.offset) for s in sends if s.offset is not None):
                found["nonmonotonic-send"] += sum(later <= earlier for earlier, later in pairwise(offsets))
        known = sorted(self._known_places())
        for reads in self.polls.values():
            for number, offsets in _numbered((read.partition, read.offset) for read in reads):
                there = [offset for partition, offset in known if partition == number]
                for earlier, later in pairwise(offsets):
                    found["nonmonotonic-poll"] += later <= earlier
                    found["poll-skip"] += _between(there, earlier, later)
        return dict(found)

    def _count_missing(self, found: Counter[str]) -> None:
        read_values = {read.value for read in self._all_reads()}
        ends: dict[int, int] = {}
        for read in self._all_reads():
            ends[read.partition] = max(ends.get(read.partition, -1), read.offset)
        for sent in self._all_sends():
            if sent.offset is not None and sent.value not in read_values:
                found["lost-write" if sent.offset < ends.get(sent.partition, -1) else "unseen"] += 1

    def _count_misplaced(self, found: Counter[str]) -> None:
        places_of: dict[int, set[Place]] = defaultdict(set)
        values_at: dict[Place, set[int]] = defaultdict(set)
        for read in self._all_reads():
            places_of[read.value].add((read.partition, read.offset))
            values_at[read.partition, read.offset].add(read.value)
        known = {sent.value for sent in self._all_sends()}
        found["duplicate"] += sum(len(places) > 1 for places in places_of.values())
        found["never-sent"] += len(places_of.keys() - known)
        for sent in self._all_sends():
            if sent.offset is not None and sent.value in places_of:
                values_at[sent.partition, sent.offset].add(sent.value)
        found["inconsistent-offsets"] += sum(len(values) > 1 for values in values_at.values())

    def _known_places(self) -> set[Place]:
        return {(read.partition, read.offset) for read in self._all_reads()}

    def _all_sends(self) -> Iterable[Sent]:
        return (sent for sends in self.sends.values() for sent in sends)

    def _all_reads(self) -> Iterable[Read]:
        return (read for reads in self.polls.values() for read in reads)


def _numbered(places: Iterable[Place]) -> Iterable[tuple[int, list[int]]]:
    by_partition: dict[int, list[int]] = defaultdict(list)
    for partition, offset in places:
        by_partition[partition].append(offset)
    return by_partition.items()


def _by_partition(places: Iterable[Place]) -> Iterable[list[int]]:
    return (offsets for _, offsets in _numbered(places))


def _between(there: list[int], earlier: int, later: int) -> bool:
    """Whether something lies between two offsets. `there` is sorted."""
    if later <= earlier + 1:
        return False
    place = bisect_right(there, earlier)
    return place < len(there) and there[place] < later
