"""Positions that are seen at once and stored soon: for consumers that move with every read.

What a group has committed is in `millstream.broker.offsets`, which shows a commit once it lasts. Here a position
counts from the moment it is set; while one store of it is under way, later ones gather, and the last of them follows.
"""

from collections.abc import Callable

from millstream.broker.offsets import Offsets, Place
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.storage.metadata import CommittedOffset

__all__ = ["Positions"]


class _Moving:
    """The position of one group in one partition while stores of it are under way."""

    def __init__(self, next_offset: int) -> None:
        self.next_offset = next_offset
        self.stored: Pending[None] | None = None
        self.following: Pending[None] | None = None


class Positions:
    """Positions of groups and consumers.

    Args:
        offsets: where they last.
        now_ms: the time.
    """

    def __init__(self, offsets: Offsets, now_ms: Callable[[], int]) -> None:
        self._offsets = offsets
        self._now_ms = now_ms
        self._moving: dict[tuple[str, Place], _Moving] = {}

    def get(self, group_id: str, place: Place) -> int | None:
        """The offset of the next record that a group wants; None if nothing is known of it."""
        moving = self._moving.get((group_id, place))
        if moving is not None:
            return moving.next_offset
        committed = self._offsets.of_group(group_id).get(place)
        return None if committed is None else committed.offset

    def under_way(self, group_id: str) -> list[Pending[None]]:
        """What of a group's positions does not last yet; it resolves once that, or something later, does."""
        moving = [one for (name, _), one in self._moving.items() if name == group_id]
        return [pending for one in moving if (pending := one.following or one.stored) is not None]

    def put(self, group_id: str, place: Place, next_offset: int) -> Pending[None]:
        """Set a position. Resolves once it, or a later one, lasts; fails with MetadataFailed."""
        key = group_id, place
        moving = self._moving.get(key)
        if moving is None:
            self._moving[key] = moving = _Moving(next_offset)
            return self._store(key, moving)
        moving.next_offset = next_offset
        if moving.following is None:
            moving.following = Pending()
        return moving.following

    def _store(self, key: tuple[str, Place], moving: _Moving) -> Pending[None]:
        group_id, place = key
        committed = CommittedOffset(moving.next_offset, -1, "", self._now_ms(), kept=True)
        stored = self._offsets.commit(group_id, {place: committed})
        moving.stored = stored
        stored.when_done(lambda _: self._stored(key, moving))
        return stored

    def _stored(self, key: tuple[str, Place], moving: _Moving) -> None:
        following, moving.following = moving.following, None
        if following is None:
            if self._moving.get(key) is moving:
                del self._moving[key]
            return
        again = self._store(key, moving)

        def hand_on(done: Pending[None]) -> None:
            try:
                done.result()
            except MillstreamError as error:
                following.fail(error)
            else:
                following.resolve(None)

        again.when_done(hand_on)

    def forget(self, gone: Callable[[Place], bool]) -> None:
        """Forget all positions in partitions that are gone; what follows a store under way is not stored."""
        for key in [key for key in self._moving if gone(key[1])]:
            moving = self._moving.pop(key)
            following, moving.following = moving.following, None
            if following is not None:
                following.resolve(None)

    def delete(self, group_id: str, places: list[Place]) -> Pending[None]:
        """Forget the positions of a group in some partitions."""
        for place in places:
            self._moving.pop((group_id, place), None)
        return self._offsets.delete(group_id, places)
