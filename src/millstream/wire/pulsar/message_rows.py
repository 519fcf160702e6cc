"""The hot loops between the messages of a batch and the rows of `millstream.model.record_table`, without protobuf.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `message_rows.pxd`. Read by Python it is slower than protobuf, so that then
it is not used: `COMPILED` tells. The tests hold both to the same answers, and to those of
`millstream.wire.pulsar.records`, which says what becomes of which field.

Source: Pulsar binary protocol specification 3.0, "Batch messages"; Protocol Buffers, "Encoding".
"""

from collections.abc import Callable
from typing import Final

__all__ = [
    "COMPILED",
    "FIELDS",
    "FIELD_BYTES_MAX",
    "OUT_OF_THE_ORDINARY",
    "ROOM_FOR_HEADERS",
    "STATE",
    "read_rows",
    "write_rows",
]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
OUT_OF_THE_ORDINARY: Final = -1
"""What `read_rows` gives for what it leaves to others."""
ROOM_FOR_HEADERS: Final = -2
"""What `read_rows` gives if there are more headers than it has room for."""
FIELDS: Final = 17
"""Numbers that `read_rows` needs to work."""
STATE: Final = 5
"""Numbers of the state of `write_rows`."""
FIELD_BYTES_MAX: Final = 64
"""Bytes of a message, and of a property of it, beside twice their content, or more."""


def read_rows(
    data: memoryview,
    stop: int,
    count: int,
    times: memoryview,
    told: memoryview,
    fields: memoryview,
    rows: memoryview,
    headers: memoryview,
    totals: memoryview,
) -> int:
    """Fill in the rows of a batch.

    Args:
        data: its messages, unpacked, and texts behind them; keys in base64 are undone in place.
        stop: where the messages end.
        count: how many there are, those taken out by compaction included.
        times: when the entry was published; the time that all records have, and 1, if the server set it.
        told: where the names of the headers stand that hold an ordering key and the time of publication, their bytes,
            where the text of that time stands, and its bytes: none if it is not told.
        fields: room for FIELDS numbers.
        rows: room for the rows of all messages.
        headers: room for headers.
        totals: is added to: bytes of content, bytes of values, headers.

    Returns:
        The number of rows; OUT_OF_THE_ORDINARY if anything does not fit or means anything else than it seems to;
        ROOM_FOR_HEADERS.
    """
    position = row = header = records = 0
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
            if fields[6] and fields[11] > 0:
                fields[11] = _undone_base64(data, fields[2], fields[11])
                if fields[11] < 0:
                    return -1
            header = _put_told(fields, told, headers, header)
            if header < 0:
                return -2
            rows[row] = index
            rows[row + 5] = position
            rows[row + 7] = (header - first) >> 2
            _put_row(fields, times, rows, row, totals)
            row += 8
            records += 1
        position += size
    totals[2] += header >> 2
    return records


def _put_row(fields: memoryview, times: memoryview, rows: memoryview, row: int, totals: memoryview) -> None:
    """Fill in what follows from the fields of a message."""
    rows[row + 1] = times[1] if times[2] else fields[5] if fields[5] else times[0]
    rows[row + 2] = times[2]
    rows[row + 3] = fields[2]
    rows[row + 4] = -1 if fields[10] else fields[11]
    rows[row + 6] = -1 if fields[9] else fields[3]
    totals[0] += fields[12]
    if rows[row + 4] > 0:
        totals[0] += rows[row + 4]
    if rows[row + 6] > 0:
        totals[0] += rows[row + 6]
        totals[1] += rows[row + 6]


def _scan(data: memoryview, position: int, stop: int, fields: memoryview, headers: memoryview, header: int) -> int:
    """Read the SingleMessageMetadata of a message.

    Args:
        data, position, stop: where it stands.
        fields: field n of those that are numbers goes to n, of those that are bytes where they begin, and how many
            there are, -1 for none, to n + 9. The bytes of all properties go to 12.
        headers, header: where the properties go.

    Returns:
        The place behind the properties; -1 and -2 as `read_rows`.
    """
    room = len(headers)
    for at in range(17):
        fields[at] = 0
    fields[3] = fields[11] = fields[16] = -1
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
    return _is_plain_name(data, headers[header], headers[header + 1])


def _is_plain_name(data: memoryview, start: int, size: int) -> bool:
    """Whether a name is UTF-8, and does not end in what says how a header became a property."""
    if not _is_text(data, start, start + size):
        return False
    stop = start + size
    if size >= 4 and data[stop - 4] == 58:  # ":b64"
        return not (data[stop - 3] == 98 and data[stop - 2] == 54 and data[stop - 1] == 52)
    if size >= 5 and data[stop - 5] == 58:
        # ":text" and ":null"
        if data[stop - 4] == 116 and data[stop - 3] == 101 and data[stop - 2] == 120 and data[stop - 1] == 116:
            return False
        return not (
            data[stop - 4] == 110 and data[stop - 3] == 117 and data[stop - 2] == 108 and data[stop - 1] == 108
        )
    return True


def _is_text(data: memoryview, position: int, stop: int) -> bool:
    """Whether some bytes are UTF-8."""
    for at in range(position, stop):
        if data[at] > 127:
            return _is_unicode(bytes(data[position:stop]))
    return True


def _is_unicode(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


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


def _put_told(fields: memoryview, told: memoryview, headers: memoryview, header: int) -> int:
    """Add the headers of what has no place in a record; gives the place behind them, -1 if there is no room."""
    if fields[16] >= 0:
        if header + 4 > len(headers):
            return -1
        headers[header] = told[0]
        headers[header + 1] = told[1]
        headers[header + 2] = fields[7]
        headers[header + 3] = fields[16]
        fields[12] += told[1] + fields[16]
        header += 4
    if fields[5] and told[5]:
        if header + 4 > len(headers):
            return -1
        headers[header] = told[2]
        headers[header + 1] = told[3]
        headers[header + 2] = told[4]
        headers[header + 3] = told[5]
        fields[12] += told[3] + told[5]
        header += 4
    return header


def write_rows(
    data: memoryview,
    rows: memoryview,
    headers: memoryview,
    count: int,
    state: memoryview,
    stop_delta: int,
    content_bytes_max: int,
    taken_out: memoryview,
    describe: Callable[[int, int], bytes],
    out: memoryview,
) -> int:
    """Write rows as the messages of one batch, as many as belong in it.

    Args:
        data, rows, headers: of a table.
        count: of its rows.
        state: the row to begin with, the headers before it, and the offset of the batch's first place from the
            frame's; brought up to date. Gets at 3 the latest time of any record in the batch, or 0, and at 4 whether
            all of them have the same key.
        stop_delta: offset from the frame's base offset at which the batch is to end.
        content_bytes_max: bytes of keys, values and headers, and what is counted for each, after which it ends
            before that; one record may exceed it.
        taken_out: what stands in a place without a record.
        describe: gives the SingleMessageMetadata of what is left to others, by its row and the headers before it.
        out: where they go: room for what they may take, see FIELD_BYTES_MAX, and for the places without a record.

    Returns:
        Bytes written; -1 if there is no room.
    """
    index = state[0]
    header = state[1] * 4
    place = state[2]
    first = row = index * 8
    position = content = latest_ms = 0
    same_key = True
    while index < count and rows[row] < stop_delta:
        size = _content_bytes(rows, row, headers, header)
        if index * 8 > first and content + size > content_bytes_max:
            break
        content += size
        position = _put_gap(out, position, taken_out, rows[row] - place)
        position = _put_message(out, position, data, rows, row, headers, header, index, describe)
        if position < 0:
            return -1
        if rows[row + 1] > latest_ms:
            latest_ms = rows[row + 1]
        same_key = same_key and _is_same(data, rows[first + 3], rows[first + 4], rows[row + 3], rows[row + 4])
        place = rows[row] + 1
        header += rows[row + 7] * 4
        index += 1
        row += 8
    if index < count and rows[row] < stop_delta:
        stop_delta = rows[row]
    position = _put_gap(out, position, taken_out, stop_delta - place)
    state[0] = index
    state[1] = header >> 2
    state[2] = stop_delta
    state[3] = latest_ms
    state[4] = 1 if same_key else 0
    return position


def _content_bytes(rows: memoryview, row: int, headers: memoryview, header: int) -> int:
    """What a record is counted for: its content, and 32 bytes for it and 12 for each header."""
    size = 32
    if rows[row + 4] > 0:
        size += rows[row + 4]
    if rows[row + 6] > 0:
        size += rows[row + 6]
    for at in range(header, header + rows[row + 7] * 4, 4):
        size += headers[at + 1] + 12
        if headers[at + 3] > 0:
            size += headers[at + 3]
    return size


def _put_gap(out: memoryview, position: int, taken_out: memoryview, places: int) -> int:
    """Fill places without a record; gives the position behind them."""
    size = len(taken_out)
    for _ in range(places):
        for at in range(size):
            out[position + at] = taken_out[at]
        position += size
    return position


def _is_same(data: memoryview, start: int, size: int, other: int, other_size: int) -> bool:
    if size != other_size:
        return False
    at = 0
    while at < size and data[start + at] == data[other + at]:
        at += 1
    return at >= size  # which is below 0 for null


def _put_message(
    out: memoryview,
    position: int,
    data: memoryview,
    rows: memoryview,
    row: int,
    headers: memoryview,
    header: int,
    index: int,
    describe: Callable[[int, int], bytes],
) -> int:
    """Write one message; gives the position behind it, -1 if there is no room."""
    head = position + 4
    behind = _put_metadata(out, head, data, rows, row, headers, header)
    if behind < 0:
        described = describe(index, header >> 2)
        size = len(described)
        if size > len(out) - head - 64:
            return -1
        for at in range(size):
            out[head + at] = described[at]
        behind = head + size
    size = behind - head
    out[position] = size >> 24
    out[position + 1] = size >> 16 & 255
    out[position + 2] = size >> 8 & 255
    out[position + 3] = size & 255
    start = rows[row + 5]
    size = rows[row + 6]
    for at in range(size):  # of nothing if it is null
        out[behind + at] = data[start + at]
    return behind + size if size > 0 else behind


def _put_metadata(
    out: memoryview, position: int, data: memoryview, rows: memoryview, row: int, headers: memoryview, header: int
) -> int:
    """Write the SingleMessageMetadata of a record; gives the position behind it, -1 for what is left to others."""
    for at in range(header, header + rows[row + 7] * 4, 4):
        position = _put_property(out, position, data, headers, at)
        if position < 0:
            return -1
    key_bytes = rows[row + 4]
    is_base64 = False
    if key_bytes >= 0:
        is_base64 = not _is_text(data, rows[row + 3], rows[row + 3] + key_bytes)
        out[position] = 18
        position = _put_text(out, position + 1, data, rows[row + 3], key_bytes, is_base64)
    out[position] = 24
    position = _put_varint(out, position + 1, rows[row + 6] if rows[row + 6] > 0 else 0)
    if rows[row + 1] > 0 and not rows[row + 2]:
        out[position] = 40
        position = _put_varint(out, position + 1, rows[row + 1])
    if is_base64:
        out[position] = 48
        out[position + 1] = 1
        position += 2
    if rows[row + 6] < 0:
        out[position] = 72
        out[position + 1] = 1
        position += 2
    return position


def _put_property(out: memoryview, position: int, data: memoryview, headers: memoryview, at: int) -> int:
    """Write a header as a Property; gives the position behind it, -1 for what is left to others."""
    start = headers[at]
    size = headers[at + 1]
    value_bytes = headers[at + 3]
    if not _is_plain_name(data, start, size) or _is_ours(data, start, size):
        return -1
    is_base64 = value_bytes > 0 and not _is_text(data, headers[at + 2], headers[at + 2] + value_bytes)
    ending = 4 if is_base64 else 5 if value_bytes < 0 else 0
    text_bytes = (value_bytes + 2) // 3 * 4 if is_base64 else value_bytes if value_bytes > 0 else 0
    inner = 2 + _varint_bytes(size + ending) + size + ending + _varint_bytes(text_bytes) + text_bytes
    out[position] = 10
    position = _put_varint(out, position + 1, inner)
    out[position] = 10
    position = _put_varint(out, position + 1, size + ending)
    for place in range(size):
        out[position + place] = data[start + place]
    position += size
    if ending:
        out[position] = 58
        # ":b64" and ":null"
        out[position + 1] = 98 if is_base64 else 110
        out[position + 2] = 54 if is_base64 else 117
        out[position + 3] = 52 if is_base64 else 108
        if ending == 5:
            out[position + 4] = 108
        position += ending
    out[position] = 18
    return _put_text(out, position + 1, data, headers[at + 2], value_bytes if value_bytes > 0 else 0, is_base64)


def _is_ours(data: memoryview, start: int, size: int) -> bool:
    """Whether a name begins with "pulsar.", as those do that become again what they were."""
    return (
        size > 7
        and data[start] == 112
        and data[start + 1] == 117
        and data[start + 2] == 108
        and data[start + 3] == 115
        and data[start + 4] == 97
        and data[start + 5] == 114
        and data[start + 6] == 46
    )


def _put_text(out: memoryview, position: int, data: memoryview, start: int, size: int, is_base64: bool) -> int:
    """Write bytes with their length, in base64 if they are to be; gives the position behind them."""
    if is_base64:
        position = _put_varint(out, position, (size + 2) // 3 * 4)
        return _put_base64(out, position, data, start, size)
    position = _put_varint(out, position, size)
    for at in range(size):
        out[position + at] = data[start + at]
    return position + size


def _put_base64(out: memoryview, position: int, data: memoryview, start: int, size: int) -> int:
    stop = start + size
    while start < stop:
        bits = data[start] << 16
        if start + 1 < stop:
            bits |= data[start + 1] << 8
        if start + 2 < stop:
            bits |= data[start + 2]
        out[position] = _base64_digit(bits >> 18)
        out[position + 1] = _base64_digit(bits >> 12 & 63)
        out[position + 2] = _base64_digit(bits >> 6 & 63) if start + 1 < stop else 61
        out[position + 3] = _base64_digit(bits & 63) if start + 2 < stop else 61
        position += 4
        start += 3
    return position


def _base64_digit(value: int) -> int:
    if value < 26:
        return value + 65
    if value < 52:
        return value + 71
    if value < 62:
        return value - 4
    return 43 if value == 62 else 47


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


def _shifted(value: int, shift: int) -> int:
    return value << shift
