"""Stopping in order: SIGTERM and SIGINT are wishes, which what runs looks at between batches."""

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Final, Self

__all__ = ["BATCH_END_TIMEOUT_S", "StopWish"]

BATCH_END_TIMEOUT_S: Final = 60.0
"""How long the batches that are going on may take to end. A batch that is given up is run again at the next start,
and comes out once all the same."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopWish:
    """Whether the user wants an end; a context that listens to signals, if it is entered on the main thread.

    The first SIGTERM or SIGINT asks for an end with the batches that are going on, the second for one at once.
    """

    def __init__(self, batch_end_timeout_s: float = BATCH_END_TIMEOUT_S) -> None:
        self._wished = threading.Event()
        self._is_urgent = threading.Event()
        self._timeout_s = batch_end_timeout_s
        self._deadline_s = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._take) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wish(self) -> None:
        """Ask for an end; a second time, for one at once."""
        if self._wished.is_set():
            self._is_urgent.set()
        self._deadline_s = self._deadline_s or time.monotonic() + self._timeout_s
        self._wished.set()

    @property
    def is_wished(self) -> bool:
        """Whether an end is asked for."""
        return self._wished.is_set()

    @property
    def is_due(self) -> bool:
        """Whether batches need not be waited for any longer."""
        return self._wished.is_set() and (self._is_urgent.is_set() or time.monotonic() >= self._deadline_s)

    def wait(self, timeout_s: float) -> bool:
        """Wait until an end is asked for; False if it has not been in time."""
        return self._wished.wait(timeout_s)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.wish()
