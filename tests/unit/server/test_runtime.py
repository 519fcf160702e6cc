"""The runtime of a real server: lanes, time, and the end."""

import asyncio
import threading
import weakref

import pytest

from millstream.model.pending import Pending
from millstream.server.runtime import LoopRuntime


async def outcome(pending: Pending[int]) -> int:
    done = asyncio.Event()
    pending.when_done(lambda _: done.set())
    await asyncio.wait_for(done.wait(), 10)
    return pending.result()


def test_work_of_a_lane_runs_in_order_on_a_thread_of_its_own() -> None:
    async def test() -> None:
        runtime = LoopRuntime()
        here = threading.current_thread()
        ran: list[tuple[int, str]] = []

        def work(number: int) -> int:
            assert threading.current_thread() is not here
            ran.append((number, threading.current_thread().name))
            return number

        pendings = [runtime.run_blocking("flush", lambda number=number: work(number)) for number in range(50)]  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        assert [await outcome(pending) for pending in pendings] == list(range(50))
        assert [number for number, _ in ran] == list(range(50))
        assert {name for _, name in ran} == {"millstream-flush"}
        runtime.close()

    asyncio.run(test())


class Large:
    """What a piece of work may make."""


def test_a_lane_lets_go_of_what_its_work_has_made() -> None:
    async def test() -> None:
        runtime = LoopRuntime()
        made: list[weakref.ref[Large]] = []
        runtime.run_blocking("upkeep", Large).when_done(lambda done: made.append(weakref.ref(done.result())))
        for _ in range(1000):
            if made and made[0]() is None:
                break
            await asyncio.sleep(0.01)
        assert made[0]() is None
        runtime.close()

    asyncio.run(test())


def test_a_lane_does_not_wait_for_another() -> None:
    async def test() -> None:
        runtime = LoopRuntime()
        go_on = threading.Event()
        slow = runtime.run_blocking("slow", lambda: int(go_on.wait(10)))
        assert await outcome(runtime.run_blocking("fast", lambda: 5)) == 5
        assert not slow.done
        go_on.set()
        assert await outcome(slow) == 1
        runtime.close()

    asyncio.run(test())


def test_an_error_of_work_is_handed_on() -> None:
    async def test() -> None:
        runtime = LoopRuntime()

        def work() -> int:
            raise OSError(5, "Input/output error")

        with pytest.raises(OSError, match="Input/output"):
            await outcome(runtime.run_blocking("lane", work))
        assert await outcome(runtime.run_blocking("lane", lambda: 1)) == 1
        runtime.close()

    asyncio.run(test())


def test_close_waits_for_work_under_way() -> None:
    async def test() -> None:
        runtime = LoopRuntime()
        begun, done = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            done.wait(0.05)
            done.set()

        runtime.run_blocking("lane", work)
        begun.wait(10)
        runtime.close()
        assert done.is_set()

    asyncio.run(test())


def test_time_and_chance() -> None:
    async def test() -> None:
        runtime = LoopRuntime()
        assert runtime.now_ms() > 1_700_000_000_000
        before_ms = runtime.monotonic_ms()
        called: list[str] = []
        runtime.call_later(0.001, lambda: called.append("later"))
        runtime.call_later(0.001, lambda: called.append("never")).cancel()
        runtime.call_soon(lambda: called.append("soon"))
        await asyncio.sleep(0.02)
        assert called == ["soon", "later"]
        assert runtime.monotonic_ms() - before_ms >= 19
        assert len(runtime.random_bytes(16)) == 16
        assert runtime.random_bytes(16) != runtime.random_bytes(16)

    asyncio.run(test())
