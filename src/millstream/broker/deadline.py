"""A moment by which something must have happened, that may be put off often."""

from collections.abc import Callable

from millstream.model.runtime import Runtime, Timer

__all__ = ["Deadline"]


class Deadline:
    """A deadline, not set at first. To put it off costs no new timer: the one there is looks when it fires.

    Args:
        runtime: time.
        missed: called when it has passed; it is not set then.
    """

    __slots__ = ("_at_ms", "_fires_ms", "_missed", "_runtime", "_timer")

    def __init__(self, runtime: Runtime, missed: Callable[[], object]) -> None:
        self._runtime = runtime
        self._missed = missed
        self._at_ms = 0
        self._fires_ms = 0
        self._timer: Timer | None = None

    @property
    def is_set(self) -> bool:
        """Whether it is still to come."""
        return self._timer is not None

    def set(self, delay_ms: int) -> None:
        """Let it be so many ms from now, in place of when it was."""
        self._at_ms = self._runtime.monotonic_ms() + delay_ms
        if self._timer is None or self._at_ms < self._fires_ms:
            self.cancel()
            self._watch(delay_ms)

    def cancel(self) -> None:
        """Let there be none."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self, delay_ms: int) -> None:
        self._fires_ms = self._runtime.monotonic_ms() + delay_ms
        self._timer = self._runtime.call_later(delay_ms / 1000, self._look)

    def _look(self) -> None:
        self._timer = None
        left_ms = self._at_ms - self._runtime.monotonic_ms()
        if left_ms > 0:
            self._watch(left_ms)
        else:
            self._missed()
