"""The hot loop of checking a batch: whether every record in its body is where the header says.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `record_places.pxd`. The tests hold both to the same answers.
"""

__all__ = ["misplaced"]


def misplaced(body: memoryview, count: int) -> int:
    """Look for a record that is not in its place.

    Args:
        body: the records of a batch, decompressed.
        count: how many there are to be.

    Returns:
        The index of the first record that does not fit the body or whose offset delta is not its index; `count` if
        there is more behind the last one; -1 if all is well.
    """
    position = 0
    end = len(body)
    for index in range(count):
        if position + 1 >= end:
            return index
        length = body[position]
        position += 1
        if length >= 128:
            byte = body[position]
            position += 1
            length = length & 127 | (byte & 127) << 7
            shift = 14
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
        field = position + 1  # behind the attributes
        while field < stop and body[field] >= 128:  # the timestamp delta
            field += 1
        field += 1
        if field >= stop:
            return index
        delta = body[field]
        if delta >= 128:
            shift = 7
            byte = delta
            delta &= 127
            while byte >= 128:
                field += 1
                if shift > 28 or field >= stop:
                    return index
                byte = body[field]
                delta |= (byte & 127) << shift
                shift += 7
        if delta != index << 1:
            return index
        position = stop
    return -1 if position == end else count
