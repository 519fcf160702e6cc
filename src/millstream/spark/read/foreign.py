"""Plain batches of other protocols to columns, without a Python object for any message.

Plain is what clients send day by day: Kafka 0.7 messages that are not compressed; Iggy messages without headers;
Pulsar messages, compressed or not, that are not encrypted, not chunks and not taken out by compaction. What is not
plain, and headers of any of them, goes the way that every reader of another protocol goes: `wire.translation`. Both
give the same rows.
"""

import struct
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from millstream.model.frame import HEADER_BYTES, Attributes, FrameHeader, Magic
from millstream.spark.read.fields import Spans
from millstream.spark.read.frames import Frame
from millstream.spark.read.strides import Head, begins_of
from millstream.spark.read.varints import Bytes, Ints, OutOfBody, read_varints
from millstream.wire.errors import WireError

__all__ = ["NotPlain", "PlainFields", "plain_fields"]

_U32: Final = struct.Struct(">I")
_LITTLE_U32: Final = struct.Struct("<I")
_ROUNDS_MAX: Final = 16
"""Fields of the metadata of one message that are read at most; a message with many properties is not plain."""


_UNPACKED_BYTES_MAX: Final = 64 * 1024 * 1024
"""What compressed entries may unpack to, all that are read together."""


class NotPlain(Exception):
    """A batch is not what this module can read."""


class PlainFields(NamedTuple):
    """The fields of the messages of some frames.

    Args:
        body: what keys and values stand in.
        counts: messages of each frame.
        key: where they stand, or themselves; None if no message has one.
        value: of each message.
        times: ms since 1970, of each message.
        is_append_time: of each frame, whether they are the log's.
    """

    body: bytes
    counts: Ints
    key: Spans | list[bytes | None] | None
    value: Spans
    times: Ints
    is_append_time: Bytes


def plain_fields(data: bytes, frames: Sequence[Frame]) -> PlainFields:
    """Read frames.

    Args:
        data: the piece that they stand in.
        frames: all of one encoding, one of another protocol; all with as many records as offsets.

    Raises:
        NotPlain: one of them is not plain, or not sound.
    """
    try:
        match frames[0].header.magic:
            case Magic.KAFKA07_SET:
                return _kafka07(data, frames)
            case Magic.IGGY_BATCH:
                return _iggy(data, frames)
            case Magic.PULSAR_ENTRY:
                return _pulsar(data, frames)
    except (OutOfBody, IndexError, OverflowError, struct.error, WireError) as error:
        raise NotPlain(str(error)) from None
    raise NotPlain("an unknown encoding")


def _counts(frames: Sequence[Frame]) -> Ints:
    return np.array([frame.header.record_count for frame in frames], dtype=np.int64)


def _per_record(values: Sequence[int], counts: Ints) -> Ints:
    return np.repeat(np.array(values, dtype=np.int64), counts)


def _check_ends(begins: Ints, ends: Ints, spans: Sequence[tuple[int, int, int]]) -> None:
    """Check that each message ends where the next one begins, and the last of a frame with it."""
    due = np.empty_like(ends)
    due[:-1] = begins[1:]
    lasts = np.cumsum([count for _, _, count in spans]) - 1
    due[lasts] = [end for _, end, _ in spans]
    if (ends != due).any():
        raise NotPlain("its messages do not fill it")


def _big(buffer: Bytes, positions: Ints) -> Ints:
    """A big-endian uint32 at each of many positions."""
    parts = [buffer[positions + at].astype(np.int64) << shift for at, shift in enumerate((24, 16, 8, 0))]
    return parts[0] | parts[1] | parts[2] | parts[3]


def _little(buffer: Bytes, positions: Ints, size: int) -> Ints:
    """A little-endian number of so many bytes at each of many positions."""
    result = buffer[positions].astype(np.int64)
    for at in range(1, size):
        result |= buffer[positions + at].astype(np.int64) << 8 * at
    return result


# Kafka 0.7


def _kafka07_head(body: bytes, position: int) -> Head:
    return 4 + _U32.unpack_from(body, position)[0], ((0, 4),)


def _kafka07(data: bytes, frames: Sequence[Frame]) -> PlainFields:
    counts = _counts(frames)
    spans = [(f.position + HEADER_BYTES, f.position + f.header.size, f.header.record_count) for f in frames]
    buffer = np.frombuffer(data, dtype=np.uint8)
    begins = begins_of(data, buffer, spans, _kafka07_head)
    lengths, magics = _big(buffer, begins), buffer[begins + 4]
    ends = begins + 4 + lengths
    if (magics > 1).any() or (lengths < 5 + magics).any() or ((magics == 1) & (buffer[begins + 5] & 3 > 0)).any():
        raise NotPlain("a message is compressed")
    _check_ends(begins, ends, spans)
    value = Spans(begins + 9 + magics, ends, np.ones(len(begins), dtype=np.bool_))
    times = _per_record([frame.header.max_timestamp for frame in frames], counts)
    return PlainFields(data, counts, None, value, times, np.ones(len(frames), dtype=np.uint8))


# Iggy


class _Layout(NamedTuple):
    """Where numbers stand in a message of a layout; see `millstream.wire.iggy.incoming`."""

    headers_at: int
    payload_at: int
    head_bytes: int


_LAYOUTS: Final = {1: _Layout(16, 20, 24), 2: _Layout(48, 52, 56), 3: _Layout(48, 52, 64), 4: _Layout(32, 36, 48)}
_PLAIN_LAYOUT: Final = 1
_BATCH_LAYOUT: Final = 4
_BATCH_HEADER_BYTES: Final = 256
_BATCH_ORIGIN_AT: Final = 24
_PREFIX_BYTES: Final = 4


def _iggy(data: bytes, frames: Sequence[Frame]) -> PlainFields:
    counts = _counts(frames)
    number = data[frames[0].position + HEADER_BYTES]
    layout = _LAYOUTS.get(number)
    if layout is None or any(data[frame.position + HEADER_BYTES] != number for frame in frames):
        raise NotPlain("frames of several layouts")
    skipped = HEADER_BYTES + _PREFIX_BYTES + (_BATCH_HEADER_BYTES if number == _BATCH_LAYOUT else 0)
    spans = [(f.position + skipped, f.position + f.header.size, f.header.record_count) for f in frames]
    stretches = ((layout.headers_at, layout.payload_at + 4),)

    def head(body: bytes, position: int) -> Head:
        return layout.head_bytes + _LITTLE_U32.unpack_from(body, position + layout.payload_at)[0], stretches

    buffer = np.frombuffer(data, dtype=np.uint8)
    begins = begins_of(data, buffer, spans, head)
    if _little(buffer, begins + layout.headers_at, 4).any():
        raise NotPlain("a message has headers")
    values = begins + layout.head_bytes
    ends = values + _little(buffer, begins + layout.payload_at, 4)
    _check_ends(begins, ends, spans)
    times = _per_record([frame.header.max_timestamp for frame in frames], counts)
    is_append_time = np.ones(len(frames), dtype=np.uint8)
    if number != _PLAIN_LAYOUT:
        if number == _BATCH_LAYOUT:
            bases = np.array(
                [begin - _BATCH_HEADER_BYTES + _BATCH_ORIGIN_AT for begin, _, _ in spans], dtype=np.int64
            )
            origins = np.repeat(_little(buffer, bases, 8), counts) + _little(buffer, begins + 28, 4)
        else:
            origins = _little(buffer, begins + 40, 8)
        if (origins < 0).any():
            raise NotPlain("a time has more than 63 bits")
        times = np.where(origins // 1000 > 0, origins // 1000, times)
        firsts = np.cumsum(counts) - counts
        is_append_time = (~np.logical_or.reduceat(origins > 0, firsts)).astype(np.uint8)
    value = Spans(values, ends, np.ones(len(begins), dtype=np.bool_))
    return PlainFields(data, counts, None, value, times, is_append_time)


# Pulsar

_PROPERTY, _KEY, _PAYLOAD_SIZE, _COMPACTED_OUT, _EVENT_TIME = 1, 2, 3, 4, 5
_KEY_IS_BASE64, _ORDERING_KEY, _SEQUENCE_ID, _NULL_VALUE, _NULL_KEY = 6, 7, 8, 9, 10
_PAYLOAD_SIZE_TAG: Final = _PAYLOAD_SIZE << 3


def _pulsar_head(body: bytes, position: int) -> Head:
    """Read the metadata of a message up to the size of its payload."""
    size = _U32.unpack_from(body, position)[0]
    at = position + 4
    end = at + size
    while at < end:
        tag = body[at]
        number, after = _varint(body, at + 1)
        if tag == _PAYLOAD_SIZE_TAG:
            return 4 + size + number, ((0, 4), (at - position, after - position))
        at = after + number if tag & 7 == 2 else after
    raise NotPlain("a message without the size of its payload")


def _varint(body: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise OutOfBody("a varint has more than 64 bits")


class _Bodies(NamedTuple):
    """The payloads of entries, and what their metadata says of all of their messages.

    Args:
        body: what the payloads stand in.
        spans: of each, the positions between which it stands, and how many messages it holds.
        times: ms since 1970.
        is_append_time: whether they are the log's.
        keys: of entries that are one message each; None if they are batches.
        is_null: of entries that are one message each, whether its value is.
    """

    body: bytes
    spans: list[tuple[int, int, int]]
    times: list[int]
    is_append_time: Bytes
    keys: list[bytes | None] | None
    is_null: list[bool]


def _pulsar(data: bytes, frames: Sequence[Frame]) -> PlainFields:
    bodies = _payloads(data, frames)
    counts = _counts(frames)
    body, spans = bodies.body, bodies.spans
    if bodies.keys is not None:
        begins, ends = (np.array([span[at] for span in spans], dtype=np.int64) for at in (0, 1))
        value = Spans(begins, ends, ~np.array(bodies.is_null, dtype=np.bool_))
        keys = bodies.keys if any(key is not None for key in bodies.keys) else None
        return PlainFields(body, counts, keys, value, np.array(bodies.times, np.int64), bodies.is_append_time)
    buffer = np.frombuffer(body, dtype=np.uint8)
    begins = begins_of(body, buffer, spans, _pulsar_head)
    found = _singles(buffer, begins)
    _check_ends(begins, found.value.ends, spans)
    defaults = _per_record(bodies.times, counts)
    is_append_time = np.repeat(bodies.is_append_time, counts).astype(np.bool_)
    times = np.where((found.event_times > 0) & ~is_append_time, found.event_times, defaults)
    return PlainFields(body, counts, found.key, found.value, times, bodies.is_append_time)


def _payloads(data: bytes, frames: Sequence[Frame]) -> _Bodies:
    from millstream.wire.pulsar.entry import read_entry, uncompressed_payload
    from millstream.wire.pulsar.sticky_key import partition_key

    view = memoryview(data)
    payloads: list[memoryview] = []
    in_place: list[int] = []
    times: list[int] = []
    keys: list[bytes | None] = []
    is_null: list[bool] = []
    room_bytes = _UNPACKED_BYTES_MAX
    for position, header, _ in frames:
        entry = read_entry(view[position + HEADER_BYTES : position + header.size])
        metadata = entry.metadata
        is_taken_apart = entry.is_encrypted or entry.is_chunk or metadata.compacted_batch_indexes
        count = metadata.num_messages_in_batch if entry.is_batch else 1
        if is_taken_apart or count != header.record_count:
            raise NotPlain("not a plain batch")
        if not entry.is_batch:
            keys.append(partition_key(metadata))
            is_null.append(metadata.null_value)
        payloads.append(uncompressed_payload(entry) if metadata.compression else entry.payload)
        room_bytes -= len(payloads[-1])
        if room_bytes < 0:
            raise NotPlain("too much to be unpacked at once")
        in_place.append(-1 if metadata.compression else position + header.size - len(entry.payload))
        times.append(_time(header, metadata.publish_time, 0 if entry.is_batch else metadata.event_time))
    if keys and len(keys) < len(frames):
        raise NotPlain("batches and single messages")
    if min(in_place) < 0:
        body = b"".join(payloads)
        ends = list(accumulate(map(len, payloads)))
        begins = [0, *ends[:-1]]
    else:
        # Nothing was packed: the messages are read where they stand.
        body, begins = data, in_place
    spans = [
        (begin, begin + len(payload), frame.header.record_count)
        for begin, payload, frame in zip(begins, payloads, frames, strict=True)
    ]
    appended = [bool(frame.header.attributes & Attributes.LOG_APPEND_TIME) for frame in frames]
    return _Bodies(body, spans, times, np.array(appended, dtype=np.uint8), keys or None, is_null)


def _time(header: FrameHeader, publish_time_ms: int, event_time_ms: int) -> int:
    if header.attributes & Attributes.LOG_APPEND_TIME:
        return header.max_timestamp
    return event_time_ms or publish_time_ms


class _Singles(NamedTuple):
    """What the metadata of messages says."""

    key: Spans | None
    value: Spans
    event_times: Ints


def _singles(buffer: Bytes, begins: Ints) -> _Singles:
    """Read the metadata of many messages: the n-th field of all of them in one go, for n = 0, 1, ..."""
    count = len(begins)
    ends = begins + 4 + _big(buffer, begins)
    sizes = np.full(count, -1, dtype=np.int64)
    event_times = np.zeros(count, dtype=np.int64)
    key = Spans(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.bool_))
    is_null_key = np.zeros(count, np.bool_)
    is_valid = np.ones(count, np.bool_)
    rows, positions = np.arange(count), begins + 4
    for _ in range(_ROUNDS_MAX):
        more = positions < ends[rows]
        rows, positions = rows[more], positions[more]
        if not rows.size:
            break
        tags = buffer[positions]
        numbers, after = read_varints(buffer, positions + 1)
        fields, kinds = tags >> 3, tags & 7
        is_text = kinds == 2
        positions = np.where(is_text, after + numbers, after)
        if (~is_text & (kinds != 0)).any() or ((numbers < 0) | (is_text & (numbers > len(buffer)))).any():
            raise NotPlain("metadata that is not as it was expected")
        if (positions > ends[rows]).any():
            raise NotPlain("metadata that is not as it was expected")
        if (is_text != np.isin(fields, (_PROPERTY, _KEY, _ORDERING_KEY))).any() or (fields > _NULL_KEY).any():
            raise NotPlain("metadata with fields that are not known here")
        if (np.isin(fields, (_COMPACTED_OUT, _KEY_IS_BASE64)) & (numbers != 0)).any():
            raise NotPlain("a message that was taken out, or a key that is not as it stands")
        sizes[rows[fields == _PAYLOAD_SIZE]] = numbers[fields == _PAYLOAD_SIZE]
        event_times[rows[fields == _EVENT_TIME]] = numbers[fields == _EVENT_TIME]
        is_valid[rows[fields == _NULL_VALUE]] = numbers[fields == _NULL_VALUE] == 0
        is_null_key[rows[fields == _NULL_KEY]] = numbers[fields == _NULL_KEY] != 0
        is_key = fields == _KEY
        key.begins[rows[is_key]], key.ends[rows[is_key]] = after[is_key], positions[is_key]
        key.is_valid[rows[is_key]] = True
    else:
        raise NotPlain("metadata with many fields")
    if (sizes < 0).any():
        raise NotPlain("a message without the size of its payload")
    key.is_valid[is_null_key] = False
    value = Spans(ends, ends + sizes, is_valid)
    return _Singles(_placed(key, begins) if key.is_valid.any() else None, value, event_times)


def _placed(key: Spans, begins: Ints) -> Spans:
    """Keys that are not there get a place of no length, so that all stand in order."""
    missing = key.begins == 0
    return Spans(np.where(missing, begins, key.begins), np.where(missing, begins, key.ends), key.is_valid)
