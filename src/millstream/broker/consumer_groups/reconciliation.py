"""How a member comes from the partitions that it has to those that it is to have.

Partitions are given up before others are given in their place, and nobody is given what another member still has:

    STABLE ──a new target──> UNREVOKED ──given up──> UNRELEASED ──others gave up──> STABLE
                                 (the old epoch)        (the target's epoch)

Steps that there is no need for are left out.

Source: KIP-848, "Member's states", and the group coordinator of Apache Kafka 4.
"""

from collections.abc import Callable
from typing import NamedTuple

from millstream.broker.consumer_groups.member import ConsumerMember, MemberState
from millstream.broker.offsets import Place

__all__ = ["Standing", "next_standing"]


class Standing(NamedTuple):
    """Where a member stands; the fields are as in `ConsumerMember`."""

    state: MemberState
    epoch: int
    assigned: frozenset[Place]
    revoking: frozenset[Place]


def next_standing(
    member: ConsumerMember, target_epoch: int, owned: frozenset[Place] | None, is_free: Callable[[Place], bool]
) -> Standing | None:
    """Where a member stands after the next step towards its target; None for where it did before.

    Args:
        member: the member.
        target_epoch: of the target.
        owned: the partitions that it says it has; None if it does not say.
        is_free: whether no other member has a partition.
    """
    if member.has_reached(target_epoch):
        return None
    if member.state is MemberState.UNREVOKED and _has_any(owned, member.revoking):
        return None
    kept = member.assigned & member.target
    given_up = member.assigned - kept
    if given_up and _has_any(owned, given_up):
        return Standing(MemberState.UNREVOKED, member.epoch, kept, given_up)
    wanted = member.target - kept
    free = frozenset(place for place in wanted if is_free(place))
    state = MemberState.STABLE if len(free) == len(wanted) else MemberState.UNRELEASED
    standing = Standing(state, target_epoch, kept | free, frozenset())
    is_there = standing == (member.state, member.epoch, member.assigned, member.revoking)
    return None if is_there else standing


def _has_any(owned: frozenset[Place] | None, places: frozenset[Place]) -> bool:
    """Whether a member has any of some partitions, as far as one knows."""
    return owned is None or not owned.isdisjoint(places)
