"""Long work in steps: what it yields, and how much of the time it takes."""

import pytest

from millstream.broker.steps import Steps, take_steps
from millstream.model.pending import Pending
from tests.support.simulated_runtime import SimulatedRuntime


class SlowRuntime(SimulatedRuntime):
    """Time passes within a step when a test says so."""

    def work(self, milliseconds: int) -> None:
        self._now_s += milliseconds / 1000


def test_values_and_errors_come_back() -> None:
    runtime = SimulatedRuntime()
    waited: Pending[int] = Pending()
    refused: Pending[int] = Pending()

    def steps() -> Steps[list[object]]:
        found: list[object] = [(yield waited)]
        yield None
        try:
            yield refused
        except OSError as error:
            found.append(str(error))
        return found

    done = take_steps(runtime, "lane", steps(), lambda: False)
    runtime.run()
    waited.resolve(5)
    runtime.advance(0)
    refused.fail(OSError("no"))
    runtime.run()
    assert done.result() == [5, "no"]


def test_an_error_ends_it() -> None:
    runtime = SimulatedRuntime()

    def steps() -> Steps[None]:
        yield None
        raise ValueError("ours")

    done = take_steps(runtime, "lane", steps(), lambda: False)
    runtime.advance(0)
    with pytest.raises(ValueError, match="ours"):
        done.result()


def test_most_of_the_time_is_left_to_others() -> None:
    runtime = SlowRuntime()
    started_ms = runtime.now_ms()

    def steps() -> Steps[int]:
        for _ in range(50):
            runtime.work(2)
            yield None
        return runtime.now_ms()

    done = take_steps(runtime, "lane", steps(), lambda: False)
    runtime.advance(10)
    assert 490 <= done.result() - started_ms <= 510


def test_work_that_is_stopped_is_never_settled() -> None:
    runtime = SimulatedRuntime()
    closed: list[bool] = []

    def steps() -> Steps[None]:
        try:
            while True:
                yield None
        finally:
            closed.append(True)

    stopped = False
    done = take_steps(runtime, "lane", steps(), lambda: stopped)
    runtime.step()
    stopped = True
    runtime.advance(1)
    assert closed == [True]
    assert not done.done


def test_functions_run_in_the_lane_and_what_they_give_comes_back() -> None:
    runtime = SimulatedRuntime()

    def refuse() -> None:
        raise OSError("no")

    def steps() -> Steps[list[object]]:
        found: list[object] = [(yield lambda: 5)]
        try:
            yield refuse
        except OSError as error:
            found.append(str(error))
        return found

    runtime.hold("lane")
    done = take_steps(runtime, "lane", steps(), lambda: False)
    runtime.advance(1)
    assert not done.done
    runtime.release("lane")
    runtime.advance(1)
    assert done.result() == [5, "no"]


def test_time_taken_before_a_wait_is_made_up_for_behind_it() -> None:
    runtime = SlowRuntime()
    started_ms = runtime.now_ms()

    def steps() -> Steps[int]:
        for _ in range(50):
            runtime.work(2)
            yield lambda: None
        return runtime.now_ms()

    done = take_steps(runtime, "lane", steps(), lambda: False, share=0.5)
    runtime.advance(10)
    assert 190 <= done.result() - started_ms <= 210
