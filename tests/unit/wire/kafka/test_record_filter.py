"""Batches that lose some of their records, or are told when their tombstones go."""

import pytest

from millstream.model.frame import Attributes, frame_crc, read_frame_header, set_base_offset, set_log_append_time
from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.kafka.errors import CorruptBatch, InvalidRecords
from millstream.wire.kafka.record_filter import RecordSpans, filtered_batch, with_delete_horizon
from millstream.wire.kafka.records import build_batch, first_late_record, read_records

CODECS = pytest.mark.parametrize("codec", list(Codec))


def sample(codec: Codec = Codec.NONE) -> bytearray:
    records = [
        Record(
            offset=n,
            timestamp_ms=1000 - 10 * n,
            key=b"k%d" % n,
            value=None if n % 2 else b"v" * n,
            headers=(("h", b"x"), ("n", None)),
        )
        for n in range(5)
    ]
    batch = build_batch(records, codec=codec, producer_id=7, producer_epoch=1, base_sequence=9)
    set_base_offset(memoryview(batch), 100)
    return batch


@CODECS
def test_records_that_stay_are_what_they_were(codec: Codec) -> None:
    batch = memoryview(sample(codec))
    header = read_frame_header(batch)
    left = memoryview(filtered_batch(header, batch, {1, 4}))
    assert list(read_records(left)) == [one for one in read_records(batch) if one.offset in {101, 104}]
    found = read_frame_header(left)
    assert found.crc == frame_crc(left)
    assert found.max_timestamp == 990, "the latest of those that stay"
    same = header._replace(length=found.length, crc=found.crc, max_timestamp=990, record_count=2)
    assert found == same


def test_the_time_of_append_stays() -> None:
    batch = sample()
    set_log_append_time(memoryview(batch), 5000)
    header = read_frame_header(batch)
    left = memoryview(filtered_batch(header, memoryview(batch), {4}))
    assert [(one.offset, one.timestamp_ms) for one in read_records(left)] == [(104, 5000)]
    assert first_late_record(left, 5000, 0) == (104, 5000)
    assert first_late_record(left, 5000, 105) is None


def test_a_time_is_found_where_records_are_missing() -> None:
    batch = memoryview(sample())
    left = memoryview(filtered_batch(read_frame_header(batch), batch, {2, 4}))
    assert first_late_record(left, 970, 0) == (102, 980)
    assert first_late_record(left, 900, 103) == (104, 960)
    assert first_late_record(left, 990, 0) is None


@CODECS
def test_a_delete_horizon_changes_no_record(codec: Codec) -> None:
    batch = memoryview(sample(codec))
    header = read_frame_header(batch)
    told = memoryview(with_delete_horizon(header, batch, 10**13))
    assert list(read_records(told)) == list(read_records(batch))
    found = read_frame_header(told)
    assert found.delete_horizon_ms == 10**13
    assert found.attributes == header.attributes | Attributes.DELETE_HORIZON
    assert found.max_timestamp == header.max_timestamp
    assert found.crc == frame_crc(told)
    left = memoryview(filtered_batch(found, told, {3}))
    assert read_frame_header(left).delete_horizon_ms == 10**13
    assert [one.timestamp_ms for one in read_records(left)] == [970]


def test_keys_and_tombstones() -> None:
    batch = memoryview(sample())
    assert list(RecordSpans(read_frame_header(batch), batch).keyed()) == [
        (n, b"k%d" % n, bool(n % 2)) for n in range(5)
    ]


def test_what_cannot_be_read() -> None:
    batch = sample(Codec.GZIP)
    batch[61] ^= 0xFF
    with pytest.raises(CorruptBatch):
        RecordSpans(read_frame_header(batch), memoryview(batch))
    header = read_frame_header(sample())
    with pytest.raises(InvalidRecords):
        RecordSpans(header._replace(record_count=2**31 - 1), memoryview(sample()))
    with pytest.raises(InvalidRecords):
        RecordSpans(header._replace(record_count=4), memoryview(sample()))
