"""What code below the server is handed instead of a clock, timers, threads and randomness."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from millstream.model.pending import Pending

__all__ = ["Runtime", "Timer"]

T = TypeVar("T")


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Take it back; nothing happens if it has run."""


class Runtime(Protocol):
    """Time, waiting and chance. The server's stands on an event loop, a test's on nothing."""

    def now_ms(self) -> int:
        """Wall-clock time, ms since 1970."""

    def monotonic_ms(self) -> int:
        """Time that only goes forward, ms since some moment."""

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call once the work at hand is done."""

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        """Call after a delay in seconds."""

    def run_blocking(self, lane: str, work: Callable[[], T]) -> Pending[T]:
        """Run work off the loop.

        Args:
            lane: work of one lane runs in order, one at a time; lanes run side by side.
            work: touches nothing that the loop's thread changes.
        """

    def random_bytes(self, count: int) -> bytes:
        """Bytes nobody can guess."""
