"""Frames of every encoding, with anything in them that a client may put there, drawn by hypothesis."""

import base64

from hypothesis import strategies as st

from millstream.model.frame import read_frame_header, set_base_offset, set_log_append_time
from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import UserHeader
from millstream.wire.iggy.stored import seal
from millstream.wire.kafka.records import build_batch
from millstream.wire.kafka07.frames import build_frame as build_set
from millstream.wire.kafka07.messages import encode_message, encode_wrapper
from millstream.wire.pulsar.compression import compress
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.pulsar_pb2 import (
    LZ4,
    NONE,
    SNAPPY,
    ZLIB,
    ZSTD,
    MessageMetadata,
    Property,
    SingleMessageMetadata,
)
from millstream.wire.pulsar.stored_frame import build_frame
from tests.unit.wire.iggy.batches import Outgoing, taken

__all__ = [
    "frames",
    "iggy_frames",
    "kafka07_frames",
    "kafka_frames",
    "pulsar_frames",
    "pulsar_single_frames",
    "rows_of_frames",
]

TIME_MS = 1_700_000_000_000
OFFSETS = st.sampled_from([0, 1000, 2**40])
TIMES = st.sampled_from([TIME_MS, TIME_MS, TIME_MS + 1, TIME_MS - 1, 0, -5, 2**40, 2**62])
texts = st.text(st.characters(codec="utf-8"), max_size=9)
keys = st.sampled_from([None, b"", b"key", b"\xff\0 binary", "schlüssel".encode(), b"k" * 300]) | st.binary(
    max_size=9
)
values = st.sampled_from([None, b"", b"value"]) | st.binary(max_size=60)
names = texts | st.sampled_from(
    [
        "iggy.id",
        "iggy.origin-timestamp",
        "iggy.kinds",
        "iggy.no",
        "millstream.key",
        "pulsar.ordering-key",
        "pulsar.publish-time",
        "pulsar.metadata",
        "a:b64",
        "b:null",
        "c:text",
        ":b64",
        "n" * 256,
    ]
)
contents = st.binary(max_size=9) | st.sampled_from(
    [
        None,
        b"0123456789abcdef0123456789ABCDEF",
        b"0123456789abcdef0123456789abcdeg",
        b"1700000000000123",
        b"9" * 19,
        b"int32,raw",
        b"uint8=raw",
        b"string",
        b"\xff\0",
        b"v" * 256,
    ]
)
headers = st.lists(st.tuples(names, contents), max_size=3).map(tuple)
records = st.builds(
    Record, offset=st.just(0), timestamp_ms=TIMES, key=keys, value=values, headers=st.just(()) | headers
)


def _placed(frame: bytearray, offset: int, append_time: bool) -> memoryview:
    view = memoryview(frame)
    set_base_offset(view, offset)
    if append_time:
        set_log_append_time(view, TIME_MS + 777)
    return view


kafka_frames = st.builds(
    lambda made, codec, offset, append_time: _placed(build_batch(made, codec=codec), offset, append_time),
    st.lists(records, min_size=1, max_size=6),
    st.sampled_from(Codec),
    OFFSETS,
    st.booleans(),
)

_plain = st.builds(encode_message, st.binary(max_size=40), st.integers(0, 1)).map(lambda message: (message, 1))
_wrapped = st.builds(
    lambda inner, codec: (encode_wrapper([message for message, _ in inner], codec), sum(n for _, n in inner)),
    st.lists(_plain, min_size=1, max_size=3),
    st.sampled_from([Codec.GZIP, Codec.SNAPPY]),
)
kafka07_frames = st.builds(
    lambda parts, offset: _placed(
        build_set(b"".join(part for part, _ in parts), sum(n for _, n in parts), TIME_MS), offset, False
    ),
    st.lists(_plain | _wrapped, min_size=1, max_size=5),
    OFFSETS,
)

_codes = st.sampled_from([b"QUI=", b"QQ==", b"QUJD", b"A===", b"====", b"Q=Q=", b"QUI", b"-_-_"]) | st.binary(
    max_size=9
).map(base64.b64encode)


@st.composite
def _singles(draw: st.DrawFn) -> bytes:
    content = draw(st.binary(max_size=40))
    single = SingleMessageMetadata(payload_size=len(content))
    if draw(st.booleans()):
        single.partition_key = draw(_codes | st.binary(max_size=9))
        single.partition_key_b64_encoded = draw(st.booleans())
    for name in draw(st.lists(st.sampled_from(["null_value", "compacted_out", "null_partition_key"]), max_size=1)):
        setattr(single, name, True)
    if draw(st.booleans()):
        single.event_time = draw(st.sampled_from([0, 5, TIME_MS - 9, 2**62]))
    if draw(st.booleans()):
        single.sequence_id = draw(st.integers(0, 2**63))
    if draw(st.integers(0, 5)) == 0:
        single.ordering_key = draw(st.binary(max_size=5))
    for name, content_of in draw(st.just(()) | headers):
        single.properties.append(Property(key=name.encode(), value=content_of or b""))
    if draw(st.integers(0, 20)) == 0:
        single.properties.append(Property(key=b"\xff", value=b"no text"))
    head = single.SerializeToString()
    return len(head).to_bytes(4, "big") + head + content


@st.composite
def pulsar_frames(draw: st.DrawFn) -> memoryview:
    messages = draw(st.lists(_singles(), min_size=1, max_size=5))
    metadata = MessageMetadata(
        producer_name=draw(st.sampled_from(["p", "millstream"])), sequence_id=1, publish_time=TIME_MS
    )
    metadata.num_messages_in_batch = len(messages)
    payload: bytes = b"".join(messages)
    codec = draw(st.sampled_from([NONE, NONE, LZ4, ZLIB, ZSTD, SNAPPY]))
    if codec != NONE:
        metadata.compression, metadata.uncompressed_size = codec, len(payload)
        payload = compress(codec, payload)
    entry = memoryview(encode_entry(metadata, payload))
    return _placed(build_frame(entry, check_entry(entry)), draw(OFFSETS), draw(st.booleans()))


@st.composite
def iggy_frames(draw: st.DrawFn) -> memoryview:
    dialect = draw(st.sampled_from(Dialect))
    own = st.builds(
        UserHeader,
        (texts.map(str.encode) | st.just(b"millstream.key") | st.binary(max_size=4)).filter(bool),
        st.binary(min_size=1, max_size=9),
        st.integers(1, 15),
        st.sampled_from([2, 2, 2, 10]) if dialect >= Dialect.C3 else st.just(2),
    )
    message = st.builds(
        Outgoing,
        st.binary(min_size=1, max_size=40),
        st.binary(min_size=16, max_size=16),
        st.lists(own, max_size=3).map(tuple),
    )
    incoming = taken(dialect, *draw(st.lists(message, min_size=1, max_size=5)))
    frame, _ = seal(incoming.messages, incoming, TIME_MS + 123)
    return _placed(bytearray(frame), draw(OFFSETS), False)


@st.composite
def pulsar_single_frames(draw: st.DrawFn) -> memoryview:
    """Entries of one message that are no batches."""
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=TIME_MS)
    if draw(st.booleans()):
        metadata.partition_key = draw(_codes | st.binary(max_size=9))
        metadata.partition_key_b64_encoded = draw(st.booleans())
    for name in draw(st.lists(st.sampled_from(["null_value", "null_partition_key"]), max_size=1)):
        setattr(metadata, name, True)
    if draw(st.integers(0, 3)) == 0:
        metadata.event_time = TIME_MS - 5
    for name, content in draw(st.just(()) | headers):
        metadata.properties.append(Property(key=name.encode(), value=content or b""))
    entry = memoryview(encode_entry(metadata, draw(st.binary(max_size=40))))
    return _placed(build_frame(entry, check_entry(entry)), draw(OFFSETS), draw(st.booleans()))


frames = st.one_of(kafka_frames, kafka07_frames, pulsar_frames(), pulsar_single_frames(), iggy_frames())
"""Of any encoding."""


def _in_a_row(made: list[memoryview], offset: int) -> memoryview:
    """Frames one behind the other, from an offset on."""
    for frame in made:
        set_base_offset(frame, offset)
        offset = read_frame_header(frame).last_offset + 1
    return memoryview(b"".join(made))


rows_of_frames = st.builds(
    _in_a_row,
    st.one_of(
        *(
            st.lists(one, min_size=2, max_size=6)
            for one in (
                kafka_frames,
                kafka07_frames,
                pulsar_frames(),
                pulsar_single_frames(),
                pulsar_frames() | pulsar_single_frames(),
                iggy_frames(),
                frames,
            )
        )
    ),
    st.sampled_from([0, 1000, 2**40]),
)
"""Frames without a gap between them, most of them of one encoding."""
