"""The assignor "uniform": members get as many partitions as any other, and keep as many of theirs as that allows.

Where members subscribe to different topics, no partition could be moved to a member that has two fewer.

Source: KIP-848, and the assignor of that name in Apache Kafka 4, which it equals in balance, not in each choice.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace

from millstream.broker.consumer_groups.assignment_spec import AssignmentSpec
from millstream.broker.offsets import Place

__all__ = ["assign_uniformly"]


@dataclass(slots=True, eq=False)
class _Kind:
    """The partitions that the same members may have.

    Args:
        member_ids: those members.
        places: the partitions.
        theirs: those of the partitions that each member has, if any.
    """

    member_ids: tuple[str, ...]
    places: list[Place] = field(default_factory=list)
    theirs: dict[str, list[Place]] = field(default_factory=dict)


def assign_uniformly(spec: AssignmentSpec) -> dict[str, frozenset[Place]]:
    """Share out all partitions; gives those of each member."""
    owners: dict[Place, str] = {}
    loads = dict.fromkeys(spec.subscriptions, 0)
    for member_id, topic_ids in spec.subscriptions.items():
        for place in spec.previous.get(member_id, ()):
            topic_id, index = place
            if topic_id in topic_ids and index < spec.partition_counts[topic_id]:
                owners[place] = member_id
                loads[member_id] += 1
    kinds = _kinds(spec)
    for kind in kinds:
        _hand_out((place for place in kind.places if place not in owners), kind.member_ids, owners, loads)
        for place in kind.places:
            kind.theirs.setdefault(owners[place], []).append(place)
    _balance_all(kinds, loads)
    assigned: dict[str, list[Place]] = {member_id: [] for member_id in spec.subscriptions}
    for kind in kinds:
        for member_id, places in kind.theirs.items():
            assigned[member_id] += places
    return {member_id: frozenset(places) for member_id, places in assigned.items()}


def _kinds(spec: AssignmentSpec) -> list[_Kind]:
    """The partitions by who may have them, those with the least choice first."""
    found: dict[tuple[str, ...], _Kind] = {}
    for topic_id, subscribers in spec.subscribers().items():
        if subscribers:
            member_ids = tuple(subscribers)
            kind = found.setdefault(member_ids, _Kind(member_ids))
            kind.places += [(topic_id, index) for index in range(spec.partition_counts[topic_id])]
    return sorted(found.values(), key=lambda kind: len(kind.member_ids))


def _hand_out(
    places: Iterable[Place], member_ids: Iterable[str], owners: dict[Place, str], loads: dict[str, int]
) -> None:
    """Give each of some partitions to that member which has the fewest."""
    lightest = [(loads[member_id], order, member_id) for order, member_id in enumerate(member_ids)]
    heapify(lightest)
    for place in places:
        load, order, member_id = lightest[0]
        owners[place] = member_id
        loads[member_id] = load + 1
        heapreplace(lightest, (load + 1, order, member_id))


def _balance_all(kinds: list[_Kind], loads: dict[str, int]) -> None:
    """Move partitions until no kind has any to move.

    What one kind moves may leave another with something to move, but only one that shares a member with it: so what
    is handed on along a chain of subscriptions costs a step for each link, not a look at everything. Each move brings
    loads nearer to each other, so that this comes to an end.
    """
    of_member: dict[str, list[_Kind]] = defaultdict(list)
    for kind in kinds:
        for member_id in kind.member_ids:
            of_member[member_id].append(kind)
    waiting = deque(kinds)
    queued = set(kinds)
    while waiting:
        kind = waiting.popleft()
        queued.discard(kind)
        for member_id in _balance(kind, loads):
            for other in of_member[member_id]:
                if other is not kind and other not in queued:
                    queued.add(other)
                    waiting.append(other)


def _balance(kind: _Kind, loads: dict[str, int]) -> set[str]:
    """Move partitions from those who have most to those who have least; gives who has more or fewer now."""
    theirs = kind.theirs
    changed: set[str] = set()
    if max(map(loads.__getitem__, theirs), default=0) - min(map(loads.__getitem__, kind.member_ids)) < 2:
        return changed
    lightest = [(loads[member_id], order, member_id) for order, member_id in enumerate(kind.member_ids)]
    heaviest = [(-load, order, member_id) for load, order, member_id in lightest if member_id in theirs]
    heapify(lightest)
    heapify(heaviest)
    while heaviest:
        negative, order, giver = heaviest[0]
        if -negative != loads[giver]:
            heapreplace(heaviest, (-loads[giver], order, giver))
            continue
        load, taker_order, taker = lightest[0]
        if load != loads[taker]:
            heapreplace(lightest, (loads[taker], taker_order, taker))
            continue
        if loads[giver] - load < 2:
            break
        theirs.setdefault(taker, []).append(theirs[giver].pop())
        loads[giver] -= 1
        loads[taker] += 1
        changed |= {giver, taker}
        heappop(heaviest)
        if theirs[giver]:
            heappush(heaviest, (-loads[giver], order, giver))
        else:
            del theirs[giver]
    return changed
