"""Sending at a fixed rate, whatever the server does meanwhile."""

import struct
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

__all__ = ["PacedSender"]

_DUE: Final = struct.Struct(">q")


class PacedSender:
    """Records that carry when they were due, and the schedule to send them by.

    A latency counts from when its record was due and not from when it left, so that a server (or a client) that
    stalls is charged for every record it held up.

    Args:
        record_bytes: size of each value, at least 8.
        rate: records per second.
        seconds: length of the run.
    """

    def __init__(self, record_bytes: int, rate: int, seconds: float) -> None:
        self.count = max(1, int(rate * seconds))
        self.warm_up = b"w" * record_bytes
        self._padding = b"." * (record_bytes - _DUE.size)
        self._interval_ns = 1_000_000_000 // rate

    def run(self, send: Callable[[bytes], None]) -> None:
        """Send every record when it is due; `send` must not wait for the answer."""
        for due_ns in self._schedule():
            wait_ns = due_ns - time.monotonic_ns()
            if wait_ns > 0:
                time.sleep(wait_ns / 1e9)
            send(_DUE.pack(due_ns) + self._padding)

    async def run_async(
        self, send: Callable[[bytes], Awaitable[None]], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        """Do as `run` does on an event loop."""
        for due_ns in self._schedule():
            await sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            await send(_DUE.pack(due_ns) + self._padding)

    def age(self, value: bytes) -> float:
        """Seconds since a received record was due."""
        due_ns: int = _DUE.unpack_from(value)[0]
        return (time.monotonic_ns() - due_ns) / 1e9

    def _schedule(self) -> Iterator[int]:
        start_ns = time.monotonic_ns() + self._interval_ns
        return (start_ns + index * self._interval_ns for index in range(self.count))
