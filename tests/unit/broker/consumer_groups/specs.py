"""Groups as assignors see them."""

from collections.abc import Mapping
from uuid import UUID

from hypothesis import strategies as st

from millstream.broker.consumer_groups.assignment_spec import AssignmentSpec
from millstream.broker.offsets import Place

__all__ = ["TOPICS", "assert_valid", "places", "spec", "specs"]

TOPICS = {name: UUID(int=number) for number, name in enumerate("abcdef", 1)}


def places(topic: str, *indexes: int) -> frozenset[Place]:
    """Partitions of a topic."""
    return frozenset((TOPICS[topic], index) for index in indexes)


def spec(
    counts: Mapping[str, int],
    subscriptions: Mapping[str, str],
    previous: Mapping[str, frozenset[Place]] | None = None,
) -> AssignmentSpec:
    """A group.

    Args:
        counts: partitions of each topic, which has a name of one letter.
        subscriptions: the topics of each member, letter by letter.
        previous: what members had.
    """
    return AssignmentSpec(
        {member: frozenset(TOPICS[letter] for letter in topics) for member, topics in subscriptions.items()},
        {TOPICS[letter]: count for letter, count in counts.items()},
        previous or {},
    )


def assert_valid(given: AssignmentSpec, assigned: Mapping[str, frozenset[Place]]) -> None:
    """Check that every partition that somebody subscribes to has one member, which subscribes to it."""
    assert assigned.keys() == given.subscriptions.keys()
    everything = [place for found in assigned.values() for place in found]
    assert len(everything) == len(set(everything)), "no partition has two members"
    for member, found in assigned.items():
        assert {topic_id for topic_id, _ in found} <= given.subscriptions[member]
    wanted = frozenset().union(*given.subscriptions.values())
    assert set(everything) == {
        (topic_id, index) for topic_id in wanted for index in range(given.partition_counts[topic_id])
    }


@st.composite
def specs(draw: st.DrawFn) -> AssignmentSpec:
    """Groups of up to a few members with any subscriptions, and something that they had before."""
    counts = draw(st.dictionaries(st.sampled_from(sorted(TOPICS)), st.integers(1, 7), min_size=1))
    members = draw(st.lists(st.sampled_from([f"m{n}" for n in range(6)]), min_size=1, unique=True))
    letters = st.lists(st.sampled_from(sorted(counts)), unique=True)
    subscriptions = {member: "".join(draw(letters)) for member in members}
    owners = st.sampled_from([*members, "gone", None])
    previous: dict[str, set[Place]] = {}
    for letter in TOPICS:
        for index in range(counts.get(letter, 0) + 2):
            owner = draw(owners)
            if owner is not None:
                previous.setdefault(owner, set()).add((TOPICS[letter], index))
    return spec(counts, subscriptions, {member: frozenset(found) for member, found in previous.items()})
