"""The hot loop of taking a batch of dialect D: where each message stands, if all of them are as they should be.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `message_walk.pxd`. Read by Python it is slower than what it is there to
spare, so that then it is not used: `COMPILED` tells. It says no more than that something is wrong: what that is, the
reference in `millstream.wire.iggy.incoming` finds out.
"""

from typing import Final

__all__ = ["COMPILED", "walk"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""


def walk(
    batch: memoryview,
    position: int,
    count: int,
    payload_bytes_max: int,
    headers_bytes_max: int,
    starts: memoryview,
    checksums: memoryview,
) -> int:
    """Note where the messages of a batch begin, and their checksums as they were sent.

    Args:
        batch: the batch with its header.
        position: of its first message.
        count: of its messages.
        payload_bytes_max, headers_bytes_max: of one message.
        starts: room for one more than `count` numbers of 64 bits; the last is where the last message ends.
        checksums: room for 8 bytes for each message.

    Returns:
        How many messages have headers; -1 if a message is cut off, is not the one that its place says, has no payload
        or one that is too large, has headers that are too large or a reserved field that is not 0, or if something
        follows the last one.
    """
    end = len(batch)
    with_headers = 0
    for index in range(count):
        starts[index] = position
        if end - position < 48:
            return -1
        for at in range(8):
            checksums[8 * index + at] = batch[position + at]
        delta = headers = payload = 0
        for at in range(3, -1, -1):
            delta = delta << 8 | batch[position + 24 + at]
            headers = headers << 8 | batch[position + 32 + at]
            payload = payload << 8 | batch[position + 36 + at]
        if delta != index or payload < 1 or payload > payload_bytes_max or headers > headers_bytes_max:
            return -1
        for at in range(position + 40, position + 48):
            if batch[at] != 0:
                return -1
        if headers > 0:
            with_headers += 1
        position += 48 + payload + headers
        if position > end:
            return -1
    starts[count] = position
    return with_headers if position == end else -1
