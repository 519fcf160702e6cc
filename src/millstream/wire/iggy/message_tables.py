"""Iggy batches as tables of records: what `millstream.wire.iggy.stored` does with an object for each record, with
a compiled loop, for nearly all batches."""

import struct
from typing import Final

from millstream.model.frame import read_frame_header
from millstream.model.record_table import HEADER_FIELDS, ROW_FIELDS, RecordTable, numbers
from millstream.wire.iggy.headers import HeaderKind
from millstream.wire.iggy.incoming import BATCH_HEADER_BYTES, Layout
from millstream.wire.iggy.message_rows import COMPILED, KIND_BYTES, PLACES, ROOM_MISSING, TEXT_BYTES, read_rows
from millstream.wire.iggy.stored import ID_HEADER, KINDS_HEADER, ORIGIN_HEADER, layout_of_frame, messages_of

__all__ = ["read_table"]

_NAMES: Final = tuple(name.encode() for name in (ID_HEADER, ORIGIN_HEADER, KINDS_HEADER))
_KINDS: Final = bytes(KIND_BYTES) + b"".join(
    bytes((len(kind.name),)) + kind.name.lower().encode().ljust(KIND_BYTES - 1) for kind in HeaderKind
)
"""The names of all kinds by their numbers, each with its length before it."""
_TEXTS: Final = b"".join((*_NAMES, _KINDS))
_BATCH_ORIGIN: Final = struct.Struct("<24xQ")
_TIME_MAX: Final = 2**60
_MESSAGE_BYTES_MIN: Final = 24
_MORE_ROOM: Final = 8


def read_table(frame: memoryview, *, compiled: bool = COMPILED) -> RecordTable | None:
    """Take a stored batch apart.

    Args:
        frame: one whole frame of magic IGGY_BATCH.
        compiled: whether the loop is to be used; it is slow where it is not compiled.

    Returns:
        Its records; None if they are out of the ordinary or damaged: `read_frame` knows.

    Raises:
        DamagedBatch: there is no such layout.
    """
    if not compiled:
        return None
    header = read_frame_header(frame)
    layout = layout_of_frame(frame)
    messages = messages_of(frame)
    count = header.record_count
    position = BATCH_HEADER_BYTES if layout is Layout.BATCH else 0
    stop = len(messages)
    if not 0 <= count <= stop // _MESSAGE_BYTES_MIN or stop < position or abs(header.max_timestamp) > _TIME_MAX:
        return None
    origin_us = _BATCH_ORIGIN.unpack_from(messages)[0] if layout is Layout.BATCH else 0
    if origin_us > _TIME_MAX:
        return None
    times = numbers(2)
    times[0], times[1] = origin_us, header.max_timestamp
    rows = numbers(ROW_FIELDS * count)
    id_name, origin_name, kinds_name = _NAMES
    at = stop + len(id_name)
    behind = stop + len(_TEXTS)
    more = 16
    while True:
        room = (TEXT_BYTES + 4) * count + KIND_BYTES * more
        data = memoryview(bytearray().join((messages, _TEXTS, bytes(room))))
        places = numbers(PLACES)
        places[0], places[1] = stop, at
        places[2], places[3] = at + len(origin_name), at + len(origin_name) + len(kinds_name)
        places[4], places[5] = behind, behind + room
        headers = numbers(HEADER_FIELDS * (2 * count + 2 * more))
        totals = numbers(3)
        found = read_rows(data, position, stop, layout, count, times, places, rows, headers, totals)
        if found != ROOM_MISSING:
            break
        more = more * _MORE_ROOM + 2 * count
    if found < 0:
        return None
    return RecordTable(header.base_offset, data, found, rows, headers, *totals.tolist())
