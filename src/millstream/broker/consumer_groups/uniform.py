"""The assignor "uniform": members get as many partitions as any other, and keep as many of theirs as that allows.

Where members subscribe to different topics, no partition could be moved to a member that has two fewer.

Source: KIP-848, and the assignor of that name in Apache Kafka 4, which it equals in balance, not in each choice.
"""

from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace

from millstream.broker.consumer_groups.assignment_spec import AssignmentSpec
from millstream.broker.offsets import Place

__all__ = ["assign_uniformly"]


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
    for member_ids, places in kinds:
        _hand_out((place for place in places if place not in owners), member_ids, owners, loads)
    # What one kind moves may leave another with something to move. Each move brings loads nearer to each other, so
    # that this comes to an end.
    moved = True
    while moved:
        moved = False
        for member_ids, places in kinds:
            moved |= _balance(places, member_ids, owners, loads)
    assigned: dict[str, list[Place]] = {member_id: [] for member_id in spec.subscriptions}
    for place, member_id in owners.items():
        assigned[member_id].append(place)
    return {member_id: frozenset(places) for member_id, places in assigned.items()}


def _kinds(spec: AssignmentSpec) -> list[tuple[tuple[str, ...], list[Place]]]:
    """The partitions by who may have them, those with the least choice first."""
    found: dict[tuple[str, ...], list[Place]] = defaultdict(list)
    for topic_id, member_ids in spec.subscribers().items():
        if member_ids:
            found[tuple(member_ids)] += [(topic_id, index) for index in range(spec.partition_counts[topic_id])]
    return sorted(found.items(), key=lambda kind: len(kind[0]))


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


def _balance(
    places: Iterable[Place], member_ids: Iterable[str], owners: dict[Place, str], loads: dict[str, int]
) -> bool:
    """Move partitions of one kind from those who have most to those who have least; tells whether any moved."""
    theirs: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        theirs[owners[place]].append(place)
    lightest = [(loads[member_id], order, member_id) for order, member_id in enumerate(member_ids)]
    heaviest = [(-loads[member_id], order, member_id) for _, order, member_id in lightest if member_id in theirs]
    heapify(lightest)
    heapify(heaviest)
    moved = False
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
        place = theirs[giver].pop()
        owners[place] = taker
        loads[giver] -= 1
        loads[taker] += 1
        heappop(heaviest)
        if theirs[giver]:
            heappush(heaviest, (-loads[giver], order, giver))
        moved = True
    return moved
