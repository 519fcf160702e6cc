"""The hot loop of checking a batch: whether every record in its body is whole, and where the header says.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `record_places.pxd`. The tests hold both to the same answers.
"""

__all__ = ["misplaced"]


def misplaced(body: memoryview, count: int) -> int:
    """Look for a record that is not in its place, or whose fields do not fill it exactly.

    Args:
        body: the records of a batch, decompressed.
        count: how many there are to be.

    Returns:
        The index of the first record that does not fit the body, whose offset delta is not its index, or whose key,
        value and headers do not fit its length; `count` if there is more behind the last one; -1 if all is well.
    """
    position = 0
    end = len(body)
    for index in range(count):
        # The length of the record.
        length = shift = 0
        byte = 128
        while byte >= 128:
            if shift > 28 or position >= end:
                return index
            byte = body[position]
            position += 1
            length |= (byte & 127) << shift
            shift += 7
        stop = position + (length >> 1)
        if length & 1 or stop > end:
            return index
        if not _whole(body, position, stop, index):
            return index
        position = stop
    return -1 if position == end else count


def _whole(body: memoryview, position: int, stop: int, index: int) -> bool:
    """Whether the bytes from a position up to `stop` are exactly the record with the offset delta `index`."""
    # Attributes and timestamp delta.
    position += 1
    while position < stop and body[position] >= 128:
        position += 1
    position += 1
    # The offset delta.
    delta = shift = 0
    byte = 128
    while byte >= 128:
        if shift > 28 or position >= stop:
            return False
        byte = body[position]
        position += 1
        delta |= (byte & 127) << shift
        shift += 7
    if delta != index << 1:
        return False
    # Key and value, the count of headers, and two lengths for each header: as many as the count is, in zigzag.
    lengths = 2
    counted = False
    while lengths > 0 or not counted:
        value = shift = 0
        byte = 128
        while byte >= 128:
            if shift > 28 or position >= stop:
                return False
            byte = body[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
        if lengths > 0:
            lengths -= 1
            if value & 1 == 0:
                position += value >> 1
            elif value != 1:  # only -1, null, is a length below zero
                return False
        elif value & 1:
            return False
        else:
            counted = True
            lengths = value
    return position == stop
