"""The hot loops from the messages of entries to the rows of `millstream.model.record_table`, without protobuf.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `message_rows.pxd`. Read by Python it is slower than protobuf, so that then
it is not used: `COMPILED` tells. The tests hold both to the same answers, and to those of
`millstream.wire.pulsar.records`, which says what becomes of which field.

Source: Pulsar binary protocol specification 3.0, "Message commands", "Batch messages"; Protocol Buffers, "Encoding".
"""

from typing import Final

from millstream.wire.pulsar.property_names import is_plain_name

__all__ = [
    "COMPILED",
    "ENTRY_FIELDS",
    "FIELDS",
    "OUT_OF_THE_ORDINARY",
    "ROOM_FOR_HEADERS",
    "TEXT_BYTES",
    "TEXT_PLACES",
    "read_entries",
]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
OUT_OF_THE_ORDINARY: Final = -1
"""What the loops give for what they leave to others."""
ROOM_FOR_HEADERS: Final = -2
"""What they give if there are more headers than they have room for."""
FIELDS: Final = 17
"""Numbers that the loops need to work."""
ENTRY_FIELDS: Final = 8
"""Numbers of an entry:

    0  publish_time                                   4  bytes of its schema_version
    1  the time of its append                         5  num_messages_in_batch, -1 if it is no batch
    2  1 if that is the time of all its records       6  where its payload begins
    3  where its schema_version stands                7  1 if no Pulsar producer has sent it
"""
TEXT_PLACES: Final = 9
"""Numbers that say where the texts stand that become parts of headers:

    0  the name of the header for an ordering key         5  its bytes, 0 if there is none yet
    1  its bytes                                          6  the name of that for the version of the schema
    2  the name of that for the time of publication       7  its bytes
    3  its bytes                                          8  where there is room for texts
    4  the text of that time
"""
TEXT_BYTES: Final = 20
"""Bytes of a time in decimal."""


def read_entries(
    data: memoryview,
    heads: memoryview,
    frames: int,
    entry: memoryview,
    places: memoryview,
    fields: memoryview,
    rows: memoryview,
    headers: memoryview,
    totals: memoryview,
) -> int:
    """Fill in the rows of the messages of some frames whose entries are neither compressed nor encrypted.

    Args:
        data: the entries, texts behind them, and room for TEXT_BYTES for each; keys in base64 are undone in place.
        heads: of the frames, which say where in there each entry stands; see `millstream.model.frame_span`. They are
            told how many records there are up to the end of each.
        frames: how many there are.
        entry: room for ENTRY_FIELDS numbers.
        places: where the texts stand; TEXT_PLACES numbers.
        fields: room for FIELDS numbers.
        rows: room for the rows of all messages.
        headers: room for headers.
        totals: is added to: bytes of content, bytes of values, headers; what stands behind them is used.

    Returns:
        The number of rows; OUT_OF_THE_ORDINARY if anything does not fit or means anything else than it seems to;
        ROOM_FOR_HEADERS.
    """
    row = header = 0
    for head in range(0, frames * 9, 9):
        stop = heads[head + 2]
        first = header
        header = _scan_entry(data, heads[head + 1], stop, entry, fields, headers, header)
        if header < 0:
            return header
        entry[1] = heads[head + 6]
        entry[2] = heads[head + 7] >> 3 & 1
        places[5] = 0
        if entry[1] > 1152921504606846976 or entry[1] < -1152921504606846976:  # 2**60
            return -1
        if entry[5] >= 0:
            if entry[5] != heads[head + 3]:
                return -1
            totals[3] = row
            header = _read_messages(
                data, entry[6], stop, entry[5], heads[head], entry, places, fields, rows, headers, first, totals
            )
            if header < 0:
                return header
            row = totals[3]
        else:
            if heads[head + 3] != 1:
                return -1
            fields[3] = stop - entry[6]
            rows[row] = heads[head]
            rows[row + 5] = entry[6]
            header = _finish_row(data, entry, places, fields, rows, row, headers, first, header, totals)
            if header < 0:
                return header
            row += 8
        heads[head + 8] = row >> 3
    totals[2] += header >> 2
    return row >> 3


def _read_messages(
    data: memoryview,
    position: int,
    stop: int,
    count: int,
    delta: int,
    entry: memoryview,
    places: memoryview,
    fields: memoryview,
    rows: memoryview,
    headers: memoryview,
    header: int,
    totals: memoryview,
) -> int:
    """Fill in the rows of a batch, from that on which totals tell at 3, and tell there the one behind them.

    Returns:
        The place behind its headers; -1 and -2 as `read_entries`.
    """
    row = totals[3]
    for index in range(count):
        if stop - position < 4 or data[position] or data[position + 1] > 15:
            return -1
        size = data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3]
        position += 4
        if size > stop - position:
            return -1
        first = header
        header = _scan(data, position, position + size, fields, headers, header)
        if header < 0:
            return header
        position += size
        size = fields[3]
        if size < 0 or size > stop - position:
            return -1
        if fields[4]:  # compaction took it out
            header = first
        else:
            rows[row] = delta + index
            rows[row + 5] = position
            header = _finish_row(data, entry, places, fields, rows, row, headers, first, header, totals)
            if header < 0:
                return header
            row += 8
        position += size
    totals[3] = row
    return header


def _finish_row(
    data: memoryview,
    entry: memoryview,
    places: memoryview,
    fields: memoryview,
    rows: memoryview,
    row: int,
    headers: memoryview,
    first: int,
    header: int,
    totals: memoryview,
) -> int:
    """Fill in what follows from the fields of a message; gives the place behind its headers, -1 and -2 as above."""
    if fields[6] and fields[11] > 0:
        fields[11] = _undone_base64(data, fields[2], fields[11])
        if fields[11] < 0:
            return -1
    header = _put_told(data, entry, places, fields, headers, header)
    if header < 0:
        return -2
    rows[row + 1] = entry[1] if entry[2] else fields[5] if fields[5] else entry[0]
    rows[row + 2] = entry[2]
    rows[row + 3] = fields[2]
    rows[row + 4] = -1 if fields[10] else fields[11]
    rows[row + 6] = -1 if fields[9] else fields[3]
    rows[row + 7] = (header - first) >> 2
    totals[0] += fields[12]
    if rows[row + 4] > 0:
        totals[0] += rows[row + 4]
    if rows[row + 6] > 0:
        totals[0] += rows[row + 6]
        totals[1] += rows[row + 6]
    return header


def _scan_entry(
    data: memoryview,
    position: int,
    stop: int,
    entry: memoryview,
    fields: memoryview,
    headers: memoryview,
    header: int,
) -> int:
    """Read the MessageMetadata of the entry at a position.

    Args:
        entry, fields: get what it says of all messages, and of its only one, as a SingleMessageMetadata would.
        headers, header: where the properties go.

    Returns:
        The place behind the properties; -1 and -2 as `read_entries`.
    """
    room = len(headers)
    _clear(fields)
    entry[0] = entry[5] = -1  # which must be there; which may not
    entry[3] = entry[4] = entry[7] = 0
    if stop - position >= 6 and data[position] == 14 and data[position + 1] == 1:
        position += 6
    if stop - position < 4 or data[position] or data[position + 1] > 15:
        return -1
    size = data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3]
    position += 4
    if size > stop - position:
        return -1
    stop = position + size
    entry[6] = stop
    while position < stop:
        key = value = 0
        for _ in range(2):  # a tag, and a number or a length
            key = value
            value = shift = 0
            byte = 128
            while byte > 127:
                if shift > 56 or position >= stop:
                    return -1
                byte = data[position]
                position += 1
                value |= _shifted(byte & 127, shift)
                shift += 7
            if value > 1152921504606846976:  # 2**60: no time, and nothing else that is meant
                return -1
        number = key >> 3
        if number > 30:
            return -1
        if key & 7 == 0:
            if not _take_number(number, value, entry, fields):
                return -1
        # producer_name, properties, replicated_from, partition_key, replicate_to, schema_version, ordering_key.
        elif key & 7 != 2 or value > stop - position or not 0x500F2 >> number & 1:
            return -1
        else:
            if number == 4:
                if header + 4 > room:
                    return -2
                if not _read_property(data, position, position + value, headers, header):
                    return -1
                fields[12] += headers[header + 1] + headers[header + 3]
                header += 4
            else:
                _take_bytes(data, number, position, value, entry, fields)
            position += value
    return header if entry[0] >= 0 else -1


def _clear(fields: memoryview) -> None:
    """Begin a message: numbers that are not there are 0, bytes that are not there none."""
    for at in range(17):
        fields[at] = 0
    fields[3] = fields[11] = fields[16] = -1


def _take_number(number: int, value: int, entry: memoryview, fields: memoryview) -> bool:
    """Take a field of the MessageMetadata that is a number; tells whether it means nothing out of the ordinary."""
    # sequence_id, publish_time, compression, uncompressed_size, num_messages_in_batch, event_time,
    # partition_key_b64_encoded, deliver_at_time, the numbers of a transaction, highest_sequence_id, null_value and
    # null_partition_key.
    if not 0x43CA1B0C >> number & 1 or (number == 8 and value):
        return False
    if number == 3:
        entry[0] = value
    elif number == 11:
        entry[5] = value
    elif number == 12:
        fields[5] = value
    elif number == 17:
        fields[6] = value
    elif number == 25:
        fields[9] = value
    elif number == 30:
        fields[10] = value
    return True


def _take_bytes(
    data: memoryview, number: int, position: int, size: int, entry: memoryview, fields: memoryview
) -> None:
    """Take a field of the MessageMetadata that is bytes."""
    if number == 1:
        entry[7] = 1 if size == 10 and _is_ours(data, position) else 0
    elif number == 6:
        fields[2] = position
        fields[11] = size
    elif number == 16:
        entry[3] = position
        entry[4] = size
    elif number == 18:
        fields[7] = position
        fields[16] = size


def _is_ours(data: memoryview, position: int) -> bool:
    """Whether 10 bytes are "millstream"."""
    name = b"millstream"
    at = 0
    while at < 10 and data[position + at] == name[at]:
        at += 1
    return at == 10


def _scan(data: memoryview, position: int, stop: int, fields: memoryview, headers: memoryview, header: int) -> int:
    """Read the SingleMessageMetadata of a message.

    Args:
        data, position, stop: where it stands.
        fields: field n of those that are numbers goes to n, of those that are bytes where they begin, and how many
            there are, -1 for none, to n + 9. The bytes of all properties go to 12.
        headers, header: where the properties go.

    Returns:
        The place behind the properties; -1 and -2 as `read_entries`.
    """
    room = len(headers)
    _clear(fields)
    while position < stop:
        key = data[position]
        position += 1
        value = shift = 0
        byte = 128
        while byte > 127:
            if shift > 56 or position >= stop:
                return -1
            byte = data[position]
            position += 1
            value |= _shifted(byte & 127, shift)
            shift += 7
        number = key >> 3
        if value > 1152921504606846976:  # 2**60: no time, and nothing else that is meant
            return -1
        if key & 7 == 0:
            # payload_size, compacted_out, event_time, partition_key_b64_encoded, sequence_id, null_value and
            # null_partition_key.
            if number > 10 or not 0x778 >> number & 1:
                return -1
            fields[number] = value
        elif key & 7 != 2 or value > stop - position:
            return -1
        else:
            if key == 10:
                if header + 4 > room:
                    return -2
                if not _read_property(data, position, position + value, headers, header):
                    return -1
                fields[12] += headers[header + 1] + headers[header + 3]
                header += 4
            elif key == 18 or key == 58:  # partition_key, ordering_key
                fields[number] = position
                fields[number + 9] = value
            else:
                return -1
            position += value
    return header


def _read_property(data: memoryview, position: int, stop: int, headers: memoryview, header: int) -> bool:
    """Read a Property; tells whether it has a name and a value, and means what they seem to."""
    headers[header + 1] = headers[header + 3] = -1
    while position < stop:
        key = data[position]
        position += 1
        value = shift = 0
        byte = 128
        while byte > 127:
            if shift > 28 or position >= stop:
                return False
            byte = data[position]
            position += 1
            value |= _shifted(byte & 127, shift)
            shift += 7
        if (key != 10 and key != 18) or value > stop - position:
            return False
        headers[header + (key >> 3 << 1) - 2] = position
        headers[header + (key >> 3 << 1) - 1] = value
        position += value
    if headers[header + 1] < 0 or headers[header + 3] < 0:
        return False
    return is_plain_name(data, headers[header], headers[header + 1])


def _undone_base64(data: memoryview, start: int, size: int) -> int:
    """Undo base64 in place; gives how many bytes are left, -1 if it is not what every reader takes for base64."""
    if size & 3:
        return -1
    written = start
    bits = 0
    padding = 0
    for at in range(size):
        byte = data[start + at]
        if 65 <= byte <= 90:
            byte -= 65
        elif 97 <= byte <= 122:
            byte -= 71
        elif 48 <= byte <= 57:
            byte += 4
        elif byte == 43:
            byte = 62
        elif byte == 47:
            byte = 63
        elif byte == 61 and at >= size - 2:
            byte = 0
            padding += 1
        else:
            return -1
        if padding and data[start + size - 1] != 61:
            return -1
        bits = bits << 6 | byte
        if at & 3 == 3:
            data[written] = bits >> 16
            data[written + 1] = bits >> 8 & 255
            data[written + 2] = bits & 255
            written += 3
            bits = 0
    return written - start - padding


def _put_told(
    data: memoryview, entry: memoryview, places: memoryview, fields: memoryview, headers: memoryview, header: int
) -> int:
    """Add the headers of what has no place in a record; gives the place behind them, -1 if there is no room."""
    if header + 12 > len(headers):
        return -1
    if fields[16] >= 0:
        headers[header] = places[0]
        headers[header + 1] = places[1]
        headers[header + 2] = fields[7]
        headers[header + 3] = fields[16]
        header += 4
        fields[12] += places[1] + fields[16]
    if fields[5] and not entry[7]:
        if not places[5]:
            _tell_time(data, entry[0], places)
        headers[header] = places[2]
        headers[header + 1] = places[3]
        headers[header + 2] = places[4]
        headers[header + 3] = places[5]
        header += 4
        fields[12] += places[3] + places[5]
    if entry[4]:
        headers[header] = places[6]
        headers[header + 1] = places[7]
        headers[header + 2] = entry[3]
        headers[header + 3] = entry[4]
        header += 4
        fields[12] += places[7] + entry[4]
    return header


def _tell_time(data: memoryview, time_ms: int, places: memoryview) -> None:
    """Write the time of publication in decimal."""
    size = 1
    rest = time_ms
    while rest > 9:
        rest //= 10
        size += 1
    places[4] = places[8]
    places[5] = size
    places[8] += size
    for at in range(places[8] - 1, places[4] - 1, -1):
        data[at] = 48 + time_ms % 10
        time_ms //= 10


def _shifted(value: int, shift: int) -> int:
    return value << shift
