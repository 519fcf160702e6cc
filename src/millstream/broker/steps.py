"""Long work on the loop's thread in small steps, which leave most of the time to others.

The work is a generator. What it yields, and what it is sent for that:

    None                the end of a step: it goes on once others had their time
    a `Pending`         its value, once that is there; its error is raised where it was yielded
    a function          what it gives, in the lane of the work, off the loop's thread; the same with its error
"""

from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

from millstream.model.pending import Pending
from millstream.model.runtime import Runtime

__all__ = ["Steps", "take_steps"]

T = TypeVar("T")
Steps = Generator[Pending[Any] | Callable[[], Any] | None, Any, T]
_SHARE: Final = 0.2
"""Of the loop's time, at most, where nobody waits for the work: what producers and consumers are slowed by."""


def take_steps(
    runtime: Runtime, lane: str, steps: Steps[T], is_stopped: Callable[[], bool], *, share: float = _SHARE
) -> Pending[T]:
    """Do some work.

    Args:
        runtime: time, waiting, and the lane.
        lane: where functions run that are yielded.
        steps: the work.
        is_stopped: whether to leave off where it stands; what is pending is never settled then.
        share: of the loop's time, at most.

    Returns:
        What the work returns, or its error.
    """
    walk = _Walk(runtime, lane, steps, is_stopped, share)
    runtime.call_soon(walk.go_on)
    return walk.outcome


class _Walk:
    def __init__(
        self, runtime: Runtime, lane: str, steps: Steps[Any], is_stopped: Callable[[], bool], share: float
    ) -> None:
        self._runtime = runtime
        self._lane = lane
        self._steps = steps
        self._is_stopped = is_stopped
        self._share = share
        self._took_ms = 0  # since others had their time
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
            # Full milliseconds are counted, which is right on average.
            self._took_ms += self._runtime.monotonic_ms() - began_ms
            self._wait_for(waits_for)

    def _wait_for(self, what: Pending[Any] | Callable[[], Any] | None) -> None:
        if what is None:
            self._rest(self.go_on)
            return
        pending = what if isinstance(what, Pending) else self._runtime.run_blocking(self._lane, what)
        # The time that was taken before is made up for behind it, or many short waits would leave others none.
        pending.when_done(lambda done: self._rest(lambda: self.go_on(done)))

    def _rest(self, go_on: Callable[[], None]) -> None:
        rest_s = self._took_ms / 1000 * (1 / self._share - 1)
        self._took_ms = 0
        if rest_s:
            self._runtime.call_later(rest_s, go_on)
        else:
            self._runtime.call_soon(go_on)

    def _hand_over(self, waited: Pending[Any]) -> Pending[Any] | Callable[[], Any] | None:
        try:
            value = waited.result()
        except Exception as error:  # noqa: BLE001 - raised where it was waited for
            return self._steps.throw(error)
        return self._steps.send(value)
