"""Telling records that come again by their ids: those of the last while, in one partition."""

from collections.abc import Sequence

__all__ = ["RecentIds"]


class RecentIds:
    """The ids that were seen lately.

    Args:
        entries_max: how many are remembered; the oldest go first.
        keep_ms: for how long.
    """

    def __init__(self, entries_max: int, keep_ms: int) -> None:
        self._entries_max = entries_max
        self._keep_ms = keep_ms
        self._seen_ms: dict[bytes, int] = {}

    def fresh(self, ids: Sequence[bytes], now_ms: int) -> list[bool]:
        """Say for each id whether it is new; one that stands in there twice is new once. Nothing is remembered."""
        self._expire(now_ms)
        seen: set[bytes] = set()
        answers = []
        for one in ids:
            answers.append(one not in self._seen_ms and one not in seen)
            seen.add(one)
        return answers

    def remember(self, ids: Sequence[bytes], now_ms: int) -> None:
        """Remember ids of records that were written."""
        for one in ids:
            self._seen_ms[one] = now_ms
        surplus = len(self._seen_ms) - self._entries_max
        for one in list(self._seen_ms)[: max(surplus, 0)]:
            del self._seen_ms[one]

    def _expire(self, now_ms: int) -> None:
        expired = []
        for one, seen_ms in self._seen_ms.items():
            if now_ms - seen_ms < self._keep_ms:
                break
            expired.append(one)
        for one in expired:
            del self._seen_ms[one]
