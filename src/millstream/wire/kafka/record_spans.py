"""The hot loop that finds the keys of the records of a batch, and where each record stands.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `record_spans.pxd`. The tests hold both to the same answers.

What it tells of a record is SPAN_FIELDS numbers:

    0  where it begins, with its length      4  where its key begins
    1  where it ends                         5  bytes of the key, -1 for null
    2  its time, from the batch's first      6  bytes of the value, -1 for null
    3  its offset, from the batch's
"""

from typing import Final

from millstream.wire.kafka import varints

__all__ = ["SPAN_FIELDS", "find_spans"]

SPAN_FIELDS: Final = 7


def find_spans(body: memoryview, position: int, offset: int, end_offset: int, count: int, spans: memoryview) -> int:
    """Find some records of a batch that follow each other.

    Args:
        body: the records of the batch, decompressed.
        position: where the first of those begins that are looked for.
        offset: the first that it may have, from the batch's.
        end_offset: the first that none of them may have.
        count: how many to find.
        spans: room for SPAN_FIELDS numbers for each.

    Returns:
        Where they end; -1 if any of them does not fit the body, or their offsets do not rise.
    """
    for span in range(0, count * 7, 7):
        spans[span] = position
        position = _read_span(body, position, spans, span)
        if position < 0 or spans[span + 3] < offset or spans[span + 3] >= end_offset:
            return -1
        spans[span + 1] = position
        offset = spans[span + 3] + 1
    return position


def _read_span(body: memoryview, position: int, spans: memoryview, span: int) -> int:
    """Fill in the fields from 2 on; gives where the record ends, -1 if it does not fit."""
    stop = end = len(body)
    # Its length and attributes; the deltas of its time and offset; its key, its value.
    for field in range(5):
        position, number = varints.take_varint(body, position, stop)
        if position < 0:
            return -1
        if field == 0:
            if number < 1 or number > end - position:
                return -1
            stop = position + number
            position += 1  # the attributes
        elif field < 3:
            spans[span + field + 1] = number
        elif number > stop - position:
            return -1
        else:
            if field == 3:
                spans[span + 4] = position
            spans[span + field + 2] = number if number >= 0 else -1
            if number > 0:
                position += number
    return stop
