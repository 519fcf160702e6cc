from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.model.frame import Magic, frame_crc, read_frame_header, set_base_offset, set_log_append_time
from millstream.model.record import Record
from millstream.wire.pulsar.entry import check_entry, encode_entry, read_messages
from millstream.wire.pulsar.errors import MalformedEntry
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
from millstream.wire.pulsar.records import (
    METADATA_HEADER,
    ORDERING_KEY_HEADER,
    PUBLISH_TIME_HEADER,
    build_entries,
    build_entry,
    entry_records,
    headers_of,
    properties_of,
    read_records,
)
from millstream.wire.pulsar.stored_frame import build_frame

TIME_MS = 1_700_000_000_000
RECORDS = [
    Record(offset=10, timestamp_ms=TIME_MS, key=b"key", value=b"value", headers=(("name", b"text"),)),
    Record(offset=11, timestamp_ms=TIME_MS + 5, key=None, value=b""),
    Record(
        offset=12, timestamp_ms=TIME_MS - 7, key=b"\xff\0", value=None, headers=(("null", None), ("bin", b"\xff"))
    ),
]

texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = st.one_of(texts, st.builds(lambda text, end: text + end, texts, st.sampled_from([":text", ":b64", ":null"])))
headers = st.lists(st.tuples(names, st.none() | st.binary(max_size=12)), max_size=4).map(tuple)
some_records = st.builds(
    Record,
    offset=st.just(0),
    timestamp_ms=st.integers(1, 2**53),
    key=st.none() | st.binary(max_size=12),
    value=st.none() | st.binary(max_size=40),
    headers=headers,
)


def stored(data: bytes | bytearray, base_offset: int) -> bytearray:
    view = memoryview(data)
    frame = build_frame(view, check_entry(view))
    set_base_offset(memoryview(frame), base_offset)
    return frame


def metadata(**fields: object) -> MessageMetadata:
    made = MessageMetadata(producer_name="p", sequence_id=1, publish_time=TIME_MS)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("codec", [NONE, LZ4, ZLIB, ZSTD, SNAPPY])
def test_round_trip_through_a_frame(codec: int) -> None:
    frame = stored(build_entry(RECORDS, 10, 3, codec), 10)
    assert list(read_records(memoryview(frame))) == RECORDS


@given(st.lists(some_records, min_size=1, max_size=5), st.integers(0, 2**62))
def test_every_record_comes_back(made: list[Record], first: int) -> None:
    records = [replace(record, offset=first + index) for index, record in enumerate(made)]
    entry = check_entry(memoryview(build_entry(records, first, len(records))))
    assert entry.is_batch is (len(records) > 1)
    assert list(entry_records(entry, first)) == records


def test_offsets_without_a_record_keep_their_places() -> None:
    data = build_entry([RECORDS[0], RECORDS[2]], 8, 7)
    entry = check_entry(memoryview(data))
    assert entry.message_count == 7
    assert list(entry.metadata.compacted_batch_indexes) == [0, 1, 3, 5, 6]
    assert list(entry_records(entry, 8)) == [RECORDS[0], RECORDS[2]]


def test_no_record_at_all_is_an_entry_of_empty_places() -> None:
    [built] = build_entries([], first_offset=5, message_count=2)
    assert (built.first_offset, built.message_count) == (5, 2)
    assert list(entry_records(check_entry(memoryview(built.data)), 5)) == []


def test_a_large_frame_becomes_several_entries() -> None:
    records = [Record(offset=100 + n, timestamp_ms=TIME_MS, key=None, value=b"x" * 1000) for n in range(10)]
    built = list(build_entries(records, first_offset=98, message_count=20, content_bytes_max=3500))
    assert [(entry.first_offset, entry.message_count) for entry in built] == [(98, 5), (103, 3), (106, 3), (109, 9)]
    back = [
        record for entry in built for record in entry_records(check_entry(memoryview(entry.data)), entry.first_offset)
    ]
    assert back == records


@pytest.mark.parametrize("count", [0, -1, 1_000_001])
def test_impossible_counts(count: int) -> None:
    with pytest.raises(ValueError, match="messages"):
        list(build_entries(RECORDS, first_offset=10, message_count=count))


def test_one_key_of_all_records_is_the_key_of_the_entry() -> None:
    same = [Record(offset=n, timestamp_ms=TIME_MS, key=b"k", value=b"") for n in range(3)]
    assert check_entry(memoryview(build_entry(same, 0, 3))).metadata.partition_key == b"k"
    assert not check_entry(memoryview(build_entry(RECORDS, 10, 3))).metadata.HasField("partition_key")


def test_the_time_of_a_record_is_the_producers() -> None:
    published = check_entry(memoryview(encode_entry(metadata(), b"x")))
    happened = check_entry(memoryview(encode_entry(metadata(event_time=5), b"x")))
    assert [next(entry_records(entry, 0)).timestamp_ms for entry in (published, happened)] == [TIME_MS, 5]


def test_a_time_that_the_server_set() -> None:
    frame = stored(build_entry(RECORDS, 10, 3), 10)
    set_log_append_time(memoryview(frame), TIME_MS + 99)
    records = list(read_records(memoryview(frame)))
    assert {(record.timestamp_ms, record.append_time) for record in records} == {(TIME_MS + 99, True)}
    entry = check_entry(memoryview(build_entry(records, 10, 3)))
    assert entry.metadata.publish_time == TIME_MS + 99
    assert [message.metadata.event_time for message in read_messages(entry)] == [0, 0, 0]


@pytest.mark.parametrize("timestamp_ms", [-1, 0])
def test_times_that_a_message_cannot_carry(timestamp_ms: int) -> None:
    record = Record(offset=0, timestamp_ms=timestamp_ms, key=None, value=b"")
    assert next(entry_records(check_entry(memoryview(build_entry([record], 0, 1))), 0)).timestamp_ms == 0


@given(headers)
def test_headers_come_back(given_headers: Sequence[tuple[str, bytes | None]]) -> None:
    properties = properties_of(given_headers)
    for item in properties:
        item.key.decode()
        item.value.decode()
    assert headers_of(properties) == given_headers


@pytest.mark.parametrize(
    ("name", "value", "header"),
    [
        (b"a", b"b", ("a", b"b")),
        (b"a:b64", b"no base64", ("a:b64", b"no base64")),
        (b"a:null", b"value", ("a:null", b"value")),
        (b"a:text", b"value", ("a:text", b"value")),
        (b"\xff", b"\xff", ("\ufffd", b"\xff")),
    ],
)
def test_properties_of_an_application(name: bytes, value: bytes, header: tuple[str, bytes]) -> None:
    assert headers_of([Property(key=name, value=value)]) == (header,)


def test_a_chunk_is_a_record_of_its_own() -> None:
    fields = metadata(uuid="p-1", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=10, compression=LZ4)
    fields.uncompressed_size = 100
    [record] = entry_records(check_entry(memoryview(encode_entry(fields, b"part"))), 7)
    assert (record.offset, record.value, record.timestamp_ms) == (7, b"part", TIME_MS)
    assert record.headers == ((METADATA_HEADER, fields.SerializeToString()),)


def test_an_encrypted_batch_is_one_record() -> None:
    fields = metadata(num_messages_in_batch=3, partition_key=b"k")
    fields.encryption_keys.append(EncryptionKeys(key="name", value=b"key"))
    fields.properties.append(Property(key=b"a", value=b"b"))
    ciphertext = b"\xff" * 50
    [record] = entry_records(check_entry(memoryview(encode_entry(fields, ciphertext))), 7)
    assert (record.offset, record.key, record.value) == (7, b"k", ciphertext)
    assert record.headers == (("a", b"b"), (METADATA_HEADER, fields.SerializeToString()))


def test_what_compaction_took_out_is_no_record() -> None:
    head = SingleMessageMetadata(payload_size=0, compacted_out=True).SerializeToString()
    payload = (len(head).to_bytes(4, "big") + head) * 2
    entry = check_entry(memoryview(encode_entry(metadata(num_messages_in_batch=2), payload)))
    assert list(entry_records(entry, 0)) == []


def test_a_batch_that_is_damaged_inside() -> None:
    frame = stored(encode_entry(metadata(num_messages_in_batch=2), b"\xff" * 20), 0)
    with pytest.raises(MalformedEntry):
        list(read_records(memoryview(frame)))


def test_the_frame_of_an_entry() -> None:
    data = memoryview(build_entry(RECORDS, 10, 3))
    frame = build_frame(data, check_entry(data), producer_id=9, producer_epoch=1, base_sequence=4, transactional=True)
    header = read_frame_header(frame)
    assert (header.magic, header.size, header.crc) == (Magic.PULSAR_ENTRY, len(frame), frame_crc(memoryview(frame)))
    assert (header.record_count, header.last_offset_delta, header.attributes) == (3, 2, 0x10)
    assert (header.first_timestamp, header.max_timestamp) == (TIME_MS + 5, TIME_MS + 5)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 4)
    assert frame[61:] == data


def test_what_few_messages_have_rides_along() -> None:
    data = encode_entry(metadata(event_time=TIME_MS - 9, ordering_key=b"\xff order"), b"value")
    (record,) = read_records(memoryview(stored(data, 3)))
    rare = ((ORDERING_KEY_HEADER, b"\xff order"), (PUBLISH_TIME_HEADER, b"%d" % TIME_MS))
    assert (record.timestamp_ms, record.headers) == (TIME_MS - 9, rare)
    built = check_entry(memoryview(build_entry([record], 3, 1))).metadata
    assert (built.ordering_key, built.event_time, built.publish_time) == (b"\xff order", TIME_MS - 9, TIME_MS)
    assert not built.properties


@pytest.mark.parametrize("text", [b"", b"-1", b"soon", b"9" * 19, None])
def test_a_publish_time_that_is_none_is_passed_over(text: bytes | None) -> None:
    record = replace(RECORDS[0], headers=((PUBLISH_TIME_HEADER, text),))
    assert check_entry(memoryview(build_entry([record], 10, 1))).metadata.publish_time == TIME_MS
