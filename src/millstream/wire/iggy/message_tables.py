"""Iggy batches as tables of records: what `millstream.wire.iggy.stored` does with an object for each record, with
a compiled loop, for nearly all batches."""

from typing import Final

from millstream.model.frame_span import FrameSpan
from millstream.model.numbers import numbers
from millstream.model.record_table import HEADER_FIELDS, ROW_FIELDS, RecordTable
from millstream.wire.iggy.headers import HeaderKind
from millstream.wire.iggy.message_rows import COMPILED, KIND_BYTES, PLACES, ROOM_MISSING, TEXT_BYTES, read_rows
from millstream.wire.iggy.stored import ID_HEADER, KINDS_HEADER, ORIGIN_HEADER

__all__ = ["read_table"]

_NAMES: Final = tuple(name.encode() for name in (ID_HEADER, ORIGIN_HEADER, KINDS_HEADER))
_KINDS: Final = bytes(KIND_BYTES) + b"".join(
    bytes((len(kind.name),)) + kind.name.lower().encode().ljust(KIND_BYTES - 1) for kind in HeaderKind
)
"""The names of all kinds by their numbers, each with its length before it."""
_TEXTS: Final = b"".join((*_NAMES, _KINDS))
_MESSAGE_BYTES_MIN: Final = 24
_MORE_ROOM: Final = 8


def read_table(span: FrameSpan, *, compiled: bool = COMPILED) -> RecordTable | None:
    """Take stored batches apart.

    Args:
        span: of frames of magic IGGY_BATCH.
        compiled: whether the loop is to be used; it is slow where it is not compiled.

    Returns:
        Their records; None if they are out of the ordinary or damaged: `read_frame` knows.
    """
    if not compiled:
        return None
    count, stop = span.records, len(span.data)
    if count > stop // _MESSAGE_BYTES_MIN:
        return None
    rows = numbers(ROW_FIELDS * count)
    id_name, origin_name, kinds_name = _NAMES
    at = stop + len(id_name)
    behind = stop + len(_TEXTS)
    more = 16
    while True:
        room = (TEXT_BYTES + 4) * count + KIND_BYTES * more
        data = memoryview(bytearray().join((span.data, _TEXTS, bytes(room))))
        places = numbers(PLACES)
        places[0], places[1] = stop, at
        places[2], places[3] = at + len(origin_name), at + len(origin_name) + len(kinds_name)
        places[4], places[5] = behind, behind + room
        headers = numbers(HEADER_FIELDS * (2 * count + 2 * more))
        totals = numbers(3)
        found = read_rows(data, span.heads, span.count, places, rows, headers, totals)
        if found != ROOM_MISSING:
            break
        more = more * _MORE_ROOM + 2 * count
    if found < 0:
        return None
    return RecordTable(span, data, found, rows, headers, *totals.tolist())
