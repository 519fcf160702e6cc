"""The simulated runtime: order, time, lanes, and the same again for the same seed."""

from functools import partial

import pytest

from tests.support.simulated_runtime import SimulatedRuntime


def test_calls_run_in_order_and_never_at_once() -> None:
    runtime = SimulatedRuntime()
    seen: list[int] = []

    def first() -> None:
        seen.append(1)
        runtime.call_soon(lambda: seen.append(3))

    runtime.call_soon(first)
    runtime.call_soon(lambda: seen.append(2))
    assert seen == []
    runtime.run()
    assert seen == [1, 2, 3]
    assert not runtime.step()


def test_timers_run_at_their_own_time() -> None:
    runtime = SimulatedRuntime(start_ms=1000)
    seen: list[tuple[str, int]] = []
    runtime.call_later(0.2, lambda: seen.append(("later", runtime.now_ms())))
    cancelled = runtime.call_later(0.15, lambda: seen.append(("never", 0)))
    runtime.call_later(
        0.1, lambda: runtime.call_later(0.05, lambda: seen.append(("from within", runtime.monotonic_ms())))
    )
    cancelled.cancel()
    runtime.advance(0.14)
    assert (seen, runtime.now_ms()) == ([], 1140)
    runtime.advance(1)
    assert seen == [("from within", 1150), ("later", 1200)]
    assert runtime.now_ms() == 2140


def test_work_of_a_lane_runs_in_order_and_its_errors_come_back() -> None:
    runtime = SimulatedRuntime()
    ran: list[int] = []
    pendings = [runtime.run_blocking("lane", partial(ran.append, n)) for n in range(5)]
    failing = runtime.run_blocking("lane", lambda: 1 // 0)
    runtime.run()
    assert ran == [0, 1, 2, 3, 4]
    assert all(pending.done for pending in pendings)
    with pytest.raises(ZeroDivisionError):
        failing.result()


def test_a_lane_that_is_held_lets_others_pass() -> None:
    runtime = SimulatedRuntime()
    runtime.hold("slow")
    slow, fast = runtime.run_blocking("slow", lambda: 1), runtime.run_blocking("fast", lambda: 2)
    runtime.advance(10)
    assert (slow.done, fast.result(), runtime.queued("slow")) == (False, 2, 1)
    runtime.release("slow")
    runtime.run()
    assert slow.result() == 1


def trace(seed: int) -> list[str]:
    runtime = SimulatedRuntime(seed)
    seen: list[str] = []
    for n in range(10):
        for lane in ("a", "b", "c"):
            runtime.run_blocking(lane, partial(seen.append, f"{lane}{n}"))
    runtime.run()
    return [*seen, runtime.random_bytes(4).hex()]


def test_a_seed_decides_everything() -> None:
    assert trace(1) == trace(1)
    assert len({tuple(trace(seed)) for seed in range(20)}) > 10


def test_a_simulation_that_does_not_come_to_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.simulated_runtime._STEPS_MAX", 100)
    runtime = SimulatedRuntime()

    def again() -> None:
        runtime.call_soon(again)

    again()
    with pytest.raises(AssertionError, match="come to rest"):
        runtime.run()
