"""An answer that is not there yet, without an event loop.

`Pending` is the one thing that waits below the server: for a flush, for data, for a group. Callbacks run at
once, in the order in which they were added, on the thread that settles it: the loop's.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from millstream.model.errors import IoFailed, MillstreamError

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

    @property
    def failed(self) -> bool:
        """Whether it is settled, with an error."""
        return self._error is not None

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

    def always(self, function: Callable[[], U]) -> "Pending[U]":
        """A new pending answer: what a function gives once this one is settled, whether well or not."""
        following: Pending[U] = Pending()

        def follow(_: Pending[T]) -> None:
            try:
                following.resolve(function())
            except Exception as error:  # noqa: BLE001 - handed on whole to whoever waits
                following.fail(error)

        self.when_done(follow)
        return following

    def settle(self, answer: Callable[[T], U], refuse: Callable[[MillstreamError], U]) -> "Pending[U]":
        """A new pending answer in both cases: a function of the value, or of an error raised on purpose.

        An OSError counts as one. Any other error is a fault of ours and is handed on.
        """
        following: Pending[U] = Pending()

        def follow(_: Pending[T]) -> None:
            try:
                outcome = self._outcome(answer, refuse)
            except Exception as error:  # noqa: BLE001 - handed on whole to whoever waits
                following.fail(error)
            else:
                following.resolve(outcome)

        self.when_done(follow)
        return following

    def _outcome(self, answer: Callable[[T], U], refuse: Callable[[MillstreamError], U]) -> U:
        if isinstance(self._error, MillstreamError):
            return refuse(self._error)
        if isinstance(self._error, OSError):
            return refuse(IoFailed(str(self._error)))
        return answer(self.result())

    @staticmethod
    def attempt(begin: Callable[[], "Pending[U]"]) -> "Pending[U]":
        """Begin something that may be refused at once: the refusal becomes the error of the pending answer."""
        try:
            return begin()
        except (MillstreamError, OSError) as error:
            refused: Pending[U] = Pending()
            refused.fail(error)
            return refused

    def chain(self, function: Callable[[T], "Pending[U]"]) -> "Pending[U]":
        """A new pending answer: what the function of this one's value leads to, or the error of either."""
        following: Pending[U] = Pending()

        def hand_on(done: Pending[U]) -> None:
            if done._error is not None:
                following.fail(done._error)
            else:
                following.resolve(done.result())

        def follow(done: Pending[T]) -> None:
            try:
                next_one = function(done.result())
            except Exception as error:  # noqa: BLE001 - handed on whole to whoever waits
                following.fail(error)
            else:
                next_one.when_done(hand_on)

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
