"""Steps of a member from what it has to what it is to have."""

from collections.abc import Set as AbstractSet

import pytest

from millstream.broker.consumer_groups.member import ConsumerMember, MemberState
from millstream.broker.consumer_groups.reconciliation import Standing, next_standing
from millstream.broker.deadline import Deadline
from tests.unit.broker.consumer_groups.specs import places
from tests.unit.broker.members import CountingRuntime

STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED
NONE = places("a")


def member(
    state: MemberState, assigned: AbstractSet[int], target: AbstractSet[int], revoking: AbstractSet[int] = frozenset()
) -> ConsumerMember:
    runtime = CountingRuntime()
    return ConsumerMember(
        "m",
        None,
        Deadline(runtime, lambda: None),
        Deadline(runtime, lambda: None),
        epoch=3,
        state=state,
        assigned=places("a", *assigned),
        revoking=places("a", *revoking),
        target=places("a", *target),
    )


def step(
    one: ConsumerMember, owned: AbstractSet[int] | None, taken: AbstractSet[int] = frozenset(), epoch: int = 4
) -> Standing | None:
    said = None if owned is None else places("a", *owned)
    return next_standing(one, epoch, said, lambda place: place[1] not in taken)


def test_who_has_all_stays() -> None:
    assert step(member(STABLE, {0}, {0}), {0}, epoch=3) is None


def test_a_new_target_that_changes_nothing_is_reached_at_once() -> None:
    assert step(member(STABLE, {0}, {0}), None) == Standing(STABLE, 4, places("a", 0), NONE)


@pytest.mark.parametrize("owned", [None, {0, 1}, {1}])
def test_what_is_to_be_given_up_comes_first_and_the_epoch_stays(owned: set[int] | None) -> None:
    assert step(member(STABLE, {0, 1}, {0, 2}), owned) == Standing(UNREVOKED, 3, places("a", 0), places("a", 1))


def test_what_is_given_up_already_need_not_be_asked_for() -> None:
    assert step(member(STABLE, {0, 1}, {0, 2}), {0}) == Standing(STABLE, 4, places("a", 0, 2), NONE)


@pytest.mark.parametrize("owned", [None, {0, 1}, {1}])
def test_one_waits_until_it_is_given_up(owned: set[int] | None) -> None:
    assert step(member(UNREVOKED, {0}, {0, 2}, {1}), owned) is None


def test_then_the_rest_is_had() -> None:
    assert step(member(UNREVOKED, {0}, {0, 2}, {1}), {0}) == Standing(STABLE, 4, places("a", 0, 2), NONE)


def test_more_may_be_to_be_given_up_by_then() -> None:
    standing = step(member(UNREVOKED, {0, 2}, {2}, {1}), {0, 2})
    assert standing == Standing(UNREVOKED, 3, places("a", 2), places("a", 0))


def test_what_others_have_is_waited_for() -> None:
    waiting = step(member(STABLE, {0}, {0, 1, 2}), {0}, taken={2})
    assert waiting == Standing(UNRELEASED, 4, places("a", 0, 1), NONE)
    assert step(member(UNRELEASED, {0, 1}, {0, 1, 2}), None) == Standing(STABLE, 4, places("a", 0, 1, 2), NONE)
    still = step(member(UNRELEASED, {0, 1}, {0, 1, 2}), None, taken={2})
    assert still == Standing(UNRELEASED, 4, places("a", 0, 1), NONE)
