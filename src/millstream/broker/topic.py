"""One topic: its name, its settings and its partitions, and what is kept of them."""

import json
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from millstream.broker.partition import Partition
from millstream.model.pending import Pending
from millstream.model.topic_name import TopicName
from millstream.storage.metadata import DeleteDocument, PutDocument, StoredTopic

__all__ = ["TOPIC_DOCUMENT", "Topic"]

TOPIC_DOCUMENT: Final = "topic"


@dataclass(slots=True)
class Topic:
    """A topic.

    Args:
        id: its identity, which its name is not.
        name: its full name.
        created_ms: when it was made.
        configs: the settings that were set on it, by name.
        partitions: by number.
        growing_to: how many partitions it is being given at the moment, 0 if none.
        resizing: whether partitions are being added or removed.
        leftover: the end of the numbers of removed partitions of which something may still be stored, 0 if none.
        removal: what removes that, while it does; it resolves whether it could or not.
        partitioned: whether it was made as a Pulsar topic of partitions, each of which has a name there, even if
            it is the only one.
    """

    id: UUID
    name: TopicName
    created_ms: int
    configs: dict[str, str]
    partitions: list[Partition] = field(default_factory=list)
    growing_to: int = 0
    resizing: bool = False
    leftover: int = 0
    removal: Pending[None] | None = None
    partitioned: bool = False

    def stored(self, *, partitions: int | None = None) -> StoredTopic:
        """What the metadata store keeps of it, with another number of partitions if that is given."""
        return StoredTopic(
            self.id,
            *self.name,
            max(len(self.partitions), self.growing_to) if partitions is None else partitions,
            self.created_ms,
            self.configs,
        )

    @property
    def terminated(self) -> list[int]:
        """The numbers of the partitions that nothing will ever be appended to again."""
        return [partition.index for partition in self.partitions if partition.terminated]

    def document(self) -> PutDocument | DeleteDocument:
        """What is kept of it besides: nothing, for most topics."""
        if not (self.partitioned or self.terminated or self.leftover):
            return DeleteDocument(TOPIC_DOCUMENT, str(self.id))
        value = {"partitioned": self.partitioned, "terminated": self.terminated, "leftover": self.leftover}
        return PutDocument(TOPIC_DOCUMENT, str(self.id), json.dumps(value))
