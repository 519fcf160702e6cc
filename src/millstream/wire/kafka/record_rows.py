"""The hot loops between the records of a batch and the rows of `millstream.model.record_table`.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `record_rows.pxd`. Read by Python it is slower than what goes by way of
`Record`, so that then it is not used: `COMPILED` tells. The tests hold both to the same answers, and to those of
`millstream.wire.kafka.records`, which has the layout of a record.
"""

from typing import Final

__all__ = ["COMPILED", "OUT_OF_THE_ORDINARY", "RECORD_BYTES_MAX", "ROOM_FOR_HEADERS", "read_rows", "write_rows"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
OUT_OF_THE_ORDINARY: Final = -1
"""What `read_rows` gives for what it leaves to others."""
ROOM_FOR_HEADERS: Final = -2
"""What `read_rows` gives if there are more headers than it has room for."""
RECORD_BYTES_MAX: Final = 48
"""Bytes of a record beside its content, or more; a header has 10 at most."""


def read_rows(
    body: memoryview,
    count: int,
    first_ms: int,
    append_ms: int,
    append_time: int,
    rows: memoryview,
    headers: memoryview,
    totals: memoryview,
) -> int:
    """Fill in the rows of a batch.

    Args:
        body: its records, decompressed.
        count: how many there are.
        first_ms: its first timestamp, which the deltas of its records add to; at most 2**60 from 0.
        append_ms: the time of all records if `append_time` is 1.
        append_time: whether the server set the time.
        rows: room for the rows of all records.
        headers: room for headers.
        totals: is added to: bytes of content, bytes of values, headers; what stands behind them is used.

    Returns:
        The number of records; OUT_OF_THE_ORDINARY if anything does not fit, is not in its place, or means anything
        else than it seems to; ROOM_FOR_HEADERS.
    """
    position = row = header = 0
    before = -1
    for _ in range(count):
        rows[row + 1] = append_ms
        rows[row + 2] = append_time
        position = _read_record(body, position, first_ms, rows, row, totals)
        if position < 0 or rows[row] <= before:
            return -1
        before = rows[row]
        header = _read_headers(body, position, totals[3], rows[row + 7], headers, header, totals)
        if header < 0:
            return header
        position = totals[3]
        row += 8
    totals[2] += header >> 2
    return count


def _read_record(
    body: memoryview, position: int, first_ms: int, rows: memoryview, row: int, totals: memoryview
) -> int:
    """Fill in one row; gives where its headers are, -1 if it does not fit. Where it ends goes to totals, at 3."""
    stop = len(body)
    # Its length and attributes; the deltas of its time and offset; its key, its value; the count of its headers.
    for field in range(6):
        value = shift = 0
        byte = 128
        while byte >= 128:
            if position >= stop or shift > 63:
                return -1
            byte = body[position]
            if shift == 63 and byte > 1:
                return -1
            position += 1
            value |= _shifted(byte & 127, shift)
            shift += 7
        size = _unzigzag(value)
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
        value = shift = 0
        byte = 128
        while byte >= 128:
            if position >= stop or shift > 28:
                return -1
            byte = body[position]
            position += 1
            value |= _shifted(byte & 127, shift)
            shift += 7
        size = _unzigzag(value)
        if size > stop - position:
            return -1
        if field & 1 == 0:
            if size < 0:
                size = 0  # a name is never null
            elif not _is_text(body, position, position + size):
                return -1
        headers[header] = position
        headers[header + 1] = size if size >= 0 else -1
        header += 2
        if size > 0:
            position += size
            totals[0] += size
    return header


def _is_text(body: memoryview, position: int, stop: int) -> bool:
    """Whether some bytes are UTF-8."""
    for at in range(position, stop):
        if body[at] > 127:
            return _is_unicode(bytes(body[position:stop]))
    return True


def _is_unicode(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def write_rows(
    data: memoryview, rows: memoryview, headers: memoryview, count: int, times: memoryview, out: memoryview
) -> int:
    """Write rows as records of a batch.

    Args:
        data, rows, headers: of a table.
        count: of its rows.
        times: gets the latest time of any record, and how many have the time of their append; before that it has the
            time that deltas are counted from.
        out: where they go: room for their content, RECORD_BYTES_MAX for each record and 10 for each header.

    Returns:
        Bytes written.
    """
    position = row = header = appended = 0
    first_ms = times[0]
    latest_ms = first_ms
    for _ in range(count):
        delta = _zigzag(rows[row])
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
        row += 8
    times[0] = latest_ms
    times[1] = appended
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


def _unzigzag(value: int) -> int:
    return -(value >> 1) - 1 if value & 1 else value >> 1


def _shifted(value: int, shift: int) -> int:
    return value << shift
