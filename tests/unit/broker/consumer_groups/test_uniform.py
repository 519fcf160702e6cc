"""The assignor "uniform": balance, and what stays where it was."""

from hypothesis import given

from millstream.broker.consumer_groups.assignment_spec import AssignmentSpec
from millstream.broker.consumer_groups.uniform import assign_uniformly
from tests.unit.broker.consumer_groups.specs import assert_valid, places, spec, specs


def test_one_member_gets_everything() -> None:
    assert assign_uniformly(spec({"a": 3, "b": 1}, {"m": "ab"})) == {"m": places("a", 0, 1, 2) | places("b", 0)}


def test_nobody_subscribes_to_anything() -> None:
    assert assign_uniformly(spec({"a": 3}, {"m": "", "n": ""})) == {"m": frozenset(), "n": frozenset()}


def test_a_new_member_takes_no_more_than_its_share() -> None:
    before = {"m": places("a", 0, 1, 2), "n": places("a", 3, 4, 5)}
    after = assign_uniformly(spec({"a": 6}, {"m": "a", "n": "a", "o": "a"}, before))
    assert [len(after[member]) for member in "mno"] == [2, 2, 2]
    assert after["m"] < before["m"]
    assert after["n"] < before["n"]


def test_what_a_member_leaves_goes_to_the_others_and_nothing_else_moves() -> None:
    before = {"m": places("a", 0, 1), "n": places("a", 2, 3), "gone": places("a", 4, 5)}
    after = assign_uniformly(spec({"a": 6}, {"m": "a", "n": "a"}, before))
    assert before["m"] < after["m"]
    assert before["n"] < after["n"]
    assert len(after["m"]) == len(after["n"]) == 3


def test_who_has_one_more_keeps_it() -> None:
    before = {"m": places("a", 0), "n": places("a", 1, 2), "o": places("a", 3, 4)}
    assert assign_uniformly(spec({"a": 5}, {"m": "a", "n": "a", "o": "a"}, before)) == before


def test_members_with_other_topics_make_up_for_them() -> None:
    after = assign_uniformly(spec({"a": 4, "b": 4}, {"m": "a", "n": "ab"}))
    assert after == {"m": places("a", 0, 1, 2, 3), "n": places("b", 0, 1, 2, 3)}


def test_many_partitions_are_shared_out_evenly() -> None:
    members = {f"m{n}": "abc" for n in range(37)}
    given = spec({"a": 1000, "b": 501, "c": 1}, members)
    after = assign_uniformly(given)
    assert_valid(given, after)
    loads = [len(found) for found in after.values()]
    assert max(loads) - min(loads) <= 1


@given(specs())
def test_it_is_valid_balanced_and_settled(given_spec: AssignmentSpec) -> None:
    after = assign_uniformly(given_spec)
    assert_valid(given_spec, after)
    for giver, found in after.items():
        for topic_id, _ in found:
            for taker, topic_ids in given_spec.subscriptions.items():
                assert topic_id not in topic_ids or len(after[giver]) - len(after[taker]) <= 1
    again = AssignmentSpec(given_spec.subscriptions, given_spec.partition_counts, after)
    assert assign_uniformly(again) == after, "nothing moves without a reason"
