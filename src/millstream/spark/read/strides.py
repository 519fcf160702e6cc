"""Where messages of other protocols' batches begin, when each says only how long it is itself.

As with records of Kafka's (see `varints.record_begins`), going from one to the next is the one step that is a loop;
where messages of one size follow each other, it is short-cut. What is found is a guess, which the caller has to
verify for all messages together: that each ends where the next one begins.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from millstream.spark.read.varints import Bytes, Ints, OutOfBody

__all__ = ["Head", "begins_of"]

_RUN_MIN: Final = 16
"""Shorter runs are cheaper to step through than to look for."""
_STEPS_BETWEEN_TRIES: Final = 16

Head = tuple[int, Sequence[tuple[int, int]]]
"""Bytes of a message, and the stretches of it, relative to its begin, that say so."""


def begins_of(
    body: bytes, buffer: Bytes, spans: Iterable[tuple[int, int, int]], head: Callable[[bytes, int], Head]
) -> Ints:
    """Find where each message begins, as far as can be told from one message to the next.

    Args:
        body, buffer: the same bytes.
        spans: of each batch, the positions between which its messages stand, and how many they are.
        head: reads how long the message at a position is; above 0.

    Raises:
        OutOfBody: messages run out of their batch, or do not fill it.
    """
    parts: list[Ints] = []
    steps: list[int] = []
    for begin, end, count in spans:
        position, left, tries_in = begin, count, 0
        while left:
            if position >= end:
                raise OutOfBody("its messages run out of it")
            size, stretches = head(body, position)
            run = 1
            if left >= _RUN_MIN and tries_in <= 0:
                run = _run(buffer, position, min((end - position) // size, left), size, stretches)
                tries_in = _STEPS_BETWEEN_TRIES
            if run > 1:
                parts.append(np.array(steps, dtype=np.int64))
                steps = []
                parts.append(position + size * np.arange(run, dtype=np.int64))
                tries_in = 0
            else:
                steps.append(position)
                tries_in -= 1
            position += run * size
            left -= run
        if position != end:
            raise OutOfBody("its messages do not fill it")
    parts.append(np.array(steps, dtype=np.int64))
    return np.concatenate(parts)


def _run(buffer: Bytes, position: int, room: int, size: int, stretches: Sequence[tuple[int, int]]) -> int:
    """How many messages from a position on seem to have the size of the first; 1 if too few to be worth it."""
    if room < _RUN_MIN:
        return 1
    rows = buffer[position : position + room * size].reshape(room, size)
    same = np.ones(room, dtype=np.bool_)
    for first, behind in stretches:
        # The third neighbour tells nearly all that would fail, at a fraction of the cost.
        if (rows[2, first:behind] != rows[0, first:behind]).any():
            return 1
        same &= (rows[:, first:behind] == rows[0, first:behind]).all(axis=1)
    run = room if same.all() else int(same.argmin())
    return run if run >= _RUN_MIN else 1
