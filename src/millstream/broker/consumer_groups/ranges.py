"""The assignor "range": of every topic each member gets a share that is as large as any other's, in a row.

Topics with as many partitions and the same members are shared out alike, so that records of one key meet in one
member. Members keep what they have as far as shares allow.

Source: KIP-848, and the assignor of that name in Apache Kafka 4.
"""

from collections.abc import Sequence

from millstream.broker.consumer_groups.assignment_spec import AssignmentSpec
from millstream.broker.offsets import Place

__all__ = ["assign_ranges"]


def assign_ranges(spec: AssignmentSpec) -> dict[str, frozenset[Place]]:
    """Share out the partitions of each topic by itself; gives those of each member."""
    held: dict[tuple[str, object], list[int]] = {}
    for member_id, places in spec.previous.items():
        for topic_id, index in sorted(places):
            held.setdefault((member_id, topic_id), []).append(index)
    assigned: dict[str, list[Place]] = {member_id: [] for member_id in spec.subscriptions}
    for topic_id, member_ids in spec.subscribers().items():
        if not member_ids:
            continue
        shares = _share_out(
            spec.partition_counts[topic_id], [held.get((member_id, topic_id), []) for member_id in member_ids]
        )
        for member_id, share in zip(member_ids, shares, strict=True):
            assigned[member_id] += [(topic_id, index) for index in share]
    return {member_id: frozenset(places) for member_id, places in assigned.items()}


def _share_out(count: int, held: Sequence[Sequence[int]]) -> list[list[int]]:
    """Share out the partitions of one topic.

    Args:
        count: how many there are.
        held: what each member had, in ascending order.
    """
    quota, extras = divmod(count, len(held))
    shares, has_extra = [], []
    for indexes in held:
        there = [index for index in indexes if index < count]
        keeps_extra = len(there) > quota and extras > 0
        extras -= keeps_extra
        shares.append(there[: quota + keeps_extra])
        has_extra.append(keeps_extra)
    taken = {index for share in shares for index in share}
    left = iter([index for index in range(count) if index not in taken])
    for share, extra in zip(shares, has_extra, strict=True):
        gets_extra = not extra and extras > 0
        extras -= gets_extra
        share += [next(left) for _ in range(quota + extra + gets_extra - len(share))]
    return shares
