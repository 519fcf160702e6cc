"""What compaction reads in frames of every encoding, and what it leaves of them."""

from typing import Any

import pytest

from millstream.broker.keyed_frames import KeyedRecord
from millstream.model.frame import frame_crc, read_frame_header, set_base_offset
from millstream.model.record import Record
from millstream.sessions.pulsar.compaction import PulsarFrameRecords
from millstream.wire.kafka.records import build_batch
from millstream.wire.pulsar.compression import compress
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.pulsar_pb2 import (
    CompressionType,
    EncryptionKeys,
    MessageMetadata,
    SingleMessageMetadata,
)
from millstream.wire.pulsar.stored_frame import build_frame
from millstream.wire.translation import read_records
from tests.support.steps import keyed, left_of

RECORDS = PulsarFrameRecords()
Message = tuple[bytes | None, bytes | None]


def single(key: bytes | None, value: bytes, **fields: Any) -> bytearray:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1000, **fields)
    if key is not None:
        metadata.partition_key = key
    data = memoryview(encode_entry(metadata, value))
    return build_frame(data, check_entry(data))


def batched(messages: list[Message], compression: int = CompressionType.NONE) -> bytearray:
    payload = bytearray()
    for key, value in messages:
        one = SingleMessageMetadata(payload_size=len(value or b""), null_value=value is None)
        if key is not None:
            one.partition_key = key
        head = one.SerializeToString()
        payload += len(head).to_bytes(4, "big") + head + (value or b"")
    metadata = MessageMetadata(
        producer_name="p", sequence_id=0, publish_time=1000, num_messages_in_batch=len(messages)
    )
    if compression != CompressionType.NONE:
        metadata.compression, metadata.uncompressed_size = int(compression), len(payload)
    data = memoryview(encode_entry(metadata, compress(int(compression), bytes(payload))))
    return build_frame(data, check_entry(data))


def keys(frame: bytearray) -> list[KeyedRecord]:
    return list(keyed(RECORDS, frame))


def test_single_messages() -> None:
    assert keys(single(b"k", b"v")) == [KeyedRecord(0, b"k", False)]
    assert keys(single(b"k", b"")) == [KeyedRecord(0, b"k", True)]
    assert keys(single(b"k", b"x", null_value=True)) == [KeyedRecord(0, b"k", True)]
    assert keys(single(None, b"v")) == [KeyedRecord(0, None, False)]
    assert keys(single(b"aw==", b"v", partition_key_b64_encoded=True)) == [KeyedRecord(0, b"k", False)]


def test_what_nobody_can_look_into_stays() -> None:
    chunk = single(b"k", b"v", uuid="u", num_chunks_from_msg=2, total_chunk_msg_size=2, chunk_id=0)
    assert keys(chunk) == [KeyedRecord(0, None, False)]
    encrypted = single(b"k", b"v", encryption_keys=[EncryptionKeys(key="x", value=b"y")])
    assert keys(encrypted) == [KeyedRecord(0, None, False)]
    damaged = single(b"k", b"v")
    damaged[61:] = b"\xff" * (len(damaged) - 61)
    assert keys(damaged) == []


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD])
def test_of_a_batch_the_messages_that_stay_keep_their_places(compression: int) -> None:
    frame = batched([(b"a", b"0"), (b"b", b"1"), (None, b"2"), (b"a", None)], compression)
    set_base_offset(memoryview(frame), 40)
    assert keys(frame) == [
        KeyedRecord(0, b"a", False),
        KeyedRecord(1, b"b", False),
        KeyedRecord(2, None, False),
        KeyedRecord(3, b"a", True),
    ]
    left = left_of(RECORDS, frame, {1, 2})
    assert left is not None
    again = read_frame_header(left)
    assert (again.base_offset, again.record_count, again.last_offset, again.max_timestamp) == (40, 2, 43, 1000)
    assert again.crc == frame_crc(memoryview(left))
    assert again.size == len(left)
    assert [(one.offset, one.key, one.value) for one in read_records(memoryview(left))] == [
        (41, b"b", b"1"),
        (42, None, b"2"),
    ]
    assert keys(bytearray(left)) == [KeyedRecord(1, b"b", False), KeyedRecord(2, None, False)]
    last = left_of(RECORDS, left, {2})
    assert last is not None
    assert [one.value for one in read_records(memoryview(last))] == [b"2"]


def test_frames_of_kafka_producers() -> None:
    records = [
        Record(offset=n, timestamp_ms=1000 + n, key=key, value=value)
        for n, (key, value) in enumerate([(b"a", b"0"), (b"b", b"1"), (None, b"2"), (b"a", None)])
    ]
    frame = build_batch(records)
    set_base_offset(memoryview(frame), 7)
    assert keys(frame) == [
        KeyedRecord(0, b"a", False),
        KeyedRecord(1, b"b", False),
        KeyedRecord(2, None, False),
        KeyedRecord(3, b"a", True),
    ]
    left = left_of(RECORDS, frame, {1, 3})
    assert left is not None
    assert read_frame_header(left).last_offset == 10
    assert [(one.offset, one.key) for one in read_records(memoryview(left))] == [(8, b"b"), (10, b"a")]
