"""Asking again for as long as it makes sense."""

import time
from typing import Final

__all__ = ["Patience"]

_PAUSE_S: Final = 0.02
_PAUSE_MAX_S: Final = 1.0


class Patience:
    """Pauses that grow, until a time has come.

    Args:
        patience_s: for how long, from now on.
    """

    def __init__(self, patience_s: float) -> None:
        self._until = time.monotonic() + patience_s
        self._pause_s = _PAUSE_S

    def is_over(self) -> bool:
        """Whether to give up."""
        return time.monotonic() >= self._until

    def pause(self) -> None:
        """Wait a little."""
        time.sleep(max(min(self._pause_s, self._until - time.monotonic()), 0))
        self._pause_s = min(self._pause_s * 2, _PAUSE_MAX_S)
