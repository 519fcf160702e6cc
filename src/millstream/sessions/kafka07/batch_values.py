"""The hot loop of translating a Kafka batch: the value of every record as a message.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `batch_values.pxd`. The tests hold both to the same answers, and to those
of `millstream.wire.kafka.records`, which has the layout of a record.
"""

__all__ = ["lay_out"]


def lay_out(body: memoryview, count: int, magic: int, out: memoryview | None) -> int:
    """Write a message for each record, without its checksum; or tell how many bytes that takes.

    Args:
        body: the records of a batch, decompressed.
        count: how many there are.
        magic: of the messages, 0 or 1.
        out: zeros, as many as the messages take; None to be told how many.

    Returns:
        Bytes of all messages; -1 if the body is not that of a batch.
    """
    position = size = 0
    end = len(body)
    head = 9 + magic
    for _ in range(count):
        # Its length and attributes; the deltas of its time and offset; its key; the length of its value.
        stop = end
        length = 0
        for field in range(5):
            value = shift = 0
            byte = 128
            while byte >= 128:
                if position >= stop or shift > 63:
                    return -1
                byte = body[position]
                position += 1
                value |= (byte & 127) << shift
                shift += 7
            length = value >> 1 if value & 1 == 0 else 0
            if length < 0:  # which C makes of what does not fit
                return -1
            if field == 0:
                if length > end - position:
                    return -1
                stop = position + length
                position += 1  # the attributes
            elif field == 3:
                if length > stop - position:
                    return -1
                position += length
        if length > stop - position:
            return -1
        if out is not None:
            value = length + head - 4
            out[size] = value >> 24
            out[size + 1] = value >> 16 & 255
            out[size + 2] = value >> 8 & 255
            out[size + 3] = value & 255
            out[size + 4] = magic
            out[size + head : size + head + length] = body[position : position + length]
        size += head + length
        position = stop
    return size
