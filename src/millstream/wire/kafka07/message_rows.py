"""The hot loops between plain messages of Kafka 0.7 and the rows of `millstream.model.record_table`.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `message_rows.pxd`. Read by Python it is slower than what goes by way of
`Record`, so that then it is not used: `COMPILED` tells. The tests hold both to the same answers, and to those of
`millstream.wire.kafka07.messages`, which has the layout of a message.
"""

from typing import Final

__all__ = ["COMPILED", "plain_run", "read_rows", "write_rows"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""


def plain_run(body: memoryview, position: int, end: int) -> int:
    """Where the first message from a position on begins that is not plain: compressed, damaged or cut off.

    It is the end of the set, which is given, if there is none. Checksums are not looked at.
    """
    while end - position >= 9:
        length = body[position] << 24 | body[position + 1] << 16 | body[position + 2] << 8 | body[position + 3]
        magic = body[position + 4]
        if magic > 1 or (magic == 1 and body[position + 5] & 3):
            break
        if length < 5 + magic or length > end - position - 4:
            break
        position += 4 + length
    return position


def read_rows(body: memoryview, heads: memoryview, frames: int, rows: memoryview, totals: memoryview) -> int:
    """Fill in the rows of plain messages.

    Args:
        body: the bodies of some frames.
        heads: of the frames, which say where in there each body stands; see `millstream.model.frame_span`. They are
            told how many messages there are up to the end of each.
        frames: how many there are.
        rows: room for rows.
        totals: is added to: bytes of content, bytes of values.

    Returns:
        The number of messages; -1 if some are not plain, or not as many as the heads say.
    """
    row = values = 0
    room = len(rows)
    for head in range(0, frames * 9, 9):
        position = heads[head + 1]
        stop = heads[head + 2]
        if plain_run(body, position, stop) != stop:
            return -1
        count = 0
        while position < stop:
            if row >= room:
                return -1
            length = body[position] << 24 | body[position + 1] << 16 | body[position + 2] << 8 | body[position + 3]
            size = length - 5 - body[position + 4]
            position += 4 + length
            rows[row] = heads[head] + count
            rows[row + 1] = heads[head + 6]
            rows[row + 2] = 1
            rows[row + 3] = 0
            rows[row + 4] = -1
            rows[row + 5] = position - size
            rows[row + 6] = size
            rows[row + 7] = 0
            values += size
            count += 1
            row += 8
        if count != heads[head + 3]:
            return -1
        heads[head + 8] = row >> 3
    totals[0] += values
    totals[1] += values
    return row >> 3


def write_rows(data: memoryview, rows: memoryview, count: int, magic: int, out: memoryview) -> int:
    """Write the values of rows as messages, without their checksums.

    Args:
        data, rows: of a table.
        count: of its rows.
        magic: 0 or 1.
        out: zeros: room for their values, and for a head each.

    Returns:
        Bytes written.
    """
    position = row = 0
    head = 9 + magic
    for _ in range(count):
        start = rows[row + 5]
        size = rows[row + 6]
        if size < 0:
            size = 0
        length = size + head - 4
        out[position] = length >> 24
        out[position + 1] = length >> 16 & 255
        out[position + 2] = length >> 8 & 255
        out[position + 3] = length & 255
        out[position + 4] = magic
        position += head
        for at in range(size):
            out[position + at] = data[start + at]
        position += size
        row += 8
    return position
