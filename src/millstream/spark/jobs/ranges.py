"""Ranges of offsets, cut into pieces that are written at once."""

from functools import reduce
from operator import or_
from typing import Any

from millstream.spark.jobs.topics import Ends

__all__ = ["Piece", "condition", "pieces_of", "planned", "unplanned"]

Piece = Ends
"""One piece: for each topic and partition that it has something of, a range of offsets."""


def pieces_of(ranges: Ends, rows: int) -> list[Piece]:
    """Cut ranges into pieces, each with a part of every partition that has something left.

    Args:
        ranges: by topic and partition.
        rows: of one piece, about: offsets, of which some may have no record.
    """
    places = [(topic, part, *span) for topic, parts in ranges.items() for part, span in parts.items()]
    places = [place for place in places if place[2] < place[3]]
    if not places:
        return []
    step = max(1, rows // len(places))
    pieces: list[Piece] = []
    for number in range(max(-(-(stop - start) // step) for _, _, start, stop in places)):
        piece: Piece = {}
        for topic, part, start, stop in places:
            first = start + number * step
            if first < stop:
                piece.setdefault(topic, {})[part] = (first, min(first + step, stop))
        pieces.append(piece)
    return pieces


def planned(ranges: Ends) -> Any:
    """Ranges in a form that is fit for JSON."""
    return {topic: {str(part): list(span) for part, span in parts.items()} for topic, parts in ranges.items()}


def unplanned(plan: Any) -> Ends:
    """What `planned` was made of."""
    return {topic: {int(part): (span[0], span[1]) for part, span in parts.items()} for topic, parts in plan.items()}


def condition(piece: Piece) -> Any:
    """The condition for rows of an archive to be in a piece, as a column."""
    from pyspark.sql import functions as F

    places = [
        (F.col("topic") == topic) & (F.col("partition") == part) & F.col("offset").between(start, stop - 1)
        for topic, parts in piece.items()
        for part, (start, stop) in parts.items()
    ]
    return reduce(or_, places)
