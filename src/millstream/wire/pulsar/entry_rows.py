"""The hot loops from the rows of `millstream.model.record_table` to entries and their messages, without protobuf.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `entry_rows.pxd`. Read by Python it is slower than protobuf, so that then
it is not used: `COMPILED` tells. The tests hold both to the same answers, and to those of
`millstream.wire.pulsar.records`, which says what becomes of which field.

Source: Pulsar binary protocol specification 3.0, "Message commands", "Batch messages"; Protocol Buffers, "Encoding".
"""

from collections.abc import Callable
from typing import Final

from crc32c import crc32c

from millstream.wire.pulsar.property_names import is_plain_name
from millstream.wire.texts import is_text

__all__ = ["COMPILED", "ENTRY_BYTES_MAX", "FIELD_BYTES_MAX", "STATE", "write_entries", "write_rows"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
ENTRY_BYTES_MAX: Final = 128
"""Bytes of an entry beside its messages, or more."""
FIELD_BYTES_MAX: Final = 64
"""Bytes of a message, and of a property of it, beside twice their content, or more."""
STATE: Final = 5
"""Numbers of the state of `write_rows`."""


def write_entries(
    data: memoryview,
    rows: memoryview,
    headers: memoryview,
    heads: memoryview,
    frames: int,
    base_offset: int,
    describe: Callable[[int, int], bytes],
    describe_entry: Callable[[int, int], bytes],
    out: memoryview,
    view: memoryview,
    starts: memoryview,
    offsets: memoryview,
) -> int:
    """Write an entry for each of some frames: a batch, or a message by itself if there is only one.

    Args:
        data, rows, headers, heads, frames, base_offset: of a table.
        describe: as `write_rows`.
        describe_entry: gives the whole entry of one message that is left to others, by its row and the headers
            before it.
        out: where they go: room for what they may take, see ENTRY_BYTES_MAX and FIELD_BYTES_MAX.
        view: the same room.
        starts: gets where each entry begins, and where the last one ends.
        offsets: gets the base offset of each frame.

    Returns:
        Bytes written; -1 if a frame takes offsets that have no record, or there is no room.
    """
    row = header = position = 0
    for frame in range(frames):
        count = heads[frame * 9 + 8] - row
        if count != heads[frame * 9 + 4]:
            return -1
        starts[frame] = position
        start = position
        offset = base_offset + heads[frame * 9]
        offsets[frame] = offset
        if count == 1:
            position = _put_single(out, start, data, rows, row * 8, headers, header, offset)
            if position < 0:
                described = describe_entry(row, header >> 2)
                if len(described) > len(out) - start - 128:
                    return -1
                for at in range(len(described)):
                    out[start + at] = described[at]
                position = start + len(described)
            else:
                _seal(out, view, start, position)
            header += rows[row * 8 + 7] * 4
            row += 1
            continue
        position = _put_batch_head(out, start, data, rows, row, count, offset)
        for _ in range(count):
            position = _put_message(out, position, data, rows, row * 8, headers, header, row, describe)
            if position < 0:
                return -1
            header += rows[row * 8 + 7] * 4
            row += 1
        _seal(out, view, start, position)
    starts[frames] = position
    return position


def _seal(out: memoryview, view: memoryview, start: int, stop: int) -> None:
    """Write the checksum of an entry."""
    checksum = crc32c(view[start + 6 : stop])
    out[start + 2] = checksum >> 24
    out[start + 3] = checksum >> 16 & 255
    out[start + 4] = checksum >> 8 & 255
    out[start + 5] = checksum & 255


def _put_entry_head(out: memoryview, position: int, offset: int, time_ms: int) -> int:
    """Write what all entries begin with: the producer's name, the sequence id, the time of publication.

    The checksum and the size of the metadata are written when they are known.
    """
    out[position] = 14
    out[position + 1] = 1
    out[position + 10] = 10
    out[position + 11] = 10
    out[position + 12] = 109  # "millstream"
    out[position + 13] = 105
    out[position + 14] = 108
    out[position + 15] = 108
    out[position + 16] = 115
    out[position + 17] = 116
    out[position + 18] = 114
    out[position + 19] = 101
    out[position + 20] = 97
    out[position + 21] = 109
    out[position + 22] = 16
    position = _put_varint(out, position + 23, offset)
    out[position] = 24
    return _put_varint(out, position + 1, time_ms if time_ms > 0 else 0)


def _end_metadata(out: memoryview, start: int, position: int) -> None:
    """Write the size of the metadata of an entry, which ends at a position."""
    size = position - start - 10
    out[start + 6] = size >> 24
    out[start + 7] = size >> 16 & 255
    out[start + 8] = size >> 8 & 255
    out[start + 9] = size & 255


def _put_single(
    out: memoryview,
    start: int,
    data: memoryview,
    rows: memoryview,
    row: int,
    headers: memoryview,
    header: int,
    offset: int,
) -> int:
    """Write the entry of one message; gives the position behind it, -1 for what is left to others."""
    position = _put_entry_head(out, start, offset, rows[row + 1])
    for at in range(header, header + rows[row + 7] * 4, 4):
        position = _put_property(out, position, 34, data, headers, at)
        if position < 0:
            return -1
    key_bytes = rows[row + 4]
    is_base64 = False
    if key_bytes >= 0:
        is_base64 = not is_text(data, rows[row + 3], rows[row + 3] + key_bytes)
        out[position] = 50
        position = _put_text(out, position + 1, data, rows[row + 3], key_bytes, is_base64)
    if rows[row + 1] > 0 and not rows[row + 2]:
        out[position] = 96
        position = _put_varint(out, position + 1, rows[row + 1])
    if is_base64:
        position = _put_flag(out, position, 136)
    if rows[row + 6] < 0:
        position = _put_flag(out, position, 200)
    _end_metadata(out, start, position)
    at = rows[row + 5]
    for place in range(rows[row + 6]):  # nothing if it is null
        out[position + place] = data[at + place]
    return position + rows[row + 6] if rows[row + 6] > 0 else position


def _put_flag(out: memoryview, position: int, tag: int) -> int:
    """Write a field that is true, whose tag has a second byte of 1; gives the position behind it."""
    out[position] = tag
    out[position + 1] = 1
    out[position + 2] = 1
    return position + 3


def _put_batch_head(
    out: memoryview, start: int, data: memoryview, rows: memoryview, first: int, count: int, offset: int
) -> int:
    """Write the metadata of an entry of several messages; gives the position behind it."""
    latest_ms = 0
    same_key = True
    key_at = rows[first * 8 + 3]
    key_bytes = rows[first * 8 + 4]
    for row in range(first * 8, (first + count) * 8, 8):
        if rows[row + 1] > latest_ms:
            latest_ms = rows[row + 1]
        same_key = same_key and _is_same(data, key_at, key_bytes, rows[row + 3], rows[row + 4])
    position = _put_entry_head(out, start, offset, latest_ms)
    is_base64 = False
    if same_key and key_bytes >= 0:  # what Key_Shared looks at
        is_base64 = not is_text(data, key_at, key_at + key_bytes)
        out[position] = 50
        position = _put_text(out, position + 1, data, key_at, key_bytes, is_base64)
    out[position] = 88
    position = _put_varint(out, position + 1, count)
    if is_base64:
        position = _put_flag(out, position, 136)
    _end_metadata(out, start, position)
    return position


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
        position = _put_property(out, position, 10, data, headers, at)
        if position < 0:
            return -1
    key_bytes = rows[row + 4]
    is_base64 = False
    if key_bytes >= 0:
        is_base64 = not is_text(data, rows[row + 3], rows[row + 3] + key_bytes)
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


def _put_property(out: memoryview, position: int, tag: int, data: memoryview, headers: memoryview, at: int) -> int:
    """Write a header as a Property behind a tag; gives the position behind it, -1 for what is left to others."""
    start = headers[at]
    size = headers[at + 1]
    value_bytes = headers[at + 3]
    if not is_plain_name(data, start, size) or _is_ours(data, start, size):
        return -1
    is_base64 = value_bytes > 0 and not is_text(data, headers[at + 2], headers[at + 2] + value_bytes)
    ending = 4 if is_base64 else 5 if value_bytes < 0 else 0
    text_bytes = (value_bytes + 2) // 3 * 4 if is_base64 else value_bytes if value_bytes > 0 else 0
    inner = 2 + _varint_bytes(size + ending) + size + ending + _varint_bytes(text_bytes) + text_bytes
    out[position] = tag
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
