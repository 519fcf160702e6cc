"""Messages as the answer to a poll carries them.

    A, B    offset u64, state u8, timestamp u64, id 16, checksum u32 (CRC-32 of the payload), headers_len u32,
            headers, payload_len u32, payload
    C, D    the layouts of `millstream.wire.iggy.incoming`, with everything filled in

What was sent in the layout of the asking dialect is handed out as it is stored; all else goes through records.
"""

import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import xxhash

from millstream.model.frame import FrameHeader, Magic
from millstream.model.record import Record
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import PART_BYTES_MAX, HeaderKind, UserHeader, write_headers
from millstream.wire.iggy.incoming import BATCH_HEADER_BYTES, Layout, batch_checksum, layout_of
from millstream.wire.iggy.limits import HEADERS_BYTES_MAX
from millstream.wire.iggy.stored import (
    BODY_POSITION,
    ID_HEADER,
    KEY_HEADER,
    KINDS_HEADER,
    ORIGIN_HEADER,
    layout_of_frame,
    messages_of,
    starts_of,
)

__all__ = [
    "Message",
    "Slice",
    "encode_messages",
    "encode_runs",
    "message_of",
    "native_slice",
    "part_of_batch",
    "whole_batches",
]

Buffer = bytes | bytearray | memoryview
_PLAIN_HEAD: Final = struct.Struct("<QBQ16sII")
_PLAIN_BEFORE_ID: Final = struct.Struct("<QBQ")
_U32: Final = struct.Struct("<I")
_SHORT: Final = struct.Struct("<8x16sQQQII")
_LONG: Final = struct.Struct("<8x16sQQQII8x")
_MESSAGE: Final = struct.Struct("<16sIIIIQ")
_CHECKSUM: Final = struct.Struct("<Q")
_BATCH_HEADER: Final = struct.Struct("<QQQQQQI204x")
_BATCH_FIELDS: Final = struct.Struct("<QQQQQQI")
_AVAILABLE: Final = 1
"""The state of a message that can be read; this server knows no other."""
_DELTA_MAX: Final = 2**32 - 1
_TIME_MAX_MS: Final = (2**64 - 1) // 1000
_KINDS: Final = {kind.name.lower(): kind for kind in HeaderKind}
_SPAN: Final = struct.Struct(">qi4xb40xiB")
"""Of a frame: its base offset, its length, its magic, the count of its records, and the layout of its messages."""
_LENGTH_END: Final = 12


@dataclass(frozen=True, slots=True)
class Slice:
    """Messages of one frame, ready to be sent.

    Args:
        count: how many there are.
        last_offset: of the last of them.
        buffers: their bytes.
    """

    count: int
    last_offset: int
    buffers: list[Buffer]


def native_slice(
    frame: memoryview, header: FrameHeader, dialect: Dialect, first_offset: int, count: int
) -> Slice | None:
    """Messages of a frame that was written in the layout of the dialect that asks.

    Args:
        frame: one whole frame.
        header: its header.
        dialect: who asks.
        first_offset: of the first message wanted; in the frame.
        count: how many are wanted at most.

    Returns:
        None if the frame has another layout.

    Raises:
        DamagedBatch: the frame does not hold what its header says.
    """
    if header.magic != Magic.IGGY_BATCH:
        return None
    layout = layout_of_frame(frame)
    if layout is not layout_of(dialect):
        return None
    first = max(first_offset - header.base_offset, 0)
    stop = min(first + count, header.record_count)
    last_offset = header.base_offset + stop - 1
    messages = messages_of(frame)
    if layout is not Layout.PLAIN and not first and stop == header.record_count:
        return Slice(stop, last_offset, [messages])
    starts = starts_of(frame, layout, header.record_count)
    if layout is Layout.PLAIN:
        buffers = _plain(messages, starts, range(first, stop), header)
    elif layout is Layout.BATCH:
        buffers = part_of_batch(messages, starts, range(first, stop))
    else:
        buffers = [messages[starts[first] : starts[stop]]]
    return Slice(stop - first, last_offset, buffers)


def whole_batches(
    frames: memoryview, position: int, layout: Layout, first_offset: int, count: int
) -> tuple[Slice, int] | None:
    """The messages of as many frames in a row as can be handed out whole: the way nearly all are polled.

    Args:
        frames: whole frames of the log, one after the other.
        position: of the first of them to look at.
        layout: of the dialect that asks; not PLAIN, which is made anew for every answer.
        first_offset: of the first message wanted.
        count: how many are wanted at most.

    Returns:
        The messages, and the position of the first frame that is left; None if that is the first one.
    """
    buffers: list[Buffer] = []
    left, last_offset, end = count, -1, len(frames)
    unpack = _SPAN.unpack_from
    while position + BODY_POSITION < end:
        base_offset, length, magic, records, stored_layout = unpack(frames, position)
        if magic != Magic.IGGY_BATCH or stored_layout != layout or records > left or base_offset < first_offset:
            break
        start, position = position + BODY_POSITION, position + _LENGTH_END + length
        buffers.append(frames[start:position])
        left -= records
        last_offset = base_offset + records - 1
    return (Slice(count - left, last_offset, buffers), position) if buffers else None


def _plain(messages: memoryview, starts: list[int], indexes: range, header: FrameHeader) -> list[Buffer]:
    buffers: list[Buffer] = []
    timestamp_us = header.max_timestamp * 1000
    for index in indexes:
        start, end = starts[index], starts[index + 1]
        (headers,) = _U32.unpack_from(messages, start + 16)
        buffers += (
            _PLAIN_BEFORE_ID.pack(header.base_offset + index, _AVAILABLE, timestamp_us),
            messages[start : start + 16],
            _U32.pack(crc32(messages[start + 24 + headers : end])),
            messages[start + 16 : end],
        )
    return [b"".join(buffers)]


def part_of_batch(batch: memoryview, starts: list[int], indexes: range) -> list[Buffer]:
    """Some messages of a batch of BATCH, under a header of their own.

    Args:
        batch: with its header.
        starts: where each message begins, and where the last one ends.
        indexes: of the messages.
    """
    partition, base_offset, base_us, origin_us, _, _, _ = _BATCH_FIELDS.unpack_from(batch)
    part = batch[starts[indexes.start] : starts[indexes.stop]]
    checksums = b"".join([batch[at : at + _CHECKSUM.size] for at in starts[indexes.start : indexes.stop]])
    fields = partition, base_offset, base_us, origin_us, BATCH_HEADER_BYTES + len(part)
    return [_BATCH_HEADER.pack(*fields, batch_checksum(*fields, checksums), len(indexes)), part]


@dataclass(frozen=True, slots=True)
class Message:
    """A message of whatever origin, as Iggy's clients see it. `id` is 16 bytes in wire order."""

    offset: int
    timestamp_us: int
    origin_us: int
    id: bytes
    payload: bytes
    headers: list[UserHeader]


def message_of(record: Record, id_seed: bytes, append_time_ms: int | None = None) -> Message:
    """A record as a message.

    Headers of which Iggy has none (without a value, or of more than 255 bytes) are left out.

    Args:
        record: from a frame of any protocol.
        id_seed: names the partition; the id of a record without one follows from it and the offset.
        append_time_ms: when it was appended, where the record's own time is another.
    """
    names = dict(record.headers)
    kinds = (names.get(KINDS_HEADER) or b"").decode("utf-8", "replace").split(",")
    headers = [UserHeader(KEY_HEADER.encode(), record.key)] if _fits(record.key) and record.key else []
    timestamp_us = min(max(record.timestamp_ms, 0), _TIME_MAX_MS) * 1000
    own = [one for one in record.headers if one[0] not in {ID_HEADER, ORIGIN_HEADER, KINDS_HEADER}]
    told = kinds if len(kinds) == len(own) else ()
    for place, (name, value) in enumerate(own):
        header = _user_header(name, value, told[place] if told else "raw")
        if header is not None:
            headers.append(header)
    if sum(len(header.key) + len(header.value) + 10 for header in headers) > HEADERS_BYTES_MAX:
        headers = []
    return Message(
        record.offset,
        timestamp_us if append_time_ms is None else append_time_ms * 1000,
        _number(names.get(ORIGIN_HEADER), timestamp_us),
        _id(names.get(ID_HEADER), id_seed, record.offset),
        record.value or b"",
        headers,
    )


def _fits(part: bytes | None) -> bool:
    return part is not None and 1 <= len(part) <= PART_BYTES_MAX


def _user_header(name: str, value: bytes | None, kind: str) -> UserHeader | None:
    key_kind, equals, value_kind = kind.rpartition("=")
    key = name.encode("utf-8", "replace")
    if equals:
        try:
            key = bytes.fromhex(name)
        except ValueError:
            key_kind = "string"
    if value is None or not (_fits(key) and _fits(value)):
        return None
    return UserHeader(
        key,
        value,
        _KINDS.get(value_kind, HeaderKind.RAW),
        _KINDS.get(key_kind, HeaderKind.STRING) if equals else HeaderKind.STRING,
    )


def _number(text: bytes | None, default: int) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < 20 else default


def _id(text: bytes | None, seed: bytes, offset: int) -> bytes:
    try:
        given = bytes.fromhex((text or b"").decode("ascii", "replace"))[::-1]
    except ValueError:
        given = b""
    return given if len(given) == 16 else xxhash.xxh3_128_digest(seed + offset.to_bytes(8, "big"))


def encode_messages(messages: Sequence[Message], dialect: Dialect, partition: int) -> list[Buffer]:
    """Messages in the layout in which a dialect polls.

    Args:
        messages: by offset.
        dialect: who asks.
        partition: whose they are.
    """
    return [encode_runs(messages, layout_of(dialect), partition)[0]]


def encode_runs(
    messages: Sequence[Message], layout: Layout, partition: int
) -> "tuple[bytes, array[int], array[int]]":
    """Messages in a layout, PLAIN as that of polls.

    Args:
        messages: by offset.
        layout: of the dialect that asks.
        partition: whose they are.

    Returns:
        Their bytes; where each of them begins in there, and where the last one ends; and in BATCH, the index of the
        first message of each batch, before which its header stands. There is one for each run of messages with one
        time of append, which is its batch's there.
    """
    parts: list[bytes] = []
    starts, firsts = array("q"), array("q")
    position = 0
    if layout is not Layout.BATCH:
        encode = _ENCODERS[layout]
        for message in messages:
            starts.append(position)
            parts.append(encode(message))
            position += len(parts[-1])
    else:
        index = 0
        while index < len(messages):
            firsts.append(index)
            run = _run(messages, index)
            header, encoded = _batch(run, partition)
            parts += (header, *encoded)
            position += len(header)
            for one in encoded:
                starts.append(position)
                position += len(one)
            index += len(run)
    starts.append(position)
    return b"".join(parts), starts, firsts


def _encode_plain(message: Message) -> bytes:
    headers = write_headers(message.headers, kinded_keys=False)
    checksum = crc32(message.payload)
    head = _PLAIN_HEAD.pack(message.offset, _AVAILABLE, message.timestamp_us, message.id, checksum, len(headers))
    return b"".join((head, headers, _U32.pack(len(message.payload)), message.payload))


def _indexed(packer: struct.Struct, *, kinded_keys: bool) -> Callable[[Message], bytes]:
    def encode(message: Message) -> bytes:
        headers = write_headers(message.headers, kinded_keys=kinded_keys)
        times = message.offset, message.timestamp_us, message.origin_us
        return packer.pack(message.id, *times, len(headers), len(message.payload)) + message.payload + headers

    return encode


_ENCODERS: Final = {
    Layout.PLAIN: _encode_plain,
    Layout.SHORT: _indexed(_SHORT, kinded_keys=False),
    Layout.LONG: _indexed(_LONG, kinded_keys=True),
}


def _run(messages: Sequence[Message], start: int) -> Sequence[Message]:
    """The messages from one on that are one batch."""
    stop = start + 1
    while stop < len(messages) and _goes_on(messages[start], messages[stop]):
        stop += 1
    return messages[start:stop]


def _goes_on(first: Message, message: Message) -> bool:
    return (
        message.timestamp_us == first.timestamp_us
        and 0 <= message.origin_us - first.origin_us <= _DELTA_MAX
        and message.offset - first.offset <= _DELTA_MAX
    )


def _batch(run: Sequence[Message], partition: int) -> tuple[bytes, list[bytes]]:
    """The header of a batch, and its messages."""
    first = run[0]
    parts: list[bytes] = []
    checksums = bytearray()
    for message in run:
        headers = write_headers(message.headers, kinded_keys=True)
        deltas = message.offset - first.offset, message.origin_us - first.origin_us
        head = _MESSAGE.pack(message.id, *deltas, len(headers), len(message.payload), 0)
        summed = b"".join((head, message.payload, headers))
        checksum = _CHECKSUM.pack(xxhash.xxh3_64_intdigest(summed))
        checksums += checksum
        parts.append(checksum + summed)
    size_bytes = BATCH_HEADER_BYTES + sum(map(len, parts))
    fields = partition, first.offset, first.timestamp_us, first.origin_us, size_bytes
    return _BATCH_HEADER.pack(*fields, batch_checksum(*fields, checksums), len(run)), parts
