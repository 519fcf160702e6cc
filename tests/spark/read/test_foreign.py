"""Batches of other protocols: the short way gives the rows that the long way gives, through neutral records."""

import struct
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.model.frame import HEADER_BYTES, Attributes, frame_crc, set_base_offset
from millstream.spark.read import decoder
from millstream.spark.read.decoder import Decoder
from millstream.spark.read.foreign import NotPlain, plain_fields
from millstream.spark.read.frames import walk
from millstream.wire.compression import Codec
from millstream.wire.iggy.incoming import Incoming, Layout
from millstream.wire.iggy.stored import seal
from millstream.wire.kafka07.frames import build_frame as build_kafka07
from millstream.wire.kafka07.messages import encode_message, encode_wrapper
from millstream.wire.pulsar.compression import compress
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.pulsar_pb2 import (
    LZ4,
    NONE,
    SNAPPY,
    ZLIB,
    ZSTD,
    EncryptionKeys,
    MessageMetadata,
    Property,
    SingleMessageMetadata,
)
from millstream.wire.pulsar.stored_frame import build_frame as build_pulsar

_TYPES: dict[str, Any] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "protocol": pa.string(),
    "codec": pa.string(),
    "producerId": pa.int64(),
}
_SCHEMA = pa.schema(list(_TYPES.items()))
_NOW_MS = 1_700_000_000_000

# Values of one length in a row are what the short cut is for.
_value = st.one_of(st.binary(max_size=300), st.sampled_from([b"", b"x" * 100]))
_values = st.one_of(
    st.lists(_value, min_size=1, max_size=40),
    st.tuples(_value, st.integers(1, 200)).map(lambda pair: [pair[0]] * pair[1]),
)
_property = st.builds(Property, key=st.just(b"p"), value=st.binary(max_size=5).map(lambda b: b.hex().encode()))
_single = st.builds(
    SingleMessageMetadata,
    partition_key=st.one_of(st.none(), st.binary(max_size=9).map(lambda b: b.hex().encode())),
    event_time=st.one_of(st.none(), st.integers(0, 2**45)),
    sequence_id=st.one_of(st.none(), st.integers(0, 2**60)),
    null_value=st.one_of(st.none(), st.booleans()),
    null_partition_key=st.one_of(st.none(), st.booleans()),
    ordering_key=st.one_of(st.none(), st.binary(max_size=4)),
    properties=st.lists(_property, max_size=3),
)
_layouts = st.sampled_from(Layout)


def _iggy(layout: Layout, values: Sequence[bytes], times_us: Sequence[int]) -> bytearray:
    """A stored batch of messages without headers."""
    messages, starts = bytearray(), []
    if layout is Layout.BATCH:
        messages += bytes(16) + struct.pack("<QQ", _NOW_MS * 1000, 1_600_000_000_000_000) + bytes(224)
    for number, (value, time_us) in enumerate(zip(values, times_us, strict=True)):
        starts.append(len(messages))
        id_ = struct.pack("<QQ", number, 77)
        if layout is Layout.PLAIN:
            messages += id_ + struct.pack("<II", 0, len(value)) + value
        elif layout is Layout.BATCH:
            messages += bytes(8) + id_ + struct.pack("<IIIIQ", number, time_us % 2**32, 0, len(value), 0) + value
        else:
            reserved = b"" if layout is Layout.SHORT else bytes(8)
            messages += bytes(8) + id_ + struct.pack("<QQQII", number, 0, time_us, 0, len(value)) + reserved + value
    frame, _ = seal(memoryview(bytearray(messages)), Incoming(layout, memoryview(messages), starts), _NOW_MS)
    return bytearray(frame)


def _kafka07(messages: bytes, count: int) -> bytearray:
    return build_kafka07(messages, count, _NOW_MS)


def _pulsar(
    messages: Sequence[tuple[SingleMessageMetadata, bytes]], compression: int = NONE, **fields: Any
) -> bytearray:
    """A stored batch."""
    payload = b""
    for metadata, value in messages:
        metadata.payload_size = len(value)
        head = metadata.SerializeToString()
        payload += struct.pack(">I", len(head)) + head + value
    whole = MessageMetadata(producer_name="p", sequence_id=1, publish_time=_NOW_MS + 1, **fields)
    whole.num_messages_in_batch = len(messages)
    return _pulsar_entry(whole, payload, compression)


def _pulsar_entry(metadata: MessageMetadata, payload: bytes, compression: int = NONE) -> bytearray:
    if compression != NONE:
        metadata.compression, metadata.uncompressed_size = compression, len(payload)
        payload = bytes(compress(compression, payload))
    data = memoryview(encode_entry(metadata, payload))
    return build_pulsar(data, check_entry(data))


def _piece(frames: Sequence[bytearray], base_offset: int = 5) -> tuple[bytes, int]:
    offset = base_offset
    for frame in frames:
        set_base_offset(memoryview(frame), offset)
        offset += struct.unpack_from(">i", frame, 23)[0] + 1
    return b"".join(frames), offset


def _rows(piece: bytes, start: int, end: int) -> list[dict[str, Any]]:
    walked = walk(memoryview(piece), None, start, end)
    assert walked.next_offset >= end
    batches = list(Decoder(_SCHEMA, "t", 3).decode(piece, walked.found, start, end))
    for batch in batches:
        batch.validate(full=True)
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, _SCHEMA).to_pylist()
    return rows


def _check(frames: Sequence[bytearray], start: int = 5, end: int | None = None, *, is_plain: bool = True) -> None:
    """Read both ways."""
    piece, behind = _piece(frames)
    end = behind if end is None else end
    with mock.patch.object(decoder, "plain_fields", side_effect=NotPlain("not this time")):
        expected = _rows(piece, start, end)
    ways = []

    def note(data: bytes, found: Any) -> Any:
        try:
            fields = plain_fields(data, found)
        except NotPlain as error:
            ways.append(str(error))
            raise
        ways.append("")
        return fields

    with mock.patch.object(decoder, "plain_fields", note):
        assert _rows(piece, start, end) == expected
    assert all((not way) == is_plain for way in ways), ways


_settings = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@_settings
@given(st.lists(st.tuples(_values, st.integers(0, 1)), min_size=1, max_size=4))
def test_kafka07(batches: list[tuple[list[bytes], int]]) -> None:
    _check([_kafka07(b"".join(encode_message(v, magic) for v in values), len(values)) for values, magic in batches])


@_settings
@given(_layouts, st.lists(_values, min_size=1, max_size=4), st.data())
def test_iggy(layout: Layout, batches: list[list[bytes]], data: st.DataObject) -> None:
    time = st.one_of(st.just(0), st.integers(0, 2**51))
    frames = [
        _iggy(layout, values, data.draw(st.lists(time, min_size=len(values), max_size=len(values))))
        for values in batches
    ]
    _check(frames)


@_settings
@given(
    st.lists(
        st.tuples(st.lists(st.tuples(_single, _value), min_size=1, max_size=12), st.sampled_from([NONE, ZLIB, LZ4])),
        min_size=1,
        max_size=3,
    )
)
def test_pulsar(batches: list[tuple[list[tuple[SingleMessageMetadata, bytes]], int]]) -> None:
    _check([_pulsar(messages, compression) for messages, compression in batches])


@_settings
@given(_values, st.sampled_from([NONE, ZLIB, LZ4, ZSTD, SNAPPY]))
def test_pulsar_batches_of_equal_messages(values: list[bytes], compression: int) -> None:
    _check([_pulsar([(SingleMessageMetadata(sequence_id=n), v) for n, v in enumerate(values)], compression)] * 2)


def test_pulsar_messages_that_are_not_in_batches() -> None:
    def entry(number: int, **fields: Any) -> bytearray:
        metadata = MessageMetadata(producer_name="p", sequence_id=number, publish_time=_NOW_MS + number, **fields)
        return _pulsar_entry(metadata, b"%d" % number, NONE if number % 2 else ZSTD)

    _check([entry(n) for n in range(20)])
    keyed = [entry(1, partition_key=b"key"), entry(2, null_value=True), entry(3, event_time=5), entry(4)]
    encoded = entry(5, partition_key=b"AAEC", partition_key_b64_encoded=True)
    _check([*keyed, encoded])


def test_the_time_of_append() -> None:
    frame = _pulsar([(SingleMessageMetadata(event_time=7), b"v")] * 3)
    struct.pack_into(">h", frame, 21, Attributes.LOG_APPEND_TIME)
    struct.pack_into(">I", frame, 17, frame_crc(memoryview(frame)))
    _check([frame])


@pytest.mark.parametrize(("start", "end"), [(5, 100), (6, 9), (60, 120), (104, 105)])
def test_a_part_of_a_frame(start: int, end: int) -> None:
    frames = [_kafka07(encode_message(b"%03d" % n, 1) * 50, 50) for n in range(3)]
    _check(frames, start, end)


def _not_plain() -> dict[str, list[bytearray]]:
    plain = _pulsar([(SingleMessageMetadata(), b"v")])
    chunk = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, num_chunks_from_msg=2, chunk_id=0)
    encrypted = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    encrypted.encryption_keys.append(EncryptionKeys(key="k", value=b"v"))
    wrapper = encode_wrapper([encode_message(b"a", 1), encode_message(b"b", 1)], Codec.GZIP)
    headers = bytearray(_iggy(Layout.LONG, [b"value"], [1]))
    return {
        "a compressed message of 0.7": [_kafka07(encode_message(b"x", 0) + wrapper, 3)],
        "a chunk": [plain, _pulsar_entry(chunk, b"part")],
        "encrypted": [_pulsar_entry(encrypted, b"secret")],
        "batches and single messages": [
            plain,
            _pulsar_entry(MessageMetadata(producer_name="p", sequence_id=1, publish_time=1), b"v"),
        ],
        "a message taken out": [
            _pulsar([(SingleMessageMetadata(), b"v"), (SingleMessageMetadata(compacted_out=True), b"")])
        ],
        "a key in base64": [
            _pulsar([(SingleMessageMetadata(partition_key=b"AAEC", partition_key_b64_encoded=True), b"v")])
        ],
        "many properties": [
            _pulsar([(SingleMessageMetadata(properties=[Property(key=b"k", value=b"v")] * 40), b"v")])
        ],
        "layouts of several dialects": [headers, _iggy(Layout.SHORT, [b"value"], [1])],
    }


@pytest.mark.parametrize("name", list(_not_plain()))
def test_what_is_not_plain_goes_the_long_way(name: str) -> None:
    _check(_not_plain()[name], is_plain=False)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2), st.data())
def test_damage_is_never_read_as_something_else(kind: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.binary(max_size=40), min_size=1, max_size=30))
    frame = [
        lambda: _kafka07(b"".join(encode_message(value, 1) for value in values), len(values)),
        lambda: _iggy(Layout.LONG, values, [5] * len(values)),
        lambda: _pulsar([(SingleMessageMetadata(partition_key=b"k"), value) for value in values]),
    ][kind]()
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(HEADER_BYTES, len(frame) - 1))] = data.draw(st.integers(0, 255))
    struct.pack_into(">I", frame, 17, frame_crc(memoryview(frame)))
    piece, end = _piece([frame])
    walked = walk(memoryview(piece), None, 5, end)
    try:
        fields = plain_fields(piece, walked.found)
    except NotPlain:
        return
    assert len(fields.value.begins) == len(values)
    assert (fields.value.begins <= fields.value.ends).all()
    assert (fields.value.ends <= len(fields.body)).all()
