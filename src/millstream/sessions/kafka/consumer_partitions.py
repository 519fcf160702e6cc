"""Partitions as the APIs of consumer groups list them: topic by topic."""

from collections.abc import Iterable
from uuid import UUID

from millstream.broker.offsets import Place

__all__ = ["by_topic"]


def by_topic(places: Iterable[Place]) -> dict[UUID, list[int]]:
    """The numbers of partitions by their topics' ids, in ascending order."""
    found: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(places):
        found.setdefault(topic_id, []).append(index)
    return found
