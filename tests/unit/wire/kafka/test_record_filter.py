"""Batches that lose some of their records, or are told when their tombstones go."""

import pytest

from millstream.model.frame import (
    Attributes,
    FrameHeader,
    frame_crc,
    read_frame_header,
    set_base_offset,
    set_log_append_time,
)
from millstream.model.record import Record
from millstream.wire.compression import Codec, decompress
from millstream.wire.kafka.errors import InvalidRecords
from millstream.wire.kafka.record_filter import StoredRecords, TimeTooFar, sealed_batch
from millstream.wire.kafka.records import build_batch, first_late_record, read_records

SLICE = 2
CODECS = pytest.mark.parametrize("codec", list(Codec))


def stored(batch: bytes | bytearray | memoryview) -> tuple[FrameHeader, StoredRecords]:
    view = memoryview(batch)
    header = read_frame_header(view)
    return header, StoredRecords(header, decompress(Codec(header.attributes & 7), view[61:]), SLICE)


def rest(batch: bytes | bytearray | memoryview, kept: set[int], horizon_ms: int | None = None) -> memoryview:
    """What is left of a batch."""
    header, records = stored(batch)
    left = records.left([int(place in kept) for place in range(header.last_offset_delta + 1)], horizon_ms)
    try:
        while True:
            next(left)
    except StopIteration as end:
        return memoryview(sealed_batch(*end.value))


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
    left = rest(batch, {1, 4})
    assert list(read_records(left)) == [one for one in read_records(batch) if one.offset in {101, 104}]
    found = read_frame_header(left)
    assert found.crc == frame_crc(left)
    assert found.max_timestamp == 990, "the latest of those that stay"
    same = header._replace(length=found.length, crc=found.crc, max_timestamp=990, record_count=2)
    assert found == same


def test_the_time_of_append_stays() -> None:
    batch = sample()
    set_log_append_time(memoryview(batch), 5000)
    left = rest(batch, {4})
    assert [(one.offset, one.timestamp_ms) for one in read_records(left)] == [(104, 5000)]
    assert first_late_record(left, 5000, 0) == (104, 5000)
    assert first_late_record(left, 5000, 105) is None


def test_a_time_is_found_where_records_are_missing() -> None:
    batch = memoryview(sample())
    left = rest(batch, {2, 4})
    assert first_late_record(left, 970, 0) == (102, 980)
    assert first_late_record(left, 900, 103) == (104, 960)
    assert first_late_record(left, 990, 0) is None


@CODECS
def test_a_delete_horizon_changes_no_record(codec: Codec) -> None:
    batch = memoryview(sample(codec))
    header = read_frame_header(batch)
    told = rest(batch, {0, 1, 2, 3, 4}, 10**13)
    assert list(read_records(told)) == list(read_records(batch))
    found = read_frame_header(told)
    assert found.delete_horizon_ms == 10**13
    assert found.attributes == header.attributes | Attributes.DELETE_HORIZON
    assert found.max_timestamp == header.max_timestamp
    assert found.crc == frame_crc(told)
    left = rest(told, {3})
    assert read_frame_header(left).delete_horizon_ms == 10**13
    assert [one.timestamp_ms for one in read_records(left)] == [970]


def test_keys_and_tombstones() -> None:
    _, records = stored(sample())
    slices = [list(one) for one in records.keyed()]
    assert [len(one) for one in slices] == [2, 2, 1]
    assert [one for slice_ in slices for one in slice_] == [(n, b"k%d" % n, bool(n % 2)) for n in range(5)]


def test_a_delete_horizon_and_fewer_records_at_once() -> None:
    left = rest(sample(), {1, 3}, 5000)
    found = read_frame_header(left)
    assert (found.record_count, found.delete_horizon_ms, found.max_timestamp) == (2, 5000, 990)
    assert list(read_records(left)) == [one for one in read_records(memoryview(sample())) if one.offset in {101, 103}]


def test_a_horizon_that_is_too_far() -> None:
    records = [Record(offset=0, timestamp_ms=-(2**63), key=b"k", value=None)]
    with pytest.raises(TimeTooFar):
        rest(build_batch(records), {0}, 1)


@pytest.mark.parametrize("changes", [{"record_count": 4}, {"record_count": 6}, {"last_offset_delta": 3}])
def test_what_cannot_be_read(changes: dict[str, int]) -> None:
    view = memoryview(sample())
    header = read_frame_header(view)._replace(**changes)
    with pytest.raises(InvalidRecords):
        list(StoredRecords(header, view[61:], SLICE).slices())
