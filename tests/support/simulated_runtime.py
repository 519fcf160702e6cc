"""A `Runtime` on nothing: virtual time, work in a seeded order, and not a thread in sight."""

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Final, TypeVar

from millstream.model.pending import Pending

__all__ = ["SimulatedRuntime"]

T = TypeVar("T")

_STEPS_MAX: Final = 1_000_000
"""Steps of one run that count as never coming to rest."""


class _Timer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class SimulatedRuntime:
    """A deterministic runtime: the same seed and the same calls give the same run.

    Nothing runs by itself. `step` does one thing, `run` goes on until only timers are left, `advance` lets time
    pass. What was handed to a lane is executed in a step of its own; its outcome comes back like any call_soon.

    Args:
        seed: decides which lane goes next, and the random bytes.
        start_ms: wall-clock time at the beginning, ms since 1970.
    """

    def __init__(self, seed: int = 0, start_ms: int = 1_700_000_000_000) -> None:
        self._random = Random(seed)
        self._now_s = start_ms / 1000
        self._soon: deque[Callable[[], object]] = deque()
        self._lanes: dict[str, deque[Callable[[], None]]] = {}
        self._held: set[str] = set()
        self._timers: list[tuple[float, int, _Timer]] = []
        self._numbers = count()

    def now_ms(self) -> int:
        """Virtual wall-clock time, ms since 1970."""
        return round(self._now_s * 1000)

    def monotonic_ms(self) -> int:
        """Virtual time; it is the same as the wall clock's."""
        return self.now_ms()

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call in a later step; in the order of the calls."""
        self._soon.append(callback)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> _Timer:
        """Call when `advance` has let the delay pass."""
        timer = _Timer(callback)
        heapq.heappush(self._timers, (self._now_s + delay_s, next(self._numbers), timer))
        return timer

    def run_blocking(self, lane: str, work: Callable[[], T]) -> Pending[T]:
        """Queue work in a lane; a lane's work runs in order, lanes in any order."""
        pending: Pending[T] = Pending()

        def execute() -> None:
            try:
                value = work()
            except Exception as error:  # noqa: BLE001 - whoever waits gets it, as from a thread
                failure = error
                self.call_soon(lambda: pending.fail(failure))
            else:
                self.call_soon(lambda: pending.resolve(value))

        self._lanes.setdefault(lane, deque()).append(execute)
        return pending

    def random_bytes(self, count: int) -> bytes:
        """Bytes that follow from the seed."""
        return self._random.randbytes(count)

    def hold(self, lane: str) -> None:
        """Let a lane's work lie, as a slow disk would, until `release`."""
        self._held.add(lane)

    def release(self, lane: str) -> None:
        """Let a lane go on."""
        self._held.discard(lane)

    def queued(self, lane: str) -> int:
        """How many pieces of work wait in a lane."""
        return len(self._lanes.get(lane, ()))

    def step(self) -> bool:
        """Do one thing: a call that is due soon, or one piece of work of a lane.

        Returns:
            False if there is nothing to do but wait for timers and held lanes.
        """
        ready = [lane for lane, queue in self._lanes.items() if queue and lane not in self._held]
        if self._soon and (not ready or self._random.random() < 0.5):
            self._soon.popleft()()
            return True
        if ready:
            self._lanes[self._random.choice(ready)].popleft()()
            return True
        return False

    def run(self) -> None:
        """Step until there is nothing left to do but wait for timers and held lanes."""
        for _ in range(_STEPS_MAX):
            if not self.step():
                return
        raise AssertionError("the simulation does not come to rest")

    def advance(self, seconds: float) -> None:
        """Let time pass, and run everything that becomes due, each at its own time."""
        self.run()
        end_s = self._now_s + seconds
        while self._timers and self._timers[0][0] <= end_s:
            due_s, _, timer = heapq.heappop(self._timers)
            self._now_s = max(self._now_s, due_s)
            if timer.callback is not None:
                timer.callback()
                self.run()
        self._now_s = end_s
