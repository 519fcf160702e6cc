"""Groups that belong to one topic each, have a number there, and are assigned their partitions by the server.

A group lasts until it is deleted; its members live in memory. How far it has come is kept under its name, as for any
other group: see `millstream.broker.positions`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from millstream.broker.documents import Documents
from millstream.broker.errors import GroupError, GroupNotFound
from millstream.broker.sharing import Sharing
from millstream.broker.topics import Topic, Topics
from millstream.model.pending import Pending
from millstream.model.runtime import Runtime

__all__ = ["GroupExists", "TopicGroup", "TopicGroups"]

_GROUP: Final = "topic-group"
_COUNTER: Final = "topic-group-counter"


class GroupExists(GroupError):
    """There is a group of this name, or `by_number` of this number, already."""

    def __init__(self, text: str, *, by_number: bool) -> None:
        super().__init__(text)
        self.by_number = by_number


@dataclass(slots=True)
class TopicGroup:
    """A group.

    Args:
        topic_id: its topic.
        number: its number there, from 0.
        name: its name, unique in the topic.
        sharing: its members and their partitions.
    """

    topic_id: UUID
    number: int
    name: str
    sharing: Sharing


class TopicGroups:
    """All groups of all topics.

    Args:
        runtime: time.
        documents: where they last.
        topics: whose groups they are; with a topic go its groups.
    """

    def __init__(self, runtime: Runtime, documents: Documents, topics: Topics) -> None:
        self._runtime = runtime
        self._documents = documents
        self._topics = topics
        self._groups: dict[UUID, dict[str, TopicGroup]] = {}
        self._counters: dict[UUID, int] = {
            UUID(key): document["next"] for key, document in documents.of_kind(_COUNTER).items()
        }
        for key, document in documents.of_kind(_GROUP).items():
            topic_id, _, name = key.partition("/")
            self._enter(UUID(topic_id), document["number"], name)
        self._follow_topics()
        topics.watch(self._follow_topics)

    def _enter(self, topic_id: UUID, number: int, name: str) -> TopicGroup:
        topic = self._topics.by_id(topic_id)
        count = 0 if topic is None else len(topic.partitions)
        group = TopicGroup(topic_id, number, name, Sharing(self._runtime, count))
        self._groups.setdefault(topic_id, {})[name] = group
        return group

    def _follow_topics(self) -> None:
        """Forget the groups of topics that are gone, and share out partitions that have come."""
        for topic_id in list(self._groups):
            topic = self._topics.by_id(topic_id)
            for group in list(self._groups[topic_id].values()):
                if topic is None:
                    self._drop(group)
                else:
                    group.sharing.resize(len(topic.partitions))
        for topic_id in [one for one in self._counters if self._topics.by_id(one) is None]:
            del self._counters[topic_id]
            self._documents.delete(_COUNTER, str(topic_id))

    def __iter__(self) -> Iterator[TopicGroup]:
        return (group for groups in list(self._groups.values()) for group in list(groups.values()))

    def of_topic(self, topic: Topic) -> list[TopicGroup]:
        """The groups of a topic, by number."""
        return sorted(self._groups.get(topic.id, {}).values(), key=lambda group: group.number)

    def find(self, topic: Topic, key: int | str) -> TopicGroup | None:
        """A group by number or name; None if there is none."""
        groups = self._groups.get(topic.id, {})
        if isinstance(key, str):
            return groups.get(key)
        return next((group for group in groups.values() if group.number == key), None)

    def get(self, topic: Topic, key: int | str) -> TopicGroup:
        """A group by number or name. Raises GroupNotFound."""
        group = self.find(topic, key)
        if group is None:
            raise GroupNotFound(f"the topic has no group {key}")
        return group

    def create(self, topic: Topic, name: str, number: int | None = None) -> tuple[TopicGroup, Pending[None]]:
        """Make a group; there at once, lasting once the answer is there.

        Args:
            number: the number it gets, None for the next one.

        Raises:
            GroupExists: the name or the number is taken.
        """
        groups = self._groups.get(topic.id, {})
        if name in groups:
            raise GroupExists(f"the topic has a group {name} already", by_number=False)
        taken = {group.number for group in groups.values()}
        if number is None:
            number = self._counters.get(topic.id, 0)
            while number in taken:
                number += 1
            self._counters[topic.id] = number + 1
            self._documents.put(_COUNTER, str(topic.id), {"next": number + 1})
        elif number in taken:
            raise GroupExists(f"the topic has a group {number} already", by_number=True)
        group = self._enter(topic.id, number, name)
        return group, self._documents.put(_GROUP, f"{topic.id}/{name}", {"number": number})

    def delete(self, group: TopicGroup) -> Pending[None]:
        """Delete a group; its members are members no more."""
        return self._drop(group)

    def _drop(self, group: TopicGroup) -> Pending[None]:
        group.sharing.close()
        groups = self._groups.get(group.topic_id, {})
        groups.pop(group.name, None)
        if not groups:
            self._groups.pop(group.topic_id, None)
        return self._documents.delete(_GROUP, f"{group.topic_id}/{group.name}")

    def close(self) -> None:
        """Let nothing run any more."""
        self._topics.unwatch(self._follow_topics)
        for group in self:
            group.sharing.close()
