"""An answer that is not there yet, without an event loop.

`Pending` is the one thing that waits below the server: for a flush, for data, for a group. Callbacks run at
once, in the order in which they were added, on the thread that settles it: the loop's.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

__all__ = ["Pending", "gather", "settled"]

T = TypeVar("T")
U = TypeVar("U")


class Pending(Generic[T]):
    """A value, or an error, that will come.

    It is settled once, by `resolve` or `fail`; a second time is our own mistake and raises RuntimeError.
    """

    __slots__ = ("_callbacks", "_error", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Pending[T]], None]] = []

    def resolve(self, value: T) -> None:
        """Settle with a value."""
        self._settle(value, None)

    def fail(self, error: BaseException) -> None:
        """Settle with an error, which `result` will raise."""
        self._settle(None, error)

    def _settle(self, value: T | None, error: BaseException | None) -> None:
        if self.done:
            raise RuntimeError("a pending answer was settled twice")
        self.done, self._value, self._error = True, value, error
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def result(self) -> T:
        """The value; raises the error it failed with, or RuntimeError before it is settled."""
        if not self.done:
            raise RuntimeError("the answer is not there yet")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # T may itself allow None

    def when_done(self, callback: Callable[["Pending[T]"], None]) -> None:
        """Call back once it is settled; at once if it is."""
        if self.done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def then(self, function: Callable[[T], U]) -> "Pending[U]":
        """A new pending answer: the function of this one's value, or the error of either."""
        following: Pending[U] = Pending()

        def follow(done: Pending[T]) -> None:
            try:
                value = function(done.result())
            except Exception as error:  # noqa: BLE001 - handed on whole to whoever waits
                following.fail(error)
            else:
                following.resolve(value)

        self.when_done(follow)
        return following


def settled(value: T) -> Pending[T]:
    """A pending answer that has its value already."""
    pending: Pending[T] = Pending()
    pending.resolve(value)
    return pending


def gather(pendings: Sequence[Pending[T]]) -> Pending[Sequence[Pending[T]]]:
    """Resolves, with the same sequence, once every one of them is settled, whether well or not."""
    whole: Pending[Sequence[Pending[T]]] = Pending()
    left = len(pendings)
    if not left:
        whole.resolve(pendings)

    def count(_: Pending[T]) -> None:
        nonlocal left
        left -= 1
        if not left:
            whole.resolve(pendings)

    for pending in pendings:
        pending.when_done(count)
    return whole
