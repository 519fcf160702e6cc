"""The stored form of an Iggy batch, and reading it back as neutral records.

The body of a frame with `Magic.IGGY_BATCH` is

    byte  size  field
       0     1  layout     1 PLAIN, 2 SHORT, 3 LONG, 4 BATCH: see `millstream.wire.iggy.incoming`
       1     3  zeros
       4        the messages, as their producer sent them

What the server adds: an id where the producer gave none (not in BATCH, whose checksums are the producer's), and in
SHORT, LONG and BATCH the offset and the time of the append. In PLAIN, which has no places for them, they follow from
the frame's header: base offset, and the time in ms. All messages of a batch have the time of its append.

As a record, a message has its payload as the value, its producer's time in ms as the time (that of the append in
PLAIN, which knows no other), and these headers before its own:

    iggy.id                 the id, 32 hexadecimal digits, the most significant first
    iggy.origin-timestamp   the producer's time, microseconds since 1970, in decimal; not in PLAIN
    iggy.kinds              the kinds of its own headers, comma-separated, in order, such as "string,int32"; with
                            "=" behind the kind of a key that is not text ("uint8=raw"). Left out without headers.

A key that is not text is written in hexadecimal. Checksums of messages are not carried: each dialect sums up other
bytes, and the one that a reader gets is made for it. The header `millstream.key` is the record's key.
"""

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from millstream.model.frame import HEADER_BYTES, FrameHeader, Magic, frame_crc, read_frame_header
from millstream.model.record import Header, Record
from millstream.wire.iggy import message_walk
from millstream.wire.iggy.errors import DamagedBatch, Refused
from millstream.wire.iggy.headers import HeaderKind, UserHeader, read_headers
from millstream.wire.iggy.incoming import BATCH_HEADER_BYTES, Incoming, Layout, message_bytes

__all__ = [
    "BODY_POSITION",
    "ID_HEADER",
    "KEY_HEADER",
    "KINDS_HEADER",
    "ORIGIN_HEADER",
    "layout_of_frame",
    "messages_of",
    "read_frame",
    "seal",
    "starts_of",
    "walk_frame",
]

ID_HEADER: Final = "iggy.id"
ORIGIN_HEADER: Final = "iggy.origin-timestamp"
KINDS_HEADER: Final = "iggy.kinds"
KEY_HEADER: Final = "millstream.key"

_PREFIX_BYTES: Final = 4
BODY_POSITION: Final = HEADER_BYTES + _PREFIX_BYTES
"""Position in a frame of its messages."""
_FRAME_HEADER: Final = struct.Struct(">qiibIhiqqqhiiB3x")
"""A frame's header, and the prefix of its body."""
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 17
_LENGTH_OVERHEAD: Final = 12
_MESSAGE_BYTES_MIN: Final = 48
"""Bytes of a message in BATCH at least."""
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_BATCH_TIMES: Final = struct.Struct("<QQ")
_KIND_NAMES: Final = {kind.value: kind.name.lower() for kind in HeaderKind}


def seal(room: memoryview, incoming: Incoming, timestamp_ms: int) -> tuple[memoryview, FrameHeader]:
    """Make the frame in which a batch is stored.

    Args:
        room: the bytes at whose end the messages stand, if they do: where there is room before them, the frame is
            made in place and its messages are not copied. What stood there is overwritten.
        incoming: the messages, stamped.
        timestamp_ms: the time of the append.

    Returns:
        The frame and its header.
    """
    messages = incoming.messages
    start = len(room) - len(messages) - BODY_POSITION
    if start >= 0 and room.obj is messages.obj:
        frame = room[start:]
    else:
        frame = memoryview(bytearray(BODY_POSITION + len(messages)))
        frame[BODY_POSITION:] = messages
    count = incoming.count
    length = len(frame) - _LENGTH_OVERHEAD
    fields = 0, length, 0, Magic.IGGY_BATCH, 0, 0, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count
    _FRAME_HEADER.pack_into(frame, 0, *fields, incoming.layout)
    _CRC.pack_into(frame, _CRC_POSITION, frame_crc(frame))
    return frame, read_frame_header(frame)


def layout_of_frame(frame: memoryview) -> Layout:
    """The layout of a frame's messages. Raises DamagedBatch."""
    try:
        return Layout(frame[HEADER_BYTES])
    except (IndexError, ValueError):
        raise DamagedBatch("a batch of an unknown layout") from None


def messages_of(frame: memoryview) -> memoryview:
    """The messages of a frame, with the batch header for BATCH."""
    return frame[BODY_POSITION:]


def starts_of(frame: memoryview, layout: Layout, count: int) -> list[int]:
    """Where each message of a frame begins in `messages_of`, and where the last one ends.

    Args:
        count: of messages, from the frame's header.

    Raises:
        DamagedBatch: they do not fill the frame.
    """
    messages = messages_of(frame)
    position = BATCH_HEADER_BYTES if layout is Layout.BATCH else 0
    if layout is Layout.BATCH and message_walk.COMPILED and 0 < count <= len(messages) // _MESSAGE_BYTES_MIN:
        walked, checksums = array("q", bytes(8 * (count + 1))), bytearray(8 * count)
        limits = len(messages), len(messages)
        room = memoryview(walked), memoryview(checksums)
        if message_walk.walk(messages, position, count, *limits, *room) >= 0:
            return walked.tolist()
    starts = [position]
    try:
        for _ in range(count):
            position += message_bytes(layout, messages, position)
            starts.append(position)
    except struct.error:
        raise DamagedBatch("a batch ends before its messages do") from None
    if position != len(messages):
        raise DamagedBatch("the messages of a batch do not fill it")
    return starts


def walk_frame(frame: memoryview) -> Iterator[Record]:
    """Take a stored batch apart.

    Args:
        frame: one whole frame of `Magic.IGGY_BATCH`.

    Raises:
        DamagedBatch: it does not hold what it says.
    """
    header = read_frame_header(frame)
    layout = layout_of_frame(frame)
    messages = messages_of(frame)
    starts = starts_of(frame, layout, header.record_count)
    read = _READERS[layout]
    origin_us = _BATCH_TIMES.unpack_from(messages, 16)[1] if layout is Layout.BATCH else 0
    try:
        for index in range(header.record_count):
            message = messages[starts[index] : starts[index + 1]]
            id_, origin, block, payload = read(message, origin_us)
            own = read_headers(block, kinded_keys=layout >= Layout.LONG) if len(block) else ()
            headers, key = _neutral(id_, origin, own)
            yield Record(
                offset=header.base_offset + index,
                timestamp_ms=origin // 1000 or header.max_timestamp,
                key=key,
                value=bytes(payload),
                headers=headers,
                append_time=not origin,
            )
    except Refused as error:
        raise DamagedBatch(str(error)) from None


def read_frame(frame: memoryview) -> list[Record]:
    """All of `walk_frame`."""
    return list(walk_frame(frame))


_Parts = tuple[memoryview, int, memoryview, memoryview]
"""Id, producer's time (0 for none), headers, payload."""


def _read_plain(message: memoryview, _: int) -> _Parts:
    (headers,) = _U32.unpack_from(message, 16)
    return message[:16], 0, message[20 : 20 + headers], message[24 + headers :]


def _read_indexed(message: memoryview, header_bytes: int) -> _Parts:
    (origin_us,) = _U64.unpack_from(message, 40)
    (payload,) = _U32.unpack_from(message, 52)
    end = header_bytes + payload
    return message[8:24], origin_us, message[end:], message[header_bytes:end]


def _read_batched(message: memoryview, origin_us: int) -> _Parts:
    (delta_us,) = _U32.unpack_from(message, 28)
    (payload,) = _U32.unpack_from(message, 36)
    return message[8:24], origin_us + delta_us, message[48 + payload :], message[48 : 48 + payload]


_READERS: Final = {
    Layout.PLAIN: _read_plain,
    Layout.SHORT: lambda message, _: _read_indexed(message, 56),
    Layout.LONG: lambda message, _: _read_indexed(message, 64),
    Layout.BATCH: _read_batched,
}


def _neutral(id_: memoryview, origin_us: int, own: Sequence[UserHeader]) -> tuple[tuple[Header, ...], bytes | None]:
    """The headers of a record, and its key."""
    headers: list[Header] = [(ID_HEADER, bytes(id_)[::-1].hex().encode())]
    if origin_us:
        headers.append((ORIGIN_HEADER, b"%d" % origin_us))
    if not own:
        return tuple(headers), None
    kinds, carried = [], []
    key = None
    for header in own:
        name, kind = _name_of(header)
        if name == KEY_HEADER:
            key = header.value
            continue
        kinds.append(kind)
        carried.append((name, header.value))
    if kinds:
        headers.append((KINDS_HEADER, ",".join(kinds).encode()))
    return (*headers, *carried), key


def _name_of(header: UserHeader) -> tuple[str, str]:
    kind = _KIND_NAMES[header.kind]
    if header.key_kind == HeaderKind.STRING:
        try:
            return str(header.key, "utf-8"), kind
        except UnicodeDecodeError:
            pass
    return header.key.hex(), f"{_KIND_NAMES[header.key_kind]}={kind}"
