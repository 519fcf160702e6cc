"""The assignor "range": rows of partitions, topic by topic, and what stays where it was."""

from hypothesis import given

from millstream.broker.consumer_groups.assignment_spec import AssignmentSpec
from millstream.broker.consumer_groups.ranges import assign_ranges
from tests.unit.broker.consumer_groups.specs import assert_valid, places, spec, specs


def test_topics_of_one_size_are_shared_out_alike() -> None:
    after = assign_ranges(spec({"a": 3, "b": 3}, {"m": "ab", "n": "ab"}))
    assert after == {"m": places("a", 0, 1) | places("b", 0, 1), "n": places("a", 2) | places("b", 2)}


def test_more_members_than_partitions() -> None:
    after = assign_ranges(spec({"a": 2}, {"m": "a", "n": "a", "o": "a"}))
    assert after == {"m": places("a", 0), "n": places("a", 1), "o": frozenset()}


def test_a_new_member_takes_what_is_over() -> None:
    before = {"m": places("a", 0, 1, 2), "n": places("a", 3, 4, 5)}
    after = assign_ranges(spec({"a": 6}, {"m": "a", "n": "a", "o": "a"}, before))
    assert after == {"m": places("a", 0, 1), "n": places("a", 3, 4), "o": places("a", 2, 5)}


def test_who_has_one_more_keeps_it() -> None:
    before = {"m": places("a", 0), "n": places("a", 1, 2)}
    assert assign_ranges(spec({"a": 3}, {"m": "a", "n": "a"}, before)) == before


def test_partitions_that_are_gone() -> None:
    before = {"m": places("a", 0, 4), "n": places("a", 1, 2)}
    assert assign_ranges(spec({"a": 2}, {"m": "a", "n": "a"}, before)) == {"m": places("a", 0), "n": places("a", 1)}


@given(specs())
def test_it_is_valid_even_topic_by_topic_and_settled(given_spec: AssignmentSpec) -> None:
    after = assign_ranges(given_spec)
    assert_valid(given_spec, after)
    for topic_id in given_spec.partition_counts:
        loads = [
            sum(one == topic_id for one, _ in after[member])
            for member, topic_ids in given_spec.subscriptions.items()
            if topic_id in topic_ids
        ]
        assert not loads or max(loads) - min(loads) <= 1
    again = AssignmentSpec(given_spec.subscriptions, given_spec.partition_counts, after)
    assert assign_ranges(again) == after, "nothing moves without a reason"
