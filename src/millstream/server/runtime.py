"""The runtime of a real server: an event loop, its clock, and a thread for each lane."""

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from millstream.model.pending import Pending
from millstream.model.runtime import Timer

__all__ = ["LoopRuntime"]

T = TypeVar("T")


class LoopRuntime:
    """A `millstream.model.runtime.Runtime` on the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lanes: dict[str, ThreadPoolExecutor] = {}

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def call_soon(self, callback: Callable[[], object]) -> None:
        self._loop.call_soon(callback)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        return self._loop.call_later(delay_s, callback)

    def run_blocking(self, lane: str, work: Callable[[], T]) -> Pending[T]:
        executor = self._lanes.get(lane)
        if executor is None:
            executor = self._lanes[lane] = ThreadPoolExecutor(1, thread_name_prefix=f"millstream-{lane}")
        pending: Pending[T] = Pending()

        def run() -> None:
            try:
                value = work()
            except Exception as error:  # noqa: BLE001 - handed on whole to whoever waits, on the loop's thread
                self._loop.call_soon_threadsafe(pending.fail, error)
            else:
                self._loop.call_soon_threadsafe(pending.resolve, value)

        executor.submit(run)
        return pending

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def close(self) -> None:
        """End all lanes once their work is done."""
        for executor in self._lanes.values():
            executor.shutdown(wait=True)
