"""A deadline: put off without new timers, brought forward, taken back."""

import pytest

from millstream.broker.deadline import Deadline
from tests.unit.broker.members import CountingRuntime


@pytest.fixture
def runtime() -> CountingRuntime:
    return CountingRuntime()


def test_it_passes_once_and_is_not_set_then(runtime: CountingRuntime) -> None:
    missed: list[int] = []
    deadline = Deadline(runtime, lambda: missed.append(runtime.monotonic_ms()))
    assert not deadline.is_set
    start_ms = runtime.monotonic_ms()
    deadline.set(500)
    assert [deadline.is_set] == [True]
    runtime.advance(10)
    assert missed == [start_ms + 500]
    assert [deadline.is_set] == [False]
    assert not runtime.timers


def test_to_put_it_off_costs_no_timer(runtime: CountingRuntime) -> None:
    missed: list[int] = []
    deadline = Deadline(runtime, lambda: missed.append(runtime.monotonic_ms()))
    start_ms = runtime.monotonic_ms()
    for _ in range(20):
        deadline.set(1000)
        assert len(runtime.timers) == 1
        runtime.advance(0.4)
    assert missed == []
    runtime.advance(10)
    assert missed == [start_ms + 19 * 400 + 1000]


def test_it_may_come_sooner_than_before(runtime: CountingRuntime) -> None:
    missed: list[int] = []
    deadline = Deadline(runtime, lambda: missed.append(1))
    deadline.set(60_000)
    deadline.set(100)
    assert len(runtime.timers) == 1
    runtime.advance(0.2)
    assert missed == [1]


def test_it_may_be_taken_back_and_set_again(runtime: CountingRuntime) -> None:
    missed: list[int] = []
    deadline = Deadline(runtime, lambda: missed.append(1))
    deadline.cancel()
    deadline.set(100)
    deadline.cancel()
    assert not runtime.timers
    runtime.advance(1)
    assert missed == []
    deadline.set(100)
    runtime.advance(1)
    assert missed == [1]
