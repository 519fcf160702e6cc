"""Waiting for what a server does in its own time."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["eventually"]

T = TypeVar("T")


def eventually(ask: Callable[[], T], timeout_s: float = 30.0) -> T:
    """Ask again and again until the answer is true; returns it.

    Args:
        ask: what is asked.
        timeout_s: seconds after which the last answer is reported as a failure.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < deadline_s, f"still {answer!r} after {timeout_s} s"
        time.sleep(0.05)
