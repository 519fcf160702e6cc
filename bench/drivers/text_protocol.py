"""Counting answers in the text protocols of Redis and NATS."""

from collections.abc import Iterable

from bench.drivers.pipeline import DriverError

__all__ = ["MarkCounter"]


class MarkCounter:
    """Counts occurrences of a mark, and fails on those of others; see `AnswerCounter`.

    Args:
        mark: found once in what is counted.
        errors: found only in answers that report an error.
    """

    def __init__(self, mark: bytes, errors: Iterable[bytes]) -> None:
        self._mark = mark
        self._errors = tuple(errors)
        self._carry_bytes = len(mark) - 1
        self._tail = b""

    def feed(self, data: memoryview) -> int:
        """Count the marks completed by `data`."""
        text = self._tail + data
        for error in self._errors:
            at = text.find(error)
            if at >= 0:
                raise DriverError(text[at : at + 120].decode(errors="replace"))
        self._tail = text[-self._carry_bytes :] if self._carry_bytes else b""
        return text.count(self._mark)
