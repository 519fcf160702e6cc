"""Committed offsets: how far each group has come in each partition."""

from collections.abc import Iterable
from uuid import UUID

from millstream.model.pending import Pending
from millstream.storage.metadata import CommittedOffset, DeleteOffsets, MetadataStore, PutOffset

__all__ = ["Offsets", "Place"]

Place = tuple[UUID, int]
"""Topic id and partition."""


class Offsets:
    """The offsets of all groups, in memory and in the metadata store.

    Args:
        store: where they last.
        loaded: what the store held at the start.
    """

    def __init__(self, store: MetadataStore, loaded: dict[tuple[str, UUID, int], CommittedOffset]) -> None:
        self._store = store
        self._groups: dict[str, dict[Place, CommittedOffset]] = {}
        for (group_id, topic_id, partition), committed in loaded.items():
            self._groups.setdefault(group_id, {})[topic_id, partition] = committed

    def group_ids(self) -> Iterable[str]:
        """Groups that have committed anything."""
        return self._groups.keys()

    def of_group(self, group_id: str) -> dict[Place, CommittedOffset]:
        """What a group has committed."""
        return self._groups.get(group_id, {})

    def commit(self, group_id: str, offsets: dict[Place, CommittedOffset]) -> Pending[None]:
        """Commit offsets.

        Returns:
            Resolves once they last and are seen by `of_group`; fails with MetadataFailed.
        """

        def apply(_: None) -> None:
            self._groups.setdefault(group_id, {}).update(offsets)

        changes = [PutOffset(group_id, *place, committed) for place, committed in offsets.items()]
        return self._store.submit(changes).then(apply)

    def delete_group(self, group_id: str) -> Pending[None]:
        """Delete all offsets of a group."""

        def apply(_: None) -> None:
            self._groups.pop(group_id, None)

        return self._store.submit([DeleteOffsets(group_id)]).then(apply)

    def delete(self, group_id: str, places: Iterable[Place]) -> Pending[None]:
        """Delete the offsets of a group in some partitions."""
        places = list(places)

        def apply(_: None) -> None:
            offsets = self._groups.get(group_id, {})
            for place in places:
                offsets.pop(place, None)
            if not offsets:
                self._groups.pop(group_id, None)

        return self._store.submit([DeleteOffsets(group_id, *place) for place in places]).then(apply)

    def forget_topic(self, topic_id: UUID) -> None:
        """Drop what was committed in a topic that is gone; the store has dropped it with the topic."""
        for group_id in list(self._groups):
            offsets = self._groups[group_id]
            for place in [place for place in offsets if place[0] == topic_id]:
                del offsets[place]
            if not offsets:
                del self._groups[group_id]

    def expired(self, group_id: str, before_ms: int) -> list[Place]:
        """Partitions whose offset a group committed before a time."""
        return [place for place, committed in self.of_group(group_id).items() if committed.committed_ms < before_ms]
