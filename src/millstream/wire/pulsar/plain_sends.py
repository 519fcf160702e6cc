"""The hot loops of taking messages: reading a SEND and its metadata, and writing receipts, without protobuf messages.

Only what nearly all messages are made of is read here. Whatever is out of the ordinary (chunks, transactions,
encryption, anything that may be wrong) is no plain message, and protobuf has the word: it alone refuses.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `plain_sends.pxd`. Read by Python it is slower than protobuf, so that then
it is not used: `COMPILED` tells.

Source: Pulsar binary protocol specification 3.0, "Message commands"; Protocol Buffers, "Encoding".
"""

from typing import Final

__all__ = [
    "BATCH_COUNT",
    "CHECKSUM",
    "COMPILED",
    "HIGHEST_SEQUENCE_ID",
    "IS_BATCH",
    "PRODUCER_ID",
    "PUBLISH_TIME",
    "RECEIPT_BYTES_MAX",
    "ROOM_BYTES",
    "SEQUENCE_ID",
    "VALUES",
    "read_plain_send",
    "write_receipts",
]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
VALUES: Final = 64
"""Numbers that `read_plain_send` may write. Those below say where."""
PRODUCER_ID: Final = 1
SEQUENCE_ID: Final = 2
HIGHEST_SEQUENCE_ID: Final = 6
PUBLISH_TIME: Final = 35
BATCH_COUNT: Final = 43
"""Messages in the entry; 1 if it is no batch."""
CHECKSUM: Final = 10
"""What the entry says is its checksum."""
IS_BATCH: Final = 8
ROOM_BYTES: Final = 9
"""Bytes of the payload, unpacked if it is compressed, as the metadata say."""

RECEIPT_BYTES_MAX: Final = 80
"""Bytes of the frame of a SEND_RECEIPT at most."""


def read_plain_send(frame: memoryview, values: memoryview) -> int:
    """Read a SEND with a checksum, if it is a plain one.

    Args:
        frame: the frame behind its total size.
        values: room for VALUES numbers of 64 bits; the field n of the command goes to n, field n of the metadata to
            32 + n, and those named above are always written.

    Returns:
        The position of the entry in the frame; -1 if the frame is no SEND, or not a plain one.
    """
    end = len(frame)
    if end < 18 or frame[0] or frame[1] or frame[2] or frame[3] > 127:
        return -1
    entry = 4 + frame[3]
    # BaseCommand: its type, and the field of that number with the rest of the command in it.
    if frame[4] != 8 or frame[5] != 6 or frame[6] != 50 or frame[7] + 8 != entry or entry + 10 > end:
        return -1
    if frame[entry] != 0x0E or frame[entry + 1] != 0x01:
        return -1
    values[6] = 0
    # producer_id, sequence_id, num_messages and highest_sequence_id, of which the first two must be there.
    seen = _scan(frame, 8, entry, values, 0, 0x4E, 0, 0, 0)
    if seen < 0 or seen & 0x06 != 0x06:
        return -1
    position = entry + 10
    if frame[entry + 6] or frame[entry + 7] > 15:
        return -1
    stop = position + (frame[entry + 7] << 16 | frame[entry + 8] << 8 | frame[entry + 9])
    if stop > end:
        return -1
    values[40] = values[41] = values[44] = 0
    values[43] = 1
    # Numbers: sequence_id, publish_time, compression, uncompressed_size, num_messages_in_batch, event_time,
    # partition_key_b64_encoded, deliver_at_time, highest_sequence_id, null_value and null_partition_key. Texts:
    # producer_name and replicated_from; bytes: partition_key, schema_version and ordering_key; pairs: properties.
    seen = _scan(frame, position, stop, values, 32, 0x430A1B0C, 0x22, 0x50040, 0x10)
    if seen < 0 or seen & 0x0E != 0x0E:
        return -1
    room = end - stop
    if values[40]:
        if values[40] > 4 or values[41] > 0xFFFFFFFF:
            return -1
        room = values[41]
    checksum = 0
    for at in range(entry + 2, entry + 6):
        checksum = checksum << 8 | frame[at]
    values[10] = checksum
    values[9] = room
    values[8] = seen >> 11 & 1
    return entry


def _scan(
    frame: memoryview,
    position: int,
    stop: int,
    values: memoryview,
    at: int,
    numbers: int,
    texts: int,
    blobs: int,
    pairs: int,
) -> int:
    """Read the fields of a message.

    Args:
        frame, position, stop: where it stands.
        values, at: field n of those that are numbers goes to at + n.
        numbers, texts, blobs, pairs: bit n if field n may be there as a number, a text of ASCII, bytes, or a key and
            a value.

    Returns:
        Bit n if field n is there; -1 if there is another field, or one that is not whole, or a number over 63 bits.
    """
    seen = 0
    while position < stop:
        key = frame[position]
        position += 1
        if key > 127:
            if position >= stop or frame[position] > 1:
                return -1
            key = (key & 127) | frame[position] << 7
            position += 1
        value = shift = 0
        byte = 128
        while byte > 127:
            if shift > 56 or position >= stop:
                return -1
            byte = frame[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
        number = key >> 3
        if key & 7 == 0:
            if not numbers >> number & 1:
                return -1
            values[at + number] = value
        elif key & 7 != 2 or value > stop - position:
            return -1
        elif texts >> number & 1:
            behind = position + value
            while position < behind:
                if frame[position] > 127:
                    return -1
                position += 1
        elif blobs >> number & 1:
            position += value
        elif pairs >> number & 1:
            if _scan(frame, position, position + value, values, at, 0, 0, 0x06, 0) != 0x06:
                return -1
            position += value
        else:
            return -1
        seen |= 1 << number
    return seen


def write_receipts(
    out: memoryview,
    producer_id: int,
    ledger_id: int,
    entry_id: int,
    partition: int,
    count: int,
    sequence_ids: memoryview,
    highest_sequence_ids: memoryview,
    message_counts: memoryview,
) -> int:
    """Write the frames of SEND_RECEIPTs for entries that stand one behind the other.

    Args:
        out: room for RECEIPT_BYTES_MAX bytes each.
        producer_id, ledger_id, entry_id, partition: as `encode_send_receipt`; the entry is the first one.
        count: how many there are.
        sequence_ids, highest_sequence_ids, message_counts: of each entry.

    Returns:
        Bytes written.
    """
    position = 0
    for index in range(count):
        start = position
        # The sizes at 0 and 4, the lengths at 11 and of the message id are written when they are known.
        out[start] = out[start + 1] = out[start + 2] = out[start + 4] = out[start + 5] = out[start + 6] = 0
        out[start + 8] = 8
        out[start + 9] = 7
        out[start + 10] = 58
        position = _number(out, start + 12, 8, producer_id)
        position = _number(out, position, 16, sequence_ids[index])
        out[position] = 26
        length_at = position + 1
        position = _number(out, position + 2, 8, ledger_id)
        position = _number(out, position, 16, entry_id)
        if partition >= 0:
            position = _number(out, position, 24, partition)
        out[length_at] = position - length_at - 1
        if highest_sequence_ids[index]:
            position = _number(out, position, 32, highest_sequence_ids[index])
        out[start + 11] = position - start - 12
        out[start + 7] = position - start - 8
        out[start + 3] = position - start - 4
        entry_id += message_counts[index]
    return position


def _number(out: memoryview, position: int, key: int, value: int) -> int:
    """Write a field that is a number; returns the position behind it."""
    out[position] = key
    position += 1
    while value > 127:
        out[position] = (value & 127) | 128
        position += 1
        value >>= 7
    out[position] = value
    return position + 1
