"""Answers that come later: when callbacks run, and where errors go."""

from collections.abc import Callable

import pytest

from millstream.model.pending import Pending, gather, settled


def test_an_answer_comes_once() -> None:
    pending: Pending[int] = Pending()
    with pytest.raises(RuntimeError, match="not there yet"):
        pending.result()
    pending.resolve(1)
    assert pending.done
    assert pending.result() == 1
    with pytest.raises(RuntimeError, match="twice"):
        pending.resolve(2)
    with pytest.raises(RuntimeError, match="twice"):
        pending.fail(ValueError())
    assert pending.result() == 1


def test_none_is_an_answer() -> None:
    assert settled(None).result() is None


def test_an_error_is_raised_each_time() -> None:
    pending: Pending[int] = Pending()
    pending.fail(ValueError("no"))
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            pending.result()


def test_callbacks_run_in_order_and_at_once_when_it_is_there() -> None:
    pending: Pending[str] = Pending()
    seen: list[str] = []
    pending.when_done(lambda done: seen.append("first " + done.result()))
    pending.when_done(lambda _: pending.when_done(lambda _: seen.append("from within")))
    pending.when_done(lambda _: seen.append("last"))
    assert not seen
    pending.resolve("x")
    assert seen == ["first x", "from within", "last"]
    pending.when_done(lambda _: seen.append("late"))
    assert seen[-1] == "late"


def test_then_hands_on_values_and_errors() -> None:
    pending: Pending[int] = Pending()
    doubled = pending.then(lambda value: value * 2)
    divided = pending.then(lambda value: value // 0)
    after = divided.then(lambda value: value + 1)
    pending.resolve(4)
    assert doubled.result() == 8
    for failed in (divided, after):
        with pytest.raises(ZeroDivisionError):
            failed.result()


def test_then_does_not_run_after_an_error() -> None:
    pending: Pending[int] = Pending()
    ran: list[int] = []
    following = pending.then(ran.append)
    pending.fail(KeyError("x"))
    with pytest.raises(KeyError):
        following.result()
    assert not ran


def test_chain_waits_for_what_follows() -> None:
    first: Pending[int] = Pending()
    second: Pending[int] = Pending()
    whole = first.chain(lambda value: second.then(lambda other: value + other))
    first.resolve(1)
    assert not whole.done
    second.resolve(10)
    assert whole.result() == 11


def test_chain_hands_on_the_error_of_either() -> None:
    def failing(_: int) -> Pending[int]:
        raise KeyError("in between")

    failed: Pending[int] = Pending()
    failed.fail(KeyError("at the end"))
    for function in (failing, lambda _: failed):
        with pytest.raises(KeyError):
            settled(1).chain(function).result()
    with pytest.raises(KeyError):
        failed.chain(settled).result()


def test_gather_waits_for_all_and_fails_for_none() -> None:
    pendings: list[Pending[int]] = [Pending(), settled(1), Pending()]
    whole = gather(pendings)
    pendings[2].fail(KeyError())
    assert not whole.done
    pendings[0].resolve(0)
    assert whole.result() is pendings
    assert gather([]).result() == []


@pytest.mark.parametrize(
    "follow",
    [
        lambda pending: pending.then(lambda value: value),
        lambda pending: pending.chain(settled),
        lambda pending: pending.settle(lambda value: value, str),
    ],
    ids=["then", "chain", "settle"],
)
def test_an_error_in_a_callback_is_not_taken_for_one_of_the_answer(
    follow: Callable[[Pending[int]], Pending[int]],
) -> None:
    """Whoever waits makes a mistake of their own: that must come out as it is, not as a second answer."""
    pending: Pending[int] = Pending()
    following = follow(pending)
    following.when_done(lambda _: [][1])
    with pytest.raises(IndexError):
        pending.resolve(1)
    assert following.result() == 1
