"""Long work on the loop's thread in small steps, which leave most of the time to others.

The work is a generator. What it yields, and what it is sent for that:

    None                the end of a step: it goes on once others had their time
    a `Pending`         its value, once that is there; its error is raised where it was yielded
"""

from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

from millstream.model.pending import Pending
from millstream.model.runtime import Runtime

__all__ = ["Steps", "take_steps"]

T = TypeVar("T")
Steps = Generator[Pending[Any] | None, Any, T]
_SHARE: Final = 0.2
"""Of the loop's time, at most: what producers and consumers are slowed by while it goes on."""


def take_steps(runtime: Runtime, steps: Steps[T], is_stopped: Callable[[], bool]) -> Pending[T]:
    """Do some work.

    Args:
        runtime: time and waiting.
        steps: the work.
        is_stopped: whether to leave off where it stands; what is pending is never settled then.

    Returns:
        What the work returns, or its error.
    """
    walk = _Walk(runtime, steps, is_stopped)
    runtime.call_soon(walk.go_on)
    return walk.outcome


class _Walk:
    def __init__(self, runtime: Runtime, steps: Steps[Any], is_stopped: Callable[[], bool]) -> None:
        self._runtime = runtime
        self._steps = steps
        self._is_stopped = is_stopped
        self.outcome: Pending[Any] = Pending()

    def go_on(self, waited: Pending[Any] | None = None) -> None:
        """Take the next step."""
        if self._is_stopped():
            self._steps.close()
            return
        began_ms = self._runtime.monotonic_ms()
        try:
            waits_for = self._steps.send(None) if waited is None else self._hand_over(waited)
        except StopIteration as end:
            self.outcome.resolve(end.value)
        except Exception as error:  # noqa: BLE001 - handed on whole to whoever waits
            self.outcome.fail(error)
        else:
            if waits_for is not None:
                waits_for.when_done(self.go_on)
                return
            # Full milliseconds are counted, which is right on average.
            took_ms = self._runtime.monotonic_ms() - began_ms
            self._runtime.call_later(took_ms / 1000 * (1 / _SHARE - 1), self.go_on)

    def _hand_over(self, waited: Pending[Any]) -> Pending[Any] | None:
        try:
            value = waited.result()
        except Exception as error:  # noqa: BLE001 - raised where it was waited for
            return self._steps.throw(error)
        return self._steps.send(value)
