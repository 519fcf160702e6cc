"""Rows of numbers that compiled loops fill in."""

from typing import Final

__all__ = ["numbers"]

_NUMBER_BYTES: Final = 8


def numbers(count: int) -> memoryview:
    """Room for some numbers of 64 bits, all of them 0."""
    return memoryview(bytearray(_NUMBER_BYTES * count)).cast("q")
