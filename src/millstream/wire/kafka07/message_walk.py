"""The hot loop over a message set: passing over plain messages whose checksums are right, or setting them.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `message_walk.pxd`. Compiled, the checksum is computed here, 16 bytes a
step; in Python it is zlib's. The tests hold both to the same answers.
"""

from array import array
from typing import Final
from zlib import crc32

__all__ = ["COMPILED", "pass_over", "seal"]

COMPILED: Final = not __file__.endswith(".py")
_POLYNOMIAL: Final = 0xEDB88320


def _tables() -> "array[int]":
    """Sixteen tables of 256 entries: what a byte adds to the checksum 0 to 15 bytes further on."""
    tables = array("I", bytes(4 * 16 * 256))
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ _POLYNOMIAL if value & 1 else value >> 1
        tables[byte] = value
    for entry in range(256, 16 * 256):
        before = tables[entry - 256]
        tables[entry] = tables[before & 255] ^ (before >> 8)
    return tables


_TABLES: Final = _tables()


def pass_over(body: memoryview, position: int, end: int, payload_bytes_max: int) -> tuple[int, int]:
    """Pass over messages that are whole, not compressed, not too large and undamaged.

    Args:
        body: a message set.
        position: where a message begins.
        end: where to stop; not behind the end of the set.
        payload_bytes_max: bytes of the largest payload that is passed over.

    Returns:
        Where it stopped, before `end` or the first message that is anything else, and how many were passed over.
    """
    return _pass_over(body, position, end, payload_bytes_max, _TABLES, COMPILED, None)


def seal(messages: bytearray) -> None:
    """Set the checksums of a set of plain messages that is complete but for them."""
    _pass_over(memoryview(messages), 0, len(messages), len(messages), _TABLES, COMPILED, memoryview(messages))


def _pass_over(
    body: memoryview,
    position: int,
    end: int,
    payload_bytes_max: int,
    tables: "array[int]",
    compiled: bool,
    sealed: memoryview | None,
) -> tuple[int, int]:
    count = 0
    while end - position >= 9:  # a message of magic 0 without payload
        length = body[position] << 24 | body[position + 1] << 16 | body[position + 2] << 8 | body[position + 3]
        start = position + 9
        if body[position + 4] == 1:
            start += 1
            if body[position + 5] & 3:
                break
        elif body[position + 4] != 0:
            break
        stop = position + 4 + length
        if stop > end or stop < start or stop - start > payload_bytes_max:
            break
        if compiled:
            at = start
            crc = 0xFFFFFFFF
            while stop - at >= 16:
                crc ^= body[at] | body[at + 1] << 8 | body[at + 2] << 16 | body[at + 3] << 24
                crc = (
                    tables[3840 + (crc & 255)]
                    ^ tables[3584 + (crc >> 8 & 255)]
                    ^ tables[3328 + (crc >> 16 & 255)]
                    ^ tables[3072 + (crc >> 24)]
                    ^ tables[2816 + body[at + 4]]
                    ^ tables[2560 + body[at + 5]]
                    ^ tables[2304 + body[at + 6]]
                    ^ tables[2048 + body[at + 7]]
                    ^ tables[1792 + body[at + 8]]
                    ^ tables[1536 + body[at + 9]]
                    ^ tables[1280 + body[at + 10]]
                    ^ tables[1024 + body[at + 11]]
                    ^ tables[768 + body[at + 12]]
                    ^ tables[512 + body[at + 13]]
                    ^ tables[256 + body[at + 14]]
                    ^ tables[body[at + 15]]
                )
                at += 16
            while at < stop:
                crc = crc >> 8 ^ tables[(crc ^ body[at]) & 255]
                at += 1
            crc ^= 0xFFFFFFFF
        else:
            crc = crc32(body[start:stop])
        at = start - 4
        if sealed is not None:
            sealed[at] = crc >> 24
            sealed[at + 1] = crc >> 16 & 255
            sealed[at + 2] = crc >> 8 & 255
            sealed[at + 3] = crc & 255
        elif crc != body[at] << 24 | body[at + 1] << 16 | body[at + 2] << 8 | body[at + 3]:
            break
        position = stop
        count += 1
    return position, count
