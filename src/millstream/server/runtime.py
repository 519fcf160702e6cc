"""The runtime of a real server: an event loop, its clock, and a thread for each lane."""

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from millstream.model.pending import Pending
from millstream.model.runtime import Timer

__all__ = ["LoopRuntime"]

T = TypeVar("T")


class _Lane:
    """A thread that does one piece of work after the other.

    An executor of one thread would do the same and cost ten times as much for each piece, on the path of every
    acknowledgement that waits for the disk.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # A daemon, so that a process which fails before `end` is not kept alive.
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], None]) -> None:
        """Do a piece of work after those before it."""
        self._queue.put(work)

    def end(self) -> None:
        """Return once all work is done."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()
            del work  # and what it has made, which may be large: it is not to stay until the next comes


class LoopRuntime:
    """A `millstream.model.runtime.Runtime` on the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lanes: dict[str, _Lane] = {}

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def call_soon(self, callback: Callable[[], object]) -> None:
        self._loop.call_soon(callback)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        return self._loop.call_later(delay_s, callback)

    def run_blocking(self, lane: str, work: Callable[[], T]) -> Pending[T]:
        thread = self._lanes.get(lane)
        if thread is None:
            thread = self._lanes[lane] = _Lane(f"millstream-{lane}")
        pending: Pending[T] = Pending()

        def run() -> None:
            settle: Callable[[], None]
            try:
                value = work()
            except Exception as error:  # noqa: BLE001 - handed on whole to whoever waits, on the loop's thread
                settle = partial(pending.fail, error)
            else:
                settle = partial(pending.resolve, value)
            if not self._loop.is_closed():  # else nobody waits any more
                self._loop.call_soon_threadsafe(settle)

        thread.submit(run)
        return pending

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def close(self) -> None:
        """End all lanes once their work is done."""
        for lane in self._lanes.values():
            lane.end()
