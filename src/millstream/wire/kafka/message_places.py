"""The hot loops between the messages of magic 0 and 1 and the records of magic 2, one message at a time.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `message_places.pxd`. The tests hold both to the same answers.

A message is

    offset: int64, size: int32 of all that follows,
    crc: uint32 (CRC-32) of all that follows, magic: int8, attributes: int8, [timestamp: int64 in magic 1,]
    key: int32 length and bytes, value: the same

with lengths of -1 for null.

Source: Apache Kafka documentation of 0.10, "Message sets"; KIP-31 and KIP-32 for magic 1.
"""

from zlib import crc32

from millstream.wire.kafka.errors import CorruptBatch, InvalidRecords

__all__ = ["RecordSpan", "RecordsTail", "write_messages", "write_records"]


class RecordsTail:
    """Where a row of records ends that is being written, and what is known of them.

    `written_bytes` of the buffer hold `count` records. Times are in ms; `first_ms` and `latest_ms` mean nothing while
    there are none. `append_time` says whether a message claims the time of its append.
    """

    __slots__ = ("append_time", "count", "first_ms", "latest_ms", "written_bytes")

    def __init__(self) -> None:
        self.written_bytes = 0
        self.count = 0
        self.first_ms = 0
        self.latest_ms = 0
        self.append_time = False


class RecordSpan:
    """Which records of a batch are written as messages, and how far that has come.

    Args:
        count: how many records the batch has.
        base_offset: what is added to the offset delta of each.
        from_delta: records before this offset delta are passed over.
        is_relative: whether the first message written gets the offset 0 instead, as inside a message of magic 1.

    `index` and `position` are those of the next record, and `needed_bytes` is the size of its message if there was no
    room for it. `last_delta` is the offset delta of the last record that was written, and `latest_ms` the latest time
    of those that the last call has written.
    """

    __slots__ = (
        "base_offset",
        "count",
        "from_delta",
        "index",
        "is_relative",
        "last_delta",
        "latest_ms",
        "needed_bytes",
        "position",
    )

    def __init__(self, count: int, base_offset: int, from_delta: int, is_relative: bool) -> None:
        self.count = count
        self.base_offset = base_offset
        self.from_delta = from_delta
        self.is_relative = is_relative
        self.index = 0
        self.position = 0
        self.last_delta = -1
        self.latest_ms = -1
        self.needed_bytes = 0


def write_records(messages: memoryview, position: int, stop: int, out: bytearray, tail: RecordsTail) -> int:
    """Check messages and write them as records, up to a compressed one.

    Args:
        messages: a message set, whose own offsets do not count.
        position: of the first message.
        stop: no message that ends behind it is taken, but for the first of all.
        out: where the records go. A record is at most 6 bytes longer than its message; there must be room.
        tail: is brought up to date.

    Returns:
        The position behind the last message that was taken.

    Raises:
        CorruptBatch: a message is cut off or has a wrong size, checksum or magic.
        InvalidRecords: a message has a time that no record can have.
    """
    octets = messages
    target = out
    end = len(messages)
    written = tail.written_bytes
    count = tail.count
    first_ms = tail.first_ms
    latest_ms = tail.latest_ms
    while position < end:
        if end - position < 26:
            raise CorruptBatch("a message set ends within a message")
        size = _int32(octets, position + 8)
        following = position + 12 + size
        if size < 14 or following > end:
            raise CorruptBatch(f"a message of {size} bytes in a set with {end - position - 12} left for it")
        if following > stop and count > 0:
            break
        magic = octets[position + 16]
        attributes = octets[position + 17]
        if magic > 1:
            raise CorruptBatch(f"a message of magic {magic} in a set of magic 0 or 1")
        if attributes & 7:
            break
        if crc32(messages[position + 16 : following]) != _int32(octets, position + 12) & 0xFFFFFFFF:
            raise CorruptBatch("the checksum of a message is wrong")
        field = position + 18
        time_ms = -1
        if magic == 1:
            if size < 22:
                raise CorruptBatch(f"a message of magic 1 has {size} bytes")
            time_ms = _int64(octets, field)
            field += 8
            if attributes & 8:
                tail.append_time = True
            if time_ms < -1 or time_ms > 1 << 62:
                raise InvalidRecords(f"a message has the time {time_ms}")
        value_at = _value_place(octets, field, following)
        if value_at < 0:
            raise CorruptBatch("the key and the value of a message do not fill it")
        if count == 0:
            first_ms = latest_ms = time_ms
        elif time_ms > latest_ms:
            latest_ms = time_ms
        written = _put_record(target, written, time_ms - first_ms, count, octets, field, value_at)
        count += 1
        position = following
    tail.written_bytes = written
    tail.count = count
    tail.first_ms = first_ms
    tail.latest_ms = latest_ms
    return position


def _value_place(octets: memoryview, position: int, following: int) -> int:
    """Where the length of a message's value stands; -1 if key and value do not end where the message does.

    Args:
        octets: the message set.
        position: of the length of the key. At least 8 bytes follow within the message.
        following: where the message ends.
    """
    size = _int32(octets, position)
    if size < -1 or (size > 0 and size > following - position - 8):
        return -1
    value_at = position + 4 + (size if size > 0 else 0)
    size = _int32(octets, value_at)
    if size < -1 or (size if size > 0 else 0) != following - value_at - 4:
        return -1
    return value_at


def _put_record(
    target: bytearray, written: int, time_delta: int, index: int, octets: memoryview, key_at: int, value_at: int
) -> int:
    """Write a record whose key and value stand in a message, behind their lengths; gives the position behind it."""
    delta = _zigzag(time_delta)
    place = _zigzag(index)
    key_size = _int32(octets, key_at)
    value_size = _int32(octets, value_at)
    key_bytes = key_size if key_size > 0 else 0
    value_bytes = value_size if value_size > 0 else 0
    content = 2 + _varint_bytes(delta) + _varint_bytes(place) + key_bytes + value_bytes
    content += _varint_bytes(_zigzag(key_size)) + _varint_bytes(_zigzag(value_size))
    written = _put_varint(target, written, _zigzag(content))
    target[written] = 0  # attributes
    written = _put_varint(target, written + 1, delta)
    written = _put_varint(target, written, place)
    written = _put_varint(target, written, _zigzag(key_size))
    if key_bytes > 0:
        target[written : written + key_bytes] = octets[key_at + 4 : key_at + 4 + key_bytes]
        written += key_bytes
    written = _put_varint(target, written, _zigzag(value_size))
    if value_bytes > 0:
        target[written : written + value_bytes] = octets[value_at + 4 : value_at + 4 + value_bytes]
        written += value_bytes
    target[written] = 0  # no headers
    return written + 1


def write_messages(
    body: memoryview, span: RecordSpan, first_ms: int, append_ms: int, magic: int, out: bytearray
) -> int:
    """Write as many records of a batch as messages as there is room for.

    Args:
        body: the records of a batch, decompressed.
        span: which of them, and what offsets they get; is brought up to date.
        first_ms: the batch's first timestamp, in ms, which the records' deltas add to.
        append_ms: the time of append, which then stands in each message; -1 for the records' own times.
        magic: 0 or 1.
        out: where they go.

    Returns:
        Bytes written.

    Raises:
        InvalidRecords: the records do not fit the body.
    """
    octets = body
    target = out
    view = memoryview(out)
    end = len(body)
    room = len(out)
    overhead = 34 if magic == 1 else 26
    position, written = span.position, 0
    while span.index < span.count:
        length = _varint(octets, position, end) >> 1
        following = _behind_varint(octets, position, end)
        position = following + 1  # behind the attributes
        if length < 0 or length > end - following:
            raise InvalidRecords("a record is longer than its batch")
        following += length
        time_ms = append_ms if append_ms >= 0 else first_ms + _unzigzag(_varint(octets, position, end))
        position = _behind_varint(octets, position, end)
        delta = _varint(octets, position, end) >> 1
        if delta >= span.from_delta:
            key_at = _behind_varint(octets, position, end)
            key_size = _unzigzag(_varint(octets, key_at, end))
            key_at = _behind_varint(octets, key_at, end)
            key_bytes = key_size if key_size > 0 else 0
            if key_bytes > following - key_at:
                raise InvalidRecords("the key of a record is longer than the record")
            value_at = key_at + key_bytes
            value_size = _unzigzag(_varint(octets, value_at, end))
            value_at = _behind_varint(octets, value_at, end)
            value_bytes = value_size if value_size > 0 else 0
            if value_bytes > following - value_at:
                raise InvalidRecords("the value of a record is longer than the record")
            size = overhead + key_bytes + value_bytes
            if size > room - written:
                span.needed_bytes = size
                break
            if span.is_relative and written == 0:
                span.base_offset = -delta
            _put_int64(target, written, span.base_offset + delta)
            _put_int32(target, written + 8, size - 12)
            field = _put_head(target, written + 16, magic, append_ms, time_ms)
            field = _put_bytes(target, field, octets, key_at, key_size)
            field = _put_bytes(target, field, octets, value_at, value_size)
            _put_int32(target, written + 12, crc32(view[written + 16 : field]))
            if written == 0 or time_ms > span.latest_ms:
                span.latest_ms = time_ms
            span.last_delta = delta
            written = field
        span.index += 1
        span.position = position = following
    view.release()
    return written


def _put_head(target: bytearray, position: int, magic: int, append_ms: int, time_ms: int) -> int:
    """Write a message's fields from its magic up to its key; gives the position behind them."""
    target[position] = magic
    if magic == 0:
        target[position + 1] = 0
        return position + 2
    target[position + 1] = 8 if append_ms >= 0 else 0
    _put_int64(target, position + 2, time_ms)
    return position + 10


def _put_bytes(target: bytearray, position: int, octets: memoryview, start: int, size: int) -> int:
    """Write a key or a value with its length, -1 for null; gives the position behind it."""
    _put_int32(target, position, size)
    position += 4
    if size > 0:
        target[position : position + size] = octets[start : start + size]
        position += size
    return position


def _varint(octets: memoryview, position: int, end: int) -> int:
    """The varint at a position, whose zigzag is not undone. What is cut off counts as ended."""
    value = shift = 0
    byte = 128
    while byte >= 128 and position < end and shift < 64:
        byte = octets[position]
        position += 1
        value |= _shifted(byte & 127, shift)
        shift += 7
    return value


def _behind_varint(octets: memoryview, position: int, end: int) -> int:
    while position < end and octets[position] >= 128:
        position += 1
    return position + 1


def _int32(octets: memoryview, position: int) -> int:
    value = octets[position] << 24 | octets[position + 1] << 16 | octets[position + 2] << 8 | octets[position + 3]
    return value - (1 << 32) if value >= 1 << 31 else value


def _int64(octets: memoryview, position: int) -> int:
    low = _int32(octets, position + 4) & 0xFFFFFFFF
    return _int32(octets, position) * (1 << 32) + low


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _unzigzag(value: int) -> int:
    return -(value >> 1) - 1 if value & 1 else value >> 1


def _shifted(value: int, shift: int) -> int:
    return value << shift


def _varint_bytes(value: int) -> int:
    count = 1
    while value > 127:
        value >>= 7
        count += 1
    return count


def _put_varint(target: bytearray, position: int, value: int) -> int:
    while value > 127:
        target[position] = value & 127 | 128
        position += 1
        value >>= 7
    target[position] = value
    return position + 1


def _put_int32(target: bytearray, position: int, value: int) -> None:
    target[position] = value >> 24 & 255
    target[position + 1] = value >> 16 & 255
    target[position + 2] = value >> 8 & 255
    target[position + 3] = value & 255


def _put_int64(target: bytearray, position: int, value: int) -> None:
    _put_int32(target, position, value >> 32)
    _put_int32(target, position + 4, value)
