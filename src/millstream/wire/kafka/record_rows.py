"""The hot loops between the records of batches and the rows of `millstream.model.record_table`.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `record_rows.pxd`. Read by Python it is slower than what goes by way of
`Record`, so that then it is not used: `COMPILED` tells. The tests hold both to the same answers, and to those of
`millstream.wire.kafka.records`, which has the layout of a record.
"""

from typing import Final

from millstream.wire.kafka import varints
from millstream.wire.texts import is_text

__all__ = [
    "COMPILED",
    "OUT_OF_THE_ORDINARY",
    "RECORD_BYTES_MAX",
    "ROOM_FOR_HEADERS",
    "batch_end",
    "read_rows",
    "write_rows",
]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
OUT_OF_THE_ORDINARY: Final = -1
"""What `read_rows` gives for what it leaves to others."""
ROOM_FOR_HEADERS: Final = -2
"""What `read_rows` gives if there are more headers than it has room for."""
RECORD_BYTES_MAX: Final = 48
"""Bytes of a record beside its content, or more; a header has 10 at most."""


def read_rows(
    data: memoryview, heads: memoryview, frames: int, rows: memoryview, headers: memoryview, totals: memoryview
) -> int:
    """Fill in the rows of the records of some frames.

    Args:
        data: their bodies, decompressed.
        heads: of the frames, which say where in there each body stands; see `millstream.model.frame_span`. They are
            told how many records there are up to the end of each.
        frames: how many there are.
        rows: room for the rows of all records.
        headers: room for headers.
        totals: is added to: bytes of content, bytes of values, headers; what stands behind them is used.

    Returns:
        The number of records; OUT_OF_THE_ORDINARY if anything does not fit, is not in its place, or means anything
        else than it seems to; ROOM_FOR_HEADERS.
    """
    row = header = 0
    for head in range(0, frames * 9, 9):
        if not -1152921504606846976 <= heads[head + 5] <= 1152921504606846976:  # 2**60
            return -1
        if not -1152921504606846976 <= heads[head + 6] <= 1152921504606846976:
            return -1
        position = heads[head + 1]
        stop = heads[head + 2]
        before = -1
        for _ in range(heads[head + 3]):
            rows[row + 1] = heads[head + 6]
            rows[row + 2] = heads[head + 7] >> 3 & 1
            position = _read_record(data, position, stop, heads[head + 5], rows, row, totals)
            if position < 0 or rows[row] <= before or rows[row] >= heads[head + 4]:
                return -1
            before = rows[row]
            rows[row] += heads[head]
            header = _read_headers(data, position, totals[3], rows[row + 7], headers, header, totals)
            if header < 0:
                return header
            position = totals[3]
            row += 8
        heads[head + 8] = row >> 3
    totals[2] += header >> 2
    return row >> 3


def _read_record(
    body: memoryview, position: int, stop: int, first_ms: int, rows: memoryview, row: int, totals: memoryview
) -> int:
    """Fill in one row; gives where its headers are, -1 if it does not fit. Where it ends goes to totals, at 3."""
    # Its length and attributes; the deltas of its time and offset; its key, its value; the count of its headers.
    for field in range(6):
        position, size = varints.take_varint(body, position, stop)
        if position < 0:
            return -1
        if field == 0:
            if size < 1 or size > stop - position:
                return -1
            stop = position + size
            position += 1  # the attributes
        elif field == 1:
            if size > 1152921504606846976 or size < -1152921504606846976:  # 2**60
                return -1
            if not rows[row + 2]:
                rows[row + 1] = first_ms + size
        elif field == 2:
            rows[row] = size
        elif size > stop - position or (field == 5 and size < 0):
            return -1
        elif field == 5:
            rows[row + 7] = size
        else:
            rows[row + field * 2 - 3] = position
            rows[row + field * 2 - 2] = size if size >= 0 else -1
            if size > 0:
                position += size
                totals[0] += size
                if field == 4:
                    totals[1] += size
    totals[3] = stop
    return position


def _read_headers(
    body: memoryview, position: int, stop: int, count: int, headers: memoryview, header: int, totals: memoryview
) -> int:
    """Take so many headers; gives the place behind them, -1 and -2 as `read_rows`."""
    if count * 4 > len(headers) - header:
        return -2
    for field in range(count * 2):
        position, size = varints.take_varint(body, position, stop)
        if position < 0:
            return -1
        if size > stop - position:
            return -1
        if field & 1 == 0:
            if size < 0:
                size = 0  # a name is never null
            elif not is_text(body, position, position + size):
                return -1
        headers[header] = position
        headers[header + 1] = size if size >= 0 else -1
        header += 2
        if size > 0:
            position += size
            totals[0] += size
    return header


def batch_end(rows: memoryview, heads: memoryview, frames: int, frame: int) -> int:
    """Up to which frame the records of a span fit into one batch, which has one kind of time for all of them: that of
    its append, which is the same for all, or times of their own.

    Args:
        rows, heads, frames: of a table.
        frame: the first frame.

    Returns:
        The number of the first frame whose records do not.
    """
    kind = _kind_of_time(rows, heads, frame)
    frame += 1
    while frame < frames and _kind_of_time(rows, heads, frame) == kind:
        frame += 1
    return frame


def _kind_of_time(rows: memoryview, heads: memoryview, frame: int) -> int:
    """The time of the append of all records of a frame; -1 if that is not their time, or they have several."""
    row = heads[frame * 9 - 1] * 8 if frame else 0
    stop = heads[frame * 9 + 8] * 8
    if row == stop:
        return -2  # without records, which a batch for itself has to tell
    time_ms = rows[row + 1]
    while row < stop:
        if not rows[row + 2] or rows[row + 1] != time_ms:
            return -1
        row += 8
    return time_ms if time_ms >= 0 else -1


def write_rows(
    data: memoryview,
    rows: memoryview,
    headers: memoryview,
    first: int,
    stop: int,
    state: memoryview,
    out: memoryview,
    position: int,
) -> int:
    """Write rows as records of a batch.

    Args:
        data, rows, headers: of a table.
        first, stop: the number of the first row, and of the first behind the last.
        state: the offset of the batch, from that of the table; the time that deltas are counted from; the headers
            before the first row. Gets the latest time of any record at 1, the headers before the row behind the last
            at 2, and how many records have the time of their append at 3.
        out: where they go: room for their content, RECORD_BYTES_MAX for each record and 10 for each header.
        position: where to begin in there.

    Returns:
        The position behind them.
    """
    appended = 0
    header = state[2] * 4
    first_ms = state[1]
    latest_ms = first_ms
    for row in range(first * 8, stop * 8, 8):
        delta = _zigzag(rows[row] - state[0])
        time_ms = rows[row + 1]
        if time_ms > latest_ms:
            latest_ms = time_ms
        appended += rows[row + 2]
        time_delta = _zigzag(time_ms - first_ms)
        key_bytes = rows[row + 4]
        value_bytes = rows[row + 6]
        header_count = rows[row + 7]
        size = 1 + _varint_bytes(time_delta) + _varint_bytes(delta)
        size += _field_bytes(key_bytes) + _field_bytes(value_bytes) + _varint_bytes(_zigzag(header_count))
        for at in range(header, header + header_count * 4, 2):
            size += _field_bytes(headers[at + 1])
        position = _put_varint(out, position, _zigzag(size))
        out[position] = 0  # attributes
        position = _put_varint(out, position + 1, time_delta)
        position = _put_varint(out, position, delta)
        position = _put_field(out, position, data, rows[row + 3], key_bytes)
        position = _put_field(out, position, data, rows[row + 5], value_bytes)
        position = _put_varint(out, position, _zigzag(header_count))
        for at in range(header, header + header_count * 4, 2):
            position = _put_field(out, position, data, headers[at], headers[at + 1])
        header += header_count * 4
    state[1] = latest_ms
    state[2] = header >> 2
    state[3] = appended
    return position


def _field_bytes(size: int) -> int:
    """Bytes that a key, a value or a part of a header takes with its length."""
    return _varint_bytes(_zigzag(size)) + (size if size > 0 else 0)


def _put_field(out: memoryview, position: int, data: memoryview, start: int, size: int) -> int:
    """Write a key, a value or a part of a header with its length; gives the position behind it."""
    position = _put_varint(out, position, _zigzag(size))
    for at in range(size):
        out[position + at] = data[start + at]
    return position + size if size > 0 else position


def _put_varint(out: memoryview, position: int, value: int) -> int:
    while value > 127:
        out[position] = value & 127 | 128
        position += 1
        value >>= 7
    out[position] = value
    return position + 1


def _varint_bytes(value: int) -> int:
    count = 1
    while value > 127:
        value >>= 7
        count += 1
    return count


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1
