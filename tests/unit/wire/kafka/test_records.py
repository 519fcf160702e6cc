"""Record batches: what goes in comes out, and what looks at a part of a batch agrees with what reads all of it."""

import struct

import pytest

from millstream.model.frame import Attributes, frame_crc, set_base_offset, set_log_append_time
from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.kafka.errors import CorruptBatch, InvalidRecords, UnsupportedCodec
from millstream.wire.kafka.records import (
    InflationBudget,
    build_batch,
    check_batch,
    first_late_record,
    has_null_key,
    read_records,
)

BASE_OFFSET = 100
TIMES = (1000, 1005, 990, 1005, 1_000_000, 5)


def record(timestamp_ms: int = 1000, key: bytes | None = b"k", value: bytes | None = b"v") -> Record:
    return Record(offset=0, timestamp_ms=timestamp_ms, key=key, value=value, headers=(("a", b"1"), ("a", None)))


def stored(records: list[Record], codec: Codec = Codec.NONE) -> memoryview:
    frame = memoryview(build_batch(records, codec=codec))
    set_base_offset(frame, BASE_OFFSET)
    return frame


@pytest.mark.parametrize("codec", list(Codec))
def test_what_goes_in_comes_out(codec: Codec) -> None:
    records = [
        record(time, key, value) for time in TIMES for key in (None, b"", b"k" * 200) for value in (None, b"v")
    ]
    frame = stored(records, codec)
    check_batch(frame)
    found = list(read_records(frame))
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in found] == [
        (r.timestamp_ms, r.key, r.value, r.headers) for r in records
    ]
    assert [r.offset for r in found] == list(range(BASE_OFFSET, BASE_OFFSET + len(records)))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("append_time", [False, True])
def test_the_first_late_record_is_the_one_that_reading_finds(codec: Codec, append_time: bool) -> None:
    frame = stored([record(time) for time in TIMES], codec)
    if append_time:
        set_log_append_time(frame, 2000)
    for timestamp_ms in (0, 5, 990, 1000, 1001, 1005, 1006, 2000, 2001, 1_000_000, 1_000_001):
        for min_offset in range(BASE_OFFSET - 1, BASE_OFFSET + len(TIMES) + 1):
            expected = next(
                (
                    (r.offset, r.timestamp_ms)
                    for r in read_records(frame)
                    if r.timestamp_ms >= timestamp_ms and r.offset >= min_offset
                ),
                None,
            )
            assert first_late_record(frame, timestamp_ms, min_offset) == expected


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("keys", [[b"a"], [None], [b"", b"b"], [b"a", None], [b"a" * 300, b"b", None, b"c"]])
def test_null_keys_are_seen(codec: Codec, keys: list[bytes | None]) -> None:
    assert has_null_key(stored([record(key=key) for key in keys], codec)) == (None in keys)


def test_a_request_has_one_budget_for_all_its_batches() -> None:
    frame = stored([record(value=bytes(100_000))], Codec.GZIP)
    budget = InflationBudget(250_000)
    check_batch(frame, budget)
    check_batch(frame, budget)
    with pytest.raises(CorruptBatch, match="more than"):
        check_batch(frame, budget)
    check_batch(stored([record(value=bytes(100_000))]), InflationBudget(0))  # nothing is unpacked


def test_what_is_refused() -> None:
    good = stored([record(), record()])
    check_batch(good)
    with pytest.raises(CorruptBatch):
        check_batch(good[:-1])
    with pytest.raises(CorruptBatch):
        check_batch(good[:60])
    with pytest.raises(InvalidRecords):
        check_batch(memoryview(bytes(good) + bytes(good)))
    for position, fmt, value, error in (
        (57, ">i", 3, InvalidRecords),  # the count alone
        (21, ">h", 7, UnsupportedCodec),
        (21, ">h", Attributes.CONTROL, InvalidRecords),
        (43, ">q", 5, InvalidRecords),  # a producer without epoch and sequence
    ):
        changed = bytearray(good)
        struct.pack_into(fmt, changed, position, value)
        with pytest.raises(CorruptBatch):
            check_batch(memoryview(changed))
        struct.pack_into(">I", changed, 17, frame_crc(memoryview(changed)))
        with pytest.raises(error):
            check_batch(memoryview(changed))


def test_a_batch_of_more_records_than_can_be_taken_apart_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = build_batch([Record(offset=n, timestamp_ms=1, key=None, value=b"") for n in range(6)], codec=Codec.GZIP)
    check_batch(memoryview(batch))
    monkeypatch.setattr("millstream.wire.kafka.records.BATCH_RECORDS_MAX", 5)
    with pytest.raises(InvalidRecords, match="at most 5"):
        check_batch(memoryview(batch))
