"""What lasts of topics that keep nothing: how many partitions they are declared to have, and the id of their schemas.

The topics themselves are there as long as anybody is connected to them (`broker.volatile`). A partitioned one is
declared once, and each of its partitions is a topic of its own.
"""

from typing import Final, NamedTuple
from uuid import UUID

from millstream.broker.documents import Document, Documents
from millstream.broker.errors import InvalidPartitionCount
from millstream.broker.topics import PARTITIONS_MAX
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime
from millstream.model.topic_name import TopicName

__all__ = ["VolatileDeclaration", "VolatileDeclarations"]

_KIND: Final = "volatile-topic"


class VolatileDeclaration(NamedTuple):
    """What lasts of a topic that keeps nothing.

    Args:
        name: its full name, without a partition.
        id: by which its schemas are known.
        partitions: how many it has; 0 if it is not partitioned.
    """

    name: TopicName
    id: UUID
    partitions: int


class VolatileDeclarations:
    """All declarations, in the metadata store.

    Args:
        runtime: chance.
        documents: where they last.
    """

    def __init__(self, runtime: Runtime, documents: Documents) -> None:
        self._runtime = runtime
        self._documents = documents

    @property
    def ids(self) -> set[UUID]:
        """The ids of all."""
        return {UUID(document["id"]) for document in self._documents.of_kind(_KIND).values()}

    def find(self, name: TopicName) -> VolatileDeclaration | None:
        """The declaration of a topic, None if there is none.

        Args:
            name: without a partition.
        """
        document = self._documents.find(_KIND, "/".join(name))
        return None if document is None else _declaration(name, document)

    def partitions(self, name: TopicName) -> int:
        """How many partitions a topic is declared to have; 0 if it is not partitioned."""
        found = self.find(name)
        return 0 if found is None else found.partitions

    def in_namespace(self, tenant: str, namespace: str) -> list[VolatileDeclaration]:
        """The declarations of a namespace's topics."""
        prefix = f"{tenant}/{namespace}/"
        return [
            _declaration(TopicName(tenant, namespace, key.removeprefix(prefix)), document)
            for key, document in self._documents.of_kind(_KIND).items()
            if key.startswith(prefix)
        ]

    def declare(self, name: TopicName, partitions: int = 0) -> Pending[VolatileDeclaration]:
        """Declare a topic, or give one that is declared more partitions.

        Args:
            name: without a partition.
            partitions: how many it is to have at least; 0 to leave that as it is.

        Returns:
            Resolves with the declaration once it lasts; fails with MetadataFailed.

        Raises:
            InvalidPartitionCount: they are too many.
        """
        if not 0 <= partitions <= PARTITIONS_MAX:
            raise InvalidPartitionCount(f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}")
        found = self.find(name)
        if found is not None and partitions <= found.partitions:
            return settled(found)
        topic_id = UUID(bytes=self._runtime.random_bytes(16), version=4) if found is None else found.id
        declared = VolatileDeclaration(name, topic_id, partitions)
        put = self._documents.put(_KIND, "/".join(name), {"id": str(topic_id), "partitions": partitions})
        return put.then(lambda _: declared)

    def drop(self, name: TopicName) -> Pending[None]:
        """Declare a topic no more; nothing happens if it is not declared. Fails with MetadataFailed."""
        if self.find(name) is None:
            return settled(None)
        return self._documents.delete(_KIND, "/".join(name))


def _declaration(name: TopicName, document: Document) -> VolatileDeclaration:
    return VolatileDeclaration(name, UUID(document["id"]), document["partitions"])
