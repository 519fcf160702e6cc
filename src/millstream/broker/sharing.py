"""How the members of a group share the partitions of one topic, where the server assigns them.

Two rules, by which a member may come:

- *eager*: everything is assigned anew, partition i to member i modulo their number;
- *cooperative*: the others keep what they have, but for what is the newcomer's share. A partition that its owner has
  polled and not committed to the end of changes hands when it has, or after `REVOCATION_MS`; nobody polls it until
  then.

A member that leaves, and another number of partitions, assign everything anew in both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from millstream.broker.errors import UnknownMember
from millstream.model.runtime import Runtime, Timer

__all__ = ["REVOCATION_MS", "Sharing"]

REVOCATION_MS: Final = 30_000
"""ms after which a partition changes hands although its owner has not committed what it polled."""


@dataclass(slots=True)
class _Member:
    id: int
    partitions: list[int] = field(default_factory=list)
    next_index: int = 0
    current: int | None = None


@dataclass(slots=True)
class _Revocation:
    """A partition on its way from one member to another."""

    owner: int
    heir: int
    timer: Timer


class Sharing:
    """The members of a group and the partitions of each.

    Args:
        runtime: time.
        partitions: how many there are to share.
    """

    def __init__(self, runtime: Runtime, partitions: int) -> None:
        self._runtime = runtime
        self._count = partitions
        self._members: dict[int, _Member] = {}
        self._revoked: dict[int, _Revocation] = {}
        self._polled: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self.generation = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member_id: int) -> bool:
        return member_id in self._members

    def assignments(self) -> Mapping[int, list[int]]:
        """The partitions of each member, those included that are being taken from it."""
        return {member.id: sorted(member.partitions) for member in self._members.values()}

    def assigned(self, member_id: int) -> list[int]:
        """What a member may poll. Raises UnknownMember."""
        member = self._member(member_id)
        return sorted(one for one in member.partitions if one not in self._revoked)

    def _member(self, member_id: int) -> _Member:
        member = self._members.get(member_id)
        if member is None:
            raise UnknownMember(f"the group has no member {member_id}")
        return member

    def owns(self, member_id: int, partition: int) -> bool:
        """Whether a partition is a member's to poll. Raises UnknownMember."""
        return partition in self._member(member_id).partitions and partition not in self._revoked

    def next_partition(self, member_id: int) -> int | None:
        """The partition whose turn it is for a member to poll; None if it has none. Raises UnknownMember."""
        member = self._member(member_id)
        mine = self.assigned(member_id)
        if not mine:
            return None
        member.current = mine[member.next_index % len(mine)]
        member.next_index = (member.next_index + 1) % len(mine)
        return member.current

    def current_partition(self, member_id: int) -> int | None:
        """The partition that a member has polled last, or would poll first. Raises UnknownMember."""
        member = self._member(member_id)
        mine = self.assigned(member_id)
        if member.current in mine:
            return member.current
        return mine[0] if mine else None

    # Members

    def join(self, member_id: int, *, cooperative: bool) -> None:
        """Take a member in; one that is in already stays as it is."""
        if member_id in self._members:
            return
        self._members[member_id] = newcomer = _Member(member_id)
        if cooperative and len(self._members) > 1:
            self._make_room(newcomer)
        else:
            self._assign_anew()

    def leave(self, member_id: int) -> bool:
        """Let a member go; gives whether it was one."""
        if self._members.pop(member_id, None) is None:
            return False
        self._assign_anew()
        return True

    def resize(self, partitions: int) -> None:
        """The topic has another number of partitions."""
        if partitions != self._count:
            self._count = partitions
            self._assign_anew()

    def _assign_anew(self) -> None:
        for revocation in self._revoked.values():
            revocation.timer.cancel()
        self._revoked.clear()
        self._polled.clear()
        members = list(self._members.values())
        for member in members:
            member.partitions.clear()
            member.next_index = 0
        if members:
            for partition in range(self._count):
                members[partition % len(members)].partitions.append(partition)
        self.generation += 1

    def _make_room(self, newcomer: _Member) -> None:
        """Take the newcomer's share from those who have most."""
        self.generation += 1
        kept = {
            one.id: [partition for partition in one.partitions if partition not in self._revoked]
            for one in self._members.values()
        }
        for _ in range(self._count // len(self._members)):
            giver = max(self._members.values(), key=lambda one: len(kept[one.id]))
            if giver is newcomer or not kept[giver.id]:
                break
            self._revoke(kept[giver.id].pop(), giver, newcomer)

    def _revoke(self, partition: int, owner: _Member, heir: _Member) -> None:
        if self._is_drained(partition):
            self._hand_over(partition, owner.id, heir.id)
            return
        timer = self._runtime.call_later(REVOCATION_MS / 1000, lambda: self._finish(partition))
        self._revoked[partition] = _Revocation(owner.id, heir.id, timer)

    def _is_drained(self, partition: int) -> bool:
        return self._committed.get(partition, -1) >= self._polled.get(partition, -1)

    def _hand_over(self, partition: int, owner_id: int, heir_id: int) -> None:
        owner, heir = self._members[owner_id], self._members[heir_id]
        owner.partitions.remove(partition)
        owner.next_index = 0
        heir.partitions.append(partition)
        self._polled.pop(partition, None)
        self.generation += 1

    def _finish(self, partition: int) -> None:
        revocation = self._revoked.pop(partition, None)
        if revocation is not None:
            revocation.timer.cancel()
            self._hand_over(partition, revocation.owner, revocation.heir)

    # What members do

    def polled(self, partition: int, last_offset: int) -> None:
        """A member was given records up to an offset."""
        self._polled[partition] = max(last_offset, self._polled.get(partition, -1))

    def committed(self, partition: int, last_offset: int) -> None:
        """The group is done with everything up to an offset."""
        self._committed[partition] = last_offset
        if partition in self._revoked and self._is_drained(partition):
            self._finish(partition)

    def close(self) -> None:
        """Let no timer run any more."""
        for revocation in self._revoked.values():
            revocation.timer.cancel()
        self._revoked.clear()
