"""What an assignor is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from millstream.broker.offsets import Place

__all__ = ["AssignmentSpec"]


@dataclass(frozen=True, slots=True)
class AssignmentSpec:
    """The members of a group, the topics and who had what.

    Args:
        subscriptions: the topics of each member, by its id; all of them exist.
        partition_counts: partitions of each topic.
        previous: the partitions that the last target gave to each member. No partition stands twice; some may be of
            topics that are gone, or that the member does not subscribe to any more.
    """

    subscriptions: Mapping[str, frozenset[UUID]]
    partition_counts: Mapping[UUID, int]
    previous: Mapping[str, frozenset[Place]]

    def subscribers(self) -> dict[UUID, list[str]]:
        """Who subscribes to each topic, in the order of the members."""
        found: dict[UUID, list[str]] = {topic_id: [] for topic_id in self.partition_counts}
        for member_id, topic_ids in self.subscriptions.items():
            for topic_id in topic_ids:
                found[topic_id].append(member_id)
        return found
