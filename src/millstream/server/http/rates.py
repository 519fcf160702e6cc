"""How fast records come into a partition, measured between two looks at it."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from millstream.broker.partition import Partition

__all__ = ["Rate", "Rates"]

_WINDOW_MS: Final = 1000
"""A rate is an average over this time at least."""
_FORGET_MS: Final = 3600 * 1000
"""What nobody has looked at for so long is forgotten, be it that the topic is gone."""
_LOOKS_MIN: Final = 1000
"""Partitions that are remembered without further thought."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What comes in, per second."""

    records: float = 0.0
    bytes: float = 0.0


@dataclass(slots=True)
class _Look:
    at_ms: int
    end_offset: int
    appended_bytes: int
    rate: Rate


class Rates:
    """The rates of partitions: averages since they were asked for before, but over a second at least.

    Nothing is counted for them where records are appended.
    """

    def __init__(self) -> None:
        self._looks: dict[tuple[UUID, int], _Look] = {}
        self._looks_max = _LOOKS_MIN

    def of(self, topic_id: UUID, partition: Partition, now_ms: int) -> Rate:
        """The rates of a partition; none at the first look.

        Args:
            now_ms: the time, ms.
        """
        key = topic_id, partition.index
        end_offset, appended_bytes = partition.log.end_offset, partition.appended_bytes
        last = self._looks.get(key)
        if last is not None and now_ms - last.at_ms < _WINDOW_MS:
            return last.rate
        rate = Rate()
        if last is not None:
            seconds = (now_ms - last.at_ms) / 1000
            rate = Rate((end_offset - last.end_offset) / seconds, (appended_bytes - last.appended_bytes) / seconds)
        self._looks[key] = _Look(now_ms, end_offset, appended_bytes, rate)
        if len(self._looks) > self._looks_max:
            self._looks = {kept: look for kept, look in self._looks.items() if now_ms - look.at_ms < _FORGET_MS}
            self._looks_max = max(2 * len(self._looks), _LOOKS_MIN)
        return rate
