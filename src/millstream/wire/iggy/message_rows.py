"""The hot loop from the messages of a stored batch to the rows of `millstream.model.record_table`.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `message_rows.pxd`. Read by Python it is slower than what goes by way of
`Record`, so that then it is not used: `COMPILED` tells. The tests hold both to the same answers, and to those of
`millstream.wire.iggy.stored`, which says what becomes of which field.
"""

from typing import Final

from millstream.wire.texts import is_text

__all__ = ["COMPILED", "KIND_BYTES", "OUT_OF_THE_ORDINARY", "PLACES", "ROOM_MISSING", "TEXT_BYTES", "read_rows"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
OUT_OF_THE_ORDINARY: Final = -1
"""What `read_rows` gives for what it leaves to others."""
ROOM_MISSING: Final = -2
"""What `read_rows` gives if there are more headers than it has room for."""
PLACES: Final = 6
"""Numbers that say where the texts stand that become names of headers."""
KIND_BYTES: Final = 8
"""Bytes of the place of the name of a kind: how many it has, and the name."""
TEXT_BYTES: Final = 52
"""Bytes of an id in hexadecimal and of a time in decimal."""


def read_rows(
    data: memoryview,
    heads: memoryview,
    frames: int,
    places: memoryview,
    rows: memoryview,
    headers: memoryview,
    totals: memoryview,
) -> int:
    """Fill in the rows of the messages of some frames.

    Args:
        data: the frames, texts behind them, and room for those that are made.
        heads: of the frames, which say where in there each body stands; see `millstream.model.frame_span`. They are
            told how many messages there are up to the end of each.
        frames: how many there are.
        places: where the names of the headers stand for the id, the producer's time and the kinds, where those of
            the kinds are, KIND_BYTES each, and where the room for texts begins and ends. That is brought up to date.
        rows: room for the rows of all messages.
        headers: room for headers.
        totals: is added to: bytes of content, bytes of values, headers.

    Returns:
        The number of messages; OUT_OF_THE_ORDINARY if they do not fill a frame, or a header is not what nearly all
        are; ROOM_MISSING.
    """
    row = header = 0
    for head in range(0, frames * 9, 9):
        position = heads[head + 1] + 4
        stop = heads[head + 2]
        append_ms = heads[head + 6]
        if position > stop or not -1152921504606846976 <= append_ms <= 1152921504606846976:  # 2**60
            return -1
        layout = data[position - 4]
        origin = 0
        if layout == 4:
            origin = _batch_origin(data, position, stop)
            position += 256
        if origin < 0 or layout < 1 or layout > 4:
            return -1
        for index in range(heads[head + 3]):
            rows[row] = heads[head] + index
            following = _place(data, position, stop, layout, origin, append_ms, rows, row)
            if following < 0:
                return -1
            if header + 8 > len(headers) or places[4] + 52 > places[5]:
                return -2
            first = header
            block_at = rows[row + 3]
            block_bytes = rows[row + 4]
            header = _put_own(data, position + (0 if layout == 1 else 8), rows[row + 7], places, headers, header)
            rows[row + 3] = 0
            rows[row + 4] = -1
            if block_bytes:
                header = _put_headers(
                    data, block_at, block_at + block_bytes, layout > 2, places, rows, row, headers, header
                )
                if header < 0:
                    return header
            rows[row + 7] = (header - first) >> 2
            _count_content(rows, row, headers, first, header, totals)
            position = following
            row += 8
        if position != stop:
            return -1
        heads[head + 8] = row >> 3
    totals[2] += header >> 2
    return row >> 3


def _batch_origin(data: memoryview, position: int, stop: int) -> int:
    """When the first message of a BATCH was sent, in us, which all others tell from; -1 if that makes no sense."""
    if stop - position < 256:
        return -1
    origin = _number(data, position + 24, 8)
    return origin if origin <= 1152921504606846976 else -1  # 2**60


def _count_content(
    rows: memoryview, row: int, headers: memoryview, first: int, header: int, totals: memoryview
) -> None:
    """Add the content of a message with its headers to the totals."""
    for at in range(first, header, 4):
        totals[0] += headers[at + 1] + headers[at + 3]
    totals[0] += rows[row + 6]
    if rows[row + 4] > 0:
        totals[0] += rows[row + 4]
    totals[1] += rows[row + 6]


def _place(
    data: memoryview,
    position: int,
    stop: int,
    layout: int,
    batch_origin: int,
    append_ms: int,
    rows: memoryview,
    row: int,
) -> int:
    """Find out when a message was sent and where its parts are.

    Where its headers begin and their bytes go where those of the key will be, its producer's time in us to where the
    number of headers will be.

    Returns:
        The position behind the message; -1 if it does not fit.
    """
    origin = 0
    if layout == 1:  # PLAIN
        if stop - position < 24:
            return -1
        block_bytes = _number(data, position + 16, 4)
        block_at = position + 20
        if block_bytes > stop - position - 24:
            return -1
        payload_at = block_at + block_bytes + 4
        payload_bytes = _number(data, payload_at - 4, 4)
        position = payload_at + payload_bytes
    else:
        payload_at = position + (56 if layout == 2 else 64 if layout == 3 else 48)
        if payload_at > stop:
            return -1
        at = position + (48 if layout < 4 else 32)
        block_bytes = _number(data, at, 4)
        payload_bytes = _number(data, at + 4, 4)
        block_at = payload_at + payload_bytes
        origin = _number(data, position + 40, 8) if layout < 4 else batch_origin + _number(data, position + 28, 4)
        position = block_at + block_bytes
    if position > stop or origin < 0 or origin > 1152921504606846976:  # 2**60
        return -1
    rows[row + 1] = origin // 1000 if origin >= 1000 else append_ms
    rows[row + 2] = 0 if origin else 1
    rows[row + 3] = block_at
    rows[row + 4] = block_bytes
    rows[row + 5] = payload_at
    rows[row + 6] = payload_bytes
    rows[row + 7] = origin
    return position


def _put_own(data: memoryview, id_at: int, origin: int, places: memoryview, headers: memoryview, header: int) -> int:
    """Make headers of the id and of the producer's time, if there is one; gives the place behind them."""
    text = places[4]
    headers[header] = places[0]
    headers[header + 1] = 7
    headers[header + 2] = text
    headers[header + 3] = 32
    for at in range(15, -1, -1):
        byte = data[id_at + at]
        data[text] = _digit(byte >> 4)
        data[text + 1] = _digit(byte & 15)
        text += 2
    header += 4
    if origin:
        size = 1
        rest = origin
        while rest > 9:
            rest //= 10
            size += 1
        headers[header] = places[1]
        headers[header + 1] = 21
        headers[header + 2] = text
        headers[header + 3] = size
        header += 4
        text += size
        at = text
        while size > 0:
            at -= 1
            data[at] = 48 + origin % 10
            origin //= 10
            size -= 1
    places[4] = text
    return header


def _put_headers(
    data: memoryview,
    position: int,
    stop: int,
    kinded_keys: bool,
    places: memoryview,
    rows: memoryview,
    row: int,
    headers: memoryview,
    header: int,
) -> int:
    """Take the headers of a message; gives the place behind them, -1 and -2 as `read_rows`.

    The kinds of all of them are a header before them; the one that is the key of a record goes there.
    """
    first = header
    text = places[4]
    header += 4
    while position < stop:
        if header + 4 > len(headers) or places[4] + 8 > places[5]:
            return -2
        if kinded_keys:
            if data[position] != 2:  # no text
                return -1
            position += 1
        if stop - position < 10:
            return -1
        size = _number(data, position, 4)
        position += 4
        if size < 1 or size > 255 or size > stop - position - 5 or not is_text(data, position, position + size):
            return -1
        name_at = position
        position += size
        kind = data[position]
        value_bytes = _number(data, position + 1, 4)
        position += 5
        if value_bytes < 1 or value_bytes > 255 or value_bytes > stop - position or kind < 1 or kind > 15:
            return -1
        if size == 14 and _is_key(data, name_at):
            rows[row + 3] = position
            rows[row + 4] = value_bytes
        else:
            headers[header] = name_at
            headers[header + 1] = size
            headers[header + 2] = position
            headers[header + 3] = value_bytes
            header += 4
            if places[4] > text:
                data[places[4]] = 44  # a comma
                places[4] += 1
            kind_at = places[3] + kind * 8
            for at in range(data[kind_at]):
                data[places[4] + at] = data[kind_at + 1 + at]
            places[4] += data[kind_at]
        position += value_bytes
    if places[4] == text:
        return first
    headers[first] = places[2]
    headers[first + 1] = 10
    headers[first + 2] = text
    headers[first + 3] = places[4] - text
    return header


def _is_key(data: memoryview, position: int) -> bool:
    """Whether 14 bytes are "millstream.key"."""
    return bytes(data[position : position + 14]) == b"millstream.key"


def _number(data: memoryview, position: int, size: int) -> int:
    """A number of some bytes, little-endian; below 0 if it has more than 63 bits, which is as good as wrong."""
    value = 0
    for at in range(position + size - 1, position - 1, -1):
        if value > 36028797018963967:  # 2**55 - 1
            return -1
        value = value << 8 | data[at]
    return value


def _digit(value: int) -> int:
    """A digit of a hexadecimal number."""
    return value + 48 if value < 10 else value + 87
