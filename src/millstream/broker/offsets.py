"""Committed offsets: how far each group has come in each partition, and what of it is a subscription's cursor.

A group and a subscription of one name are one cursor. What a group commits goes through the cursor if one is in use,
and leaves a subscription's mark on what is stored if none is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol
from uuid import UUID

from millstream.model.pending import Pending
from millstream.storage.metadata import (
    Change,
    CommittedOffset,
    DeleteOffsets,
    DeletePartitionOffsets,
    MetadataStore,
    PutOffset,
)

__all__ = ["LiveCursor", "Offsets", "Place"]

Place = tuple[UUID, int]
"""Topic id and partition."""
_NOTHING: Final[Mapping[str, CommittedOffset]] = MappingProxyType({})


class LiveCursor(Protocol):
    """The cursor of a subscription that is in use."""

    def commit(self, committed: CommittedOffset) -> CommittedOffset:
        """A group of its name commits an offset; gives what is to be stored instead, which is the cursor's state."""

    def drop(self) -> None:
        """What is stored of it is deleted: its subscription has ended, or its topic is gone."""


class Offsets:
    """The offsets of all groups, in memory and in the metadata store.

    Args:
        store: where they last.
        loaded: what the store held at the start.
    """

    def __init__(self, store: MetadataStore, loaded: dict[tuple[str, UUID, int], CommittedOffset]) -> None:
        self._store = store
        self._groups: dict[str, dict[Place, CommittedOffset]] = {}
        self._subscriptions: dict[Place, dict[str, CommittedOffset]] = {}
        self._cursors: dict[tuple[str, Place], LiveCursor] = {}
        for (group_id, topic_id, partition), committed in loaded.items():
            self._set(group_id, (topic_id, partition), committed)

    def _set(self, group_id: str, place: Place, committed: CommittedOffset) -> None:
        self._groups.setdefault(group_id, {})[place] = committed
        if committed.subscription:
            self._subscriptions.setdefault(place, {})[group_id] = committed

    def _unset(self, group_id: str, place: Place) -> None:
        offsets = self._groups.get(group_id, {})
        offsets.pop(place, None)
        if not offsets:
            self._groups.pop(group_id, None)
        names = self._subscriptions.get(place, {})
        names.pop(group_id, None)
        if not names:
            self._subscriptions.pop(place, None)

    def group_ids(self) -> Iterable[str]:
        """Groups that have committed anything."""
        return self._groups.keys()

    def of_group(self, group_id: str) -> dict[Place, CommittedOffset]:
        """What a group has committed."""
        return self._groups.get(group_id, {})

    def subscriptions_at(self, place: Place) -> Mapping[str, CommittedOffset]:
        """The durable subscriptions of a partition by name, as the store has them."""
        return self._subscriptions.get(place, _NOTHING)

    def commit(self, group_id: str, offsets: dict[Place, CommittedOffset]) -> Pending[None]:
        """Commit offsets. An offset that goes back takes back what was acknowledged one by one.

        Returns:
            Resolves once they last and are seen by `of_group`; fails with MetadataFailed.
        """
        changes, apply = self.prepare(group_id, offsets)
        return self._store.submit(changes).then(lambda _: apply())

    def prepare(
        self, group_id: str, offsets: Mapping[Place, CommittedOffset]
    ) -> tuple[Sequence[Change], Callable[[], None]]:
        """A commit that is stored together with something else; as `commit`.

        Returns:
            The changes to store at once, and what makes them seen once they last.
        """
        return self._prepared(group_id, {place: self._joined(group_id, place, one) for place, one in offsets.items()})

    def _joined(self, group_id: str, place: Place, committed: CommittedOffset) -> CommittedOffset:
        """What to store for a commit, given that the name may be a subscription's as well."""
        cursor = self._cursors.get((group_id, place))
        if cursor is not None:
            return cursor.commit(committed)
        before = self._groups.get(group_id, {}).get(place)
        if before is None:
            return committed
        if before.kept and not committed.kept:
            # Who has once been promised that its offsets stay has that promise whoever commits under its name.
            committed = replace(committed, kept=True)
        if not before.subscription:
            return committed
        # What was acknowledged behind the old offset is encoded for that offset; only there it can be kept as it is.
        kept = before.acknowledged if before.offset == committed.offset else b""
        return replace(committed, acknowledged=kept, subscription=True)

    def put_cursor(self, name: str, place: Place, committed: CommittedOffset) -> Pending[None]:
        """Store the state of a cursor; as `commit`, but just as it is."""
        return self._put(name, {place: committed})

    def _put(self, group_id: str, offsets: dict[Place, CommittedOffset]) -> Pending[None]:
        changes, apply = self._prepared(group_id, offsets)
        return self._store.submit(changes).then(lambda _: apply())

    def _prepared(
        self, group_id: str, offsets: dict[Place, CommittedOffset]
    ) -> tuple[Sequence[Change], Callable[[], None]]:
        def apply() -> None:
            for place, committed in offsets.items():
                self._set(group_id, place, committed)

        return [PutOffset(group_id, *place, committed) for place, committed in offsets.items()], apply

    def attach(self, name: str, place: Place, cursor: LiveCursor) -> None:
        """Let a cursor take part in what is committed under its name."""
        self._cursors[name, place] = cursor

    def detach(self, name: str, place: Place) -> None:
        """Let a cursor take part no more."""
        self._cursors.pop((name, place), None)

    def _drop_cursor(self, name: str, place: Place) -> None:
        cursor = self._cursors.pop((name, place), None)
        if cursor is not None:
            cursor.drop()

    def delete_group(self, group_id: str) -> Pending[None]:
        """Delete all offsets of a group, and end the subscriptions of its name."""

        def apply(_: None) -> None:
            for place in list(self._groups.get(group_id, ())):
                self._unset(group_id, place)

        for name, place in [key for key in self._cursors if key[0] == group_id]:
            self._drop_cursor(name, place)
        return self._store.submit([DeleteOffsets(group_id)]).then(apply)

    def delete(self, group_id: str, places: Iterable[Place]) -> Pending[None]:
        """Delete the offsets of a group in some partitions, and end the subscriptions of its name there."""
        places = list(places)

        def apply(_: None) -> None:
            for place in places:
                self._unset(group_id, place)

        for place in places:
            self._drop_cursor(group_id, place)
        return self._store.submit([DeleteOffsets(group_id, *place) for place in places]).then(apply)

    def forget_topic(self, topic_id: UUID) -> None:
        """Drop what was committed in a topic that is gone; the store has dropped it with the topic."""
        self._forget(topic_id, 0)

    def forget_partitions(self, topic_id: UUID, first: int) -> Pending[None]:
        """Drop what was committed in the partitions of a topic from one on. Resolves once that lasts."""
        self._forget(topic_id, first)
        # What was on its way to the store until now is seen there before this, and must go as well.
        gone = self._store.submit([DeletePartitionOffsets(topic_id, first)])
        return gone.then(lambda _: self._forget(topic_id, first))

    def _forget(self, topic_id: UUID, first: int) -> None:
        def is_gone(place: Place) -> bool:
            return place[0] == topic_id and place[1] >= first

        for name, place in [key for key in self._cursors if is_gone(key[1])]:
            self._drop_cursor(name, place)
        for group_id in list(self._groups):
            for place in [place for place in self._groups[group_id] if is_gone(place)]:
                self._unset(group_id, place)

    def expired(self, group_id: str, before_ms: int) -> list[Place]:
        """Partitions whose offset a group committed before a time, but for subscriptions and what is kept."""
        return [
            place
            for place, committed in self.of_group(group_id).items()
            if committed.committed_ms < before_ms and not (committed.subscription or committed.kept)
        ]
