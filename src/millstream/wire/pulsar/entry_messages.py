"""The hot loop that puts the heads of MESSAGE frames before many small entries.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `entry_messages.pxd`. The tests hold both to the same bytes, and to those
of `millstream.wire.pulsar.message_heads`.
"""

from typing import Final

__all__ = ["COMPILED", "write_messages"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""


def write_messages(
    entries: memoryview,
    starts: memoryview,
    entry_ids: memoryview,
    of_consumer: bytes,
    of_ledger: bytes,
    behind: bytes,
    of_epoch: bytes,
    out: memoryview,
) -> int:
    """Write entries as MESSAGE frames.

    Args:
        entries: their bytes.
        starts: where each of them begins, and where the last one ends.
        entry_ids: the id of each.
        of_consumer: the fields of the command before its message id, and the tag of that: less than 32 bytes, as all
            of these.
        of_ledger: the field of the message id before that of the entry, and the tag of that.
        behind: the fields of the message id behind it.
        of_epoch: the fields of the command behind its message id.
        out: room for the entries, and for 128 bytes each.

    Returns:
        Bytes written.
    """
    position = 0
    for index in range(len(entry_ids)):
        size = starts[index + 1] - starts[index]
        id_bytes = len(of_ledger) + _varint_bytes(entry_ids[index]) + len(behind)
        body_bytes = len(of_consumer) + 1 + id_bytes + len(of_epoch)
        _put_size(out, position, 8 + body_bytes + size)
        _put_size(out, position + 4, 4 + body_bytes)
        out[position + 8] = 8  # the type of the command, MESSAGE, and the field with it
        out[position + 9] = 9
        out[position + 10] = 74
        out[position + 11] = body_bytes
        position = _put(out, position + 12, of_consumer)
        out[position] = id_bytes
        position = _put(out, position + 1, of_ledger)
        position = _put_varint(out, position, entry_ids[index])
        position = _put(out, position, behind)
        position = _put(out, position, of_epoch)
        start = starts[index]
        for at in range(size):
            out[position + at] = entries[start + at]
        position += size
    return position


def _put(out: memoryview, position: int, data: bytes) -> int:
    for at in range(len(data)):
        out[position + at] = data[at]
    return position + len(data)


def _put_size(out: memoryview, position: int, size: int) -> None:
    out[position] = size >> 24
    out[position + 1] = size >> 16 & 255
    out[position + 2] = size >> 8 & 255
    out[position + 3] = size & 255


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
