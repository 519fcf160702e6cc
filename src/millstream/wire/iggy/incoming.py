"""A batch of messages as its producer sent it: checked once, and made ready to be stored as it is.

There are four layouts, of which each dialect writes one:

    PLAIN     A, B      id 16, headers_len u32, headers, payload_len u32, payload
    SHORT     C1, C2    checksum u64, id 16, offset u64, timestamp u64, origin_timestamp u64, headers_len u32,
                        payload_len u32, payload, headers
    LONG      C3, D0    as SHORT, with a reserved u64 before the payload
    BATCH     D         a batch header of 256 bytes, then messages: checksum u64, id 16, offset_delta u32,
                        timestamp_delta u32, headers_len u32, payload_len u32, reserved u64, payload, headers

Where a layout has places for the offset and the time of the append, they are filled in before the batch is stored, in
the same pass that checks it, so that a poll hands out what is stored without touching a message.
"""

import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple
from zlib import crc32

import xxhash

from millstream.wire.iggy import message_walk
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.documented import with_headers
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import check_headers
from millstream.wire.iggy.limits import HEADERS_BYTES_MAX, MESSAGES_MAX, payload_bytes_max
from millstream.wire.iggy.messages.batches import SendMessages

Buffer = bytes | bytearray | memoryview

__all__ = [
    "BATCH_HEADER_BYTES",
    "Incoming",
    "Layout",
    "Stamp",
    "batch_checksum",
    "layout_of",
    "message_bytes",
    "take",
]


class Layout(IntEnum):
    """How the messages of a stored batch are laid out."""

    PLAIN = 1
    SHORT = 2
    LONG = 3
    BATCH = 4


_LAYOUTS: Final = {
    dialect: layout
    for layout, first, last in (
        (Layout.PLAIN, Dialect.A, Dialect.B3),
        (Layout.SHORT, Dialect.C1, Dialect.C2),
        (Layout.LONG, Dialect.C3, Dialect.D0),
        (Layout.BATCH, Dialect.D, Dialect.D12),
    )
    for dialect in Dialect
    if first <= dialect <= last
}


def layout_of(dialect: Dialect) -> Layout:
    """The layout in which a dialect sends, and in which it is answered, but for PLAIN."""
    return _LAYOUTS[dialect]


class Stamp(NamedTuple):
    """Where and when a batch is put.

    Args:
        partition: its number.
        base_offset: the offset of its first message.
        timestamp_us: the time of the append, microseconds since 1970.
    """

    partition: int
    base_offset: int
    timestamp_us: int


@dataclass(slots=True)
class Incoming:
    """Checked messages.

    Args:
        layout: how they are laid out.
        messages: their bytes, stamped, with the batch header for BATCH; writable.
        starts: the position of each message in there.
    """

    layout: Layout
    messages: memoryview
    starts: Sequence[int]

    @property
    def count(self) -> int:
        """How many messages there are."""
        return len(self.starts)

    def ids(self) -> list[bytes]:
        """The ids of the messages, 16 bytes each."""
        skipped = 0 if self.layout is Layout.PLAIN else _ID_POSITION
        return [bytes(self.messages[at + skipped : at + skipped + 16]) for at in self.starts]

    def only(self, kept: list[bool], stamp: Stamp) -> "Incoming":
        """Some of the messages, stamped anew.

        Args:
            kept: for each message whether it stays; one does at least.
        """
        ends = [*self.starts[1:], len(self.messages)]
        pieces = [self.messages[at:end] for at, end, keep in zip(self.starts, ends, kept, strict=True) if keep]
        head = self.messages[:BATCH_HEADER_BYTES] if self.layout is Layout.BATCH else b""
        messages = memoryview(bytearray(b"".join([head, *pieces])))
        starts, position = [], len(head)
        for piece in pieces:
            starts.append(position)
            position += len(piece)
        some = Incoming(self.layout, messages, starts)
        some.stamp(stamp)
        return some

    def stamp(self, stamp: Stamp) -> None:
        """Fill in where and when the messages are put, where the layout has places for it."""
        if self.layout is Layout.BATCH:
            _stamp_batch(self, stamp)
        elif self.layout is not Layout.PLAIN:
            for index, at in enumerate(self.starts):
                _OFFSET_AND_TIME.pack_into(
                    self.messages, at + _OFFSET_POSITION, stamp.base_offset + index, stamp.timestamp_us
                )


_U32: Final = struct.Struct("<I")
_ID_POSITION: Final = 8
_OFFSET_POSITION: Final = 24
_OFFSET_AND_TIME: Final = struct.Struct("<QQ")
_ID_TO_TIME: Final = struct.Struct("<QQQQQ")
_INDEXED: Final = struct.Struct("<QQQ24xII")
"""checksum, both halves of the id, and the lengths of headers and payload, in SHORT and LONG."""
_INDEX_ENTRY_WORDS: Final = 4
_INDEX_ENTRY_BYTES: Final = 16
_HEADER_BYTES: Final = {Layout.SHORT: 56, Layout.LONG: 64}
_MESSAGE: Final = struct.Struct("<QQQIIIIQ")
"""A message's header in BATCH."""
BATCH_HEADER_BYTES: Final = 256
_BATCH_HEADER: Final = struct.Struct("<QQQQQQI")
_BATCH_RESERVED_BYTES: Final = BATCH_HEADER_BYTES - _BATCH_HEADER.size
_BATCH_WHOLE_HEADER: Final = struct.Struct(f"{_BATCH_HEADER.format}{_BATCH_RESERVED_BYTES}s")
_BATCH_ZEROS: Final = bytes(_BATCH_RESERVED_BYTES)
_BATCH_SUMMED: Final = struct.Struct("<QQQQQI")
_CHECKSUM_BYTES: Final = 8
_WALKED_MIN: Final = 8
"""Messages from which on the compiled loop is worth what it takes to call it."""


def message_bytes(layout: Layout, messages: memoryview, position: int) -> int:
    """Bytes of the message at a position of a checked batch."""
    if layout is Layout.PLAIN:
        (headers,) = _U32.unpack_from(messages, position + 16)
        (payload,) = _U32.unpack_from(messages, position + 20 + headers)
        return 24 + int(headers) + int(payload)
    if layout is Layout.BATCH:
        *_, headers, payload, _ = _MESSAGE.unpack_from(messages, position)
        return _MESSAGE.size + int(headers) + int(payload)
    *_, headers, payload = _INDEXED.unpack_from(messages, position)
    return _HEADER_BYTES[layout] + int(headers) + int(payload)


def take(request: SendMessages, dialect: Dialect, stamp: Stamp, random_bytes: Callable[[int], bytes]) -> Incoming:
    """Check the messages of a request, and stamp them in place.

    Args:
        request: whose messages are writable.
        dialect: whose layout they have.
        stamp: where and when they are put.
        random_bytes: for the ids of messages that have none.

    Raises:
        Refused: anything is wrong with any of them.
    """
    layout = layout_of(dialect)
    if layout is Layout.PLAIN:
        try:
            return _take_plain(request.messages, dialect, random_bytes)
        except Refused:
            documented = with_headers(request.messages) if dialect is Dialect.A else None
            if documented is None:
                raise
            return _take_plain(documented, dialect, random_bytes)
    if not 1 <= request.count <= MESSAGES_MAX:
        code = ErrorCode.TOO_MANY_MESSAGES if request.count else ErrorCode.INVALID_MESSAGES_COUNT
        raise Refused(code, f"{request.count} messages")
    if layout is Layout.BATCH:
        return _take_batch(request.messages, request.count, stamp)
    return _take_indexed(request, layout, stamp, random_bytes)


def _take_plain(messages: memoryview, dialect: Dialect, random_bytes: Callable[[int], bytes]) -> Incoming:
    starts, nameless = [], []
    position, end = 0, len(messages)
    headers_bytes = payload_bytes = 0
    in_all = dialect is Dialect.A
    payload_max = payload_bytes_max(dialect)
    none = bytes(16)
    while position < end:
        if end - position < 24:
            raise Refused(ErrorCode.INVALID_MESSAGE_PAYLOAD_LENGTH, "a message is cut off")
        starts.append(position)
        if messages[position : position + 16] == none:
            nameless.append(position)
        (headers,) = _U32.unpack_from(messages, position + 16)
        position += 20
        if headers > HEADERS_BYTES_MAX and not in_all:
            raise Refused(ErrorCode.TOO_BIG_USER_HEADERS, f"headers of {headers} bytes")
        if headers > end - position - _U32.size:
            raise Refused(ErrorCode.INVALID_MESSAGE_PAYLOAD_LENGTH, "a message is cut off")
        if headers:
            values_max = HEADERS_BYTES_MAX - headers_bytes if in_all else None
            block = messages[position : position + headers]
            headers_bytes += check_headers(block, kinded_keys=False, value_bytes_max=values_max)
        (payload,) = _U32.unpack_from(messages, position + headers)
        position += headers + _U32.size + payload
        payload_bytes = payload_bytes + payload if in_all else payload
        _check_payload(payload, payload_bytes, payload_max)
        if position > end:
            raise Refused(ErrorCode.INVALID_MESSAGE_PAYLOAD_LENGTH, "a message is cut off")
    if not starts:
        raise Refused(ErrorCode.INVALID_MESSAGES_COUNT, "no messages")
    if len(starts) > MESSAGES_MAX:
        raise Refused(ErrorCode.TOO_MANY_MESSAGES, f"{len(starts)} messages")
    drawn = random_bytes(16 * len(nameless)) if nameless else b""
    for index, at in enumerate(nameless):
        messages[at : at + 16] = drawn[16 * index : 16 * index + 16]
    return Incoming(Layout.PLAIN, messages, starts)


def _check_payload(payload: int, payload_bytes: int, payload_max: int) -> None:
    if not payload:
        raise Refused(ErrorCode.EMPTY_MESSAGE_PAYLOAD, "a message without a payload")
    if payload_bytes > payload_max:
        raise Refused(ErrorCode.TOO_BIG_MESSAGE_PAYLOAD, f"a payload of {payload_bytes} bytes")


def _index_ends(body: memoryview, count: int) -> tuple[int, ...]:
    """Where each message ends, as the index in front of them has it."""
    if len(body) < count * _INDEX_ENTRY_BYTES:
        raise Refused(ErrorCode.INVALID_INDEXES_COUNT, f"an index of {count} messages in {len(body)} bytes")
    words = struct.unpack_from(f"<{count * _INDEX_ENTRY_WORDS}I", body)
    if any(words[0::_INDEX_ENTRY_WORDS]):
        raise Refused(ErrorCode.NON_ZERO_OFFSET, "an offset in the index of a request")
    if any(words[2::_INDEX_ENTRY_WORDS]) or any(words[3::_INDEX_ENTRY_WORDS]):
        raise Refused(ErrorCode.NON_ZERO_TIMESTAMP, "a time in the index of a request")
    return words[1::_INDEX_ENTRY_WORDS]


def _take_indexed(
    request: SendMessages, layout: Layout, stamp: Stamp, random_bytes: Callable[[int], bytes]
) -> Incoming:
    count = request.count
    ends = _index_ends(request.messages, count)
    messages = request.messages[count * _INDEX_ENTRY_BYTES :]
    # With none beyond the last, whatever order they are in, nothing is looked for behind the end.
    if ends[-1] != len(messages) or max(ends) != ends[-1]:
        raise Refused(ErrorCode.INVALID_MESSAGES_SIZE, f"{len(messages)} bytes of messages where {ends[-1]} are due")
    header_bytes = _HEADER_BYTES[layout]
    payload_max = payload_bytes_max(Dialect.C3)
    starts = [0, *ends[:-1]]
    drawn: Iterator[int] | None = None
    unpack, pack_into = _INDEXED.unpack_from, _ID_TO_TIME.pack_into
    offset, timestamp_us = stamp.base_offset, stamp.timestamp_us
    for at, stop in zip(starts, ends, strict=True):
        if stop - at < header_bytes:
            raise Refused(ErrorCode.TOO_SMALL_MESSAGE, f"a message of {stop - at} bytes")
        checksum, id_low, id_high, headers, payload = unpack(messages, at)
        if stop - at != header_bytes + headers + payload:
            raise Refused(ErrorCode.INVALID_MESSAGE_PAYLOAD_LENGTH, "a message's lengths and the index disagree")
        if not 0 < payload <= payload_max:
            _check_payload(payload, payload, payload_max)
        if headers:
            if headers > HEADERS_BYTES_MAX:
                raise Refused(ErrorCode.TOO_BIG_USER_HEADERS, f"headers of {headers} bytes")
            check_headers(messages[stop - headers : stop], kinded_keys=layout is Layout.LONG)
        if checksum:
            _check_sum(messages[at + 8 : stop], checksum)
        if not (id_low or id_high):
            if drawn is None:
                drawn = iter(struct.unpack(f"<{2 * count}Q", random_bytes(16 * count)))
            id_low, id_high = next(drawn), next(drawn)
        # Our frames have a checksum of their own, so that none is made for each message: 0 says so.
        pack_into(messages, at, 0, id_low, id_high, offset, timestamp_us)
        offset += 1
    return Incoming(layout, messages, starts)


def _check_sum(summed: memoryview, checksum: int) -> None:
    if checksum not in {xxhash.xxh3_64_intdigest(summed), crc32(summed)}:
        raise Refused(ErrorCode.INVALID_MESSAGE_CHECKSUM, "the checksum of a message is wrong")


def _take_batch(batch: memoryview, count: int, stamp: Stamp) -> Incoming:
    if len(batch) < BATCH_HEADER_BYTES:
        raise Refused(ErrorCode.INVALID_COMMAND, f"a batch of {len(batch)} bytes is shorter than its header")
    fields = _BATCH_WHOLE_HEADER.unpack_from(batch)
    partition, base_offset, base_us, origin_us, size_bytes, checksum, said_count, reserved = fields
    if size_bytes != len(batch):
        raise Refused(ErrorCode.INVALID_MESSAGES_SIZE, f"a batch says it has {size_bytes} bytes and has {len(batch)}")
    if said_count != count:
        raise Refused(ErrorCode.INVALID_MESSAGES_COUNT, f"{count} messages in a batch of {said_count}")
    if reserved != _BATCH_ZEROS:
        raise Refused(ErrorCode.INVALID_RESERVED_FIELD, "a reserved field of a batch is not 0")
    places = _walked(batch, count) if message_walk.COMPILED and count >= _WALKED_MIN else None
    starts, checksums = places or _places(batch, count)
    if checksum != batch_checksum(partition, base_offset, base_us, origin_us, size_bytes, checksums):
        raise Refused(ErrorCode.INVALID_BATCH_CHECKSUM, "the checksum of a batch is wrong")
    _write_batch_header(batch, stamp, origin_us, checksums)
    return Incoming(Layout.BATCH, batch, starts)


def _walked(batch: memoryview, count: int) -> tuple[Sequence[int], Buffer] | None:
    """As `_places`, with the compiled loop; None if anything is wrong, which `_places` is to find."""
    if count * _MESSAGE.size > len(batch):
        return None
    starts, checksums = array("q", bytes(8 * (count + 1))), bytearray(_CHECKSUM_BYTES * count)
    limits = payload_bytes_max(Dialect.D), HEADERS_BYTES_MAX
    with_headers = message_walk.walk(
        batch, BATCH_HEADER_BYTES, count, *limits, memoryview(starts), memoryview(checksums)
    )
    if with_headers:
        return None
    places = starts.tolist()
    end = places.pop()
    digest, stops = xxhash.xxh3_64_digest, [*places[1:], end]
    found = b"".join([digest(batch[at + 8 : stop]) for at, stop in zip(places, stops, strict=True)])
    # Digests have the most significant byte first.
    expected = array("Q", checksums)
    expected.byteswap()
    return (places, checksums) if found == expected.tobytes() else None


def _places(batch: memoryview, count: int) -> tuple[Sequence[int], Buffer]:
    """Where the messages of a batch begin, and their checksums as they stand there, all checked."""
    payload_max = payload_bytes_max(Dialect.D)
    position, end = BATCH_HEADER_BYTES, len(batch)
    starts, checksums = [], bytearray()
    unpack, digest = _MESSAGE.unpack_from, xxhash.xxh3_64_intdigest
    for index in range(count):
        if end - position < _MESSAGE.size:
            raise Refused(ErrorCode.TOO_SMALL_MESSAGE, "a message is cut off")
        checksum, _, _, offset_delta, _, headers, payload, reserved = unpack(batch, position)
        stop = position + _MESSAGE.size + headers + payload
        if stop > end:
            raise Refused(ErrorCode.INVALID_MESSAGE_PAYLOAD_LENGTH, "a message is cut off")
        if offset_delta != index:
            raise Refused(ErrorCode.INVALID_OFFSET, f"message {index} says it is message {offset_delta}")
        if reserved:
            raise Refused(ErrorCode.INVALID_RESERVED_FIELD, "a reserved field of a message is not 0")
        if not 0 < payload <= payload_max:
            _check_payload(payload, payload, payload_max)
        if headers:
            if headers > HEADERS_BYTES_MAX:
                raise Refused(ErrorCode.TOO_BIG_USER_HEADERS, f"headers of {headers} bytes")
            check_headers(batch[stop - headers : stop], kinded_keys=True)
        summed_from = position + _CHECKSUM_BYTES
        if digest(batch[summed_from:stop]) != checksum:
            raise Refused(ErrorCode.INVALID_MESSAGE_CHECKSUM, f"the checksum of message {index} is wrong")
        starts.append(position)
        checksums += batch[position:summed_from]
        position = stop
    if position != end:
        raise Refused(ErrorCode.INVALID_MESSAGES_SIZE, f"{end - position} bytes follow the last message of a batch")
    return starts, checksums


def batch_checksum(
    partition: int, base_offset: int, base_us: int, origin_us: int, size_bytes: int, checksums: Buffer
) -> int:
    """The checksum of a batch in dialect D, over its header's fields and the checksums of its messages, as they stand
    there, one after the other."""
    count = len(checksums) // _CHECKSUM_BYTES
    fields = _BATCH_SUMMED.pack(partition, base_offset, base_us, origin_us, size_bytes, count)
    return xxhash.xxh3_64_intdigest(fields + checksums)


def _write_batch_header(batch: memoryview, stamp: Stamp, origin_us: int, checksums: Buffer) -> None:
    fields = *stamp, origin_us, len(batch)
    checksum, count = batch_checksum(*fields, checksums), len(checksums) // _CHECKSUM_BYTES
    _BATCH_HEADER.pack_into(batch, 0, *fields, checksum, count)


def _stamp_batch(incoming: Incoming, stamp: Stamp) -> None:
    """Number the messages of a batch of which some were taken out, and sum them up again."""
    batch = incoming.messages
    checksums = bytearray()
    for index, at in enumerate(incoming.starts):
        _U32.pack_into(batch, at + 24, index)
        summed = batch[at + _CHECKSUM_BYTES : at + message_bytes(Layout.BATCH, batch, at)]
        struct.pack_into("<Q", batch, at, xxhash.xxh3_64_intdigest(summed))
        checksums += batch[at : at + _CHECKSUM_BYTES]
    origin_us = _BATCH_HEADER.unpack_from(batch)[3]
    _write_batch_header(batch, stamp, origin_us, checksums)
