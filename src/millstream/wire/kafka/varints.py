"""The varints of records, as hot loops read them.

Compiled loops have this from `varints.pxd`, inlined; Python runs what stands here.
"""

__all__ = ["take_varint"]


def take_varint(data: memoryview, position: int, stop: int) -> tuple[int, int]:
    """Read a zigzag varint of 64 bits at most.

    Args:
        data: where it stands.
        position: where it begins.
        stop: where it has to end, at the latest.

    Returns:
        The position behind it, -1 if it does not end in time or has more bits; and its value.
    """
    value = shift = 0
    byte = 128
    while byte >= 128:
        if position >= stop or shift > 63:
            return -1, 0
        byte = data[position]
        if shift == 63 and byte > 1:
            return -1, 0
        position += 1
        value |= (byte & 127) << shift
        shift += 7
    return position, -(value >> 1) - 1 if value & 1 else value >> 1
