"""The assignor "uniform": balance, and what stays where it was."""

from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given

from millstream.broker.consumer_groups import uniform
from millstream.broker.consumer_groups.assignment_spec import AssignmentSpec
from millstream.broker.consumer_groups.uniform import assign_uniformly
from tests.unit.broker.consumer_groups.specs import assert_valid, places, spec, specs

CHAIN = 200


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


def test_what_is_handed_on_along_a_chain_of_subscriptions_costs_no_look_at_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every member shares a topic with the next one, and the first has far more than the others."""
    looks = 0

    def counted(*arguments: Any) -> Any:
        nonlocal looks
        looks += 1
        return balance(*arguments)

    balance = uniform._balance
    monkeypatch.setattr(uniform, "_balance", counted)
    topic_ids = [UUID(int=number) for number in range(1, CHAIN + 2)]
    counts = dict.fromkeys(reversed(topic_ids), 100) | {topic_ids[0]: 300}
    subscriptions = {f"m{n:03}": frozenset(topic_ids[n : n + 2]) for n in range(CHAIN)}
    had = {f"m{n:03}": topic_ids[n] for n in range(CHAIN)}
    previous = {
        member: frozenset((topic_id, index) for index in range(counts[topic_id])) for member, topic_id in had.items()
    }
    given = AssignmentSpec(subscriptions, counts, previous)
    after = assign_uniformly(given)
    assert_valid(given, after)
    loads = [len(found) for found in after.values()]
    assert all(abs(one - other) <= 1 for one, other in pairwise(loads[1:]))
    assert looks < 20 * CHAIN
    kept = sum(len(previous[member] & found) for member, found in after.items())
    assert kept > sum(counts.values()) * 0.9


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
