"""What one protocol wrote, read as another's."""

import struct
from dataclasses import replace

import pytest

from millstream.model.frame import HEADER_BYTES, Magic, frame_crc, read_frame_header, set_base_offset
from millstream.model.record import Record
from millstream.wire.kafka.records import build_batch, check_batch, place_batch, read_records
from millstream.wire.translation import READERS, first_frames, kafka_batch
from millstream.wire.translation import read_records as read_any

RECORDS = [
    Record(offset=5 + n, timestamp_ms=1000 + n, key=b"k" if n else None, value=b"v%d" % n, headers=(("h", None),))
    for n in range(3)
]


def frame(records: list[Record]) -> memoryview:
    batch = memoryview(build_batch(records))
    set_base_offset(batch, records[0].offset)
    return batch


def foreign(body: bytes, count: int, magic: int = Magic.PULSAR_ENTRY) -> memoryview:
    """A frame of an encoding that is not Kafka's, at offset 5."""
    whole = bytearray(HEADER_BYTES) + body
    fields = (5, len(whole) - 12, 0, magic, 0, 0, count - 1, 1000, 1002, -1, -1, -1, count)
    struct.pack_into(">qiibIhiqqqhii", whole, 0, *fields)
    struct.pack_into(">I", whole, 17, frame_crc(memoryview(whole)))
    return memoryview(whole)


def test_every_encoding_has_a_reader() -> None:
    assert set(READERS) <= {int(magic) for magic in Magic}


def test_a_kafka_batch_is_left_as_it_is() -> None:
    batch = frame(RECORDS)
    assert kafka_batch(batch, read_frame_header(batch)) is batch
    assert read_any(batch) == tuple(RECORDS)


def test_records_keep_their_offsets_where_some_of_a_frame_are_left_out() -> None:
    header = read_frame_header(foreign(b"", 3))
    kept = [RECORDS[0], RECORDS[2]]
    batch = memoryview(place_batch(kept, header))
    placed = read_frame_header(batch)
    assert (placed.base_offset, placed.last_offset, placed.record_count) == (5, 7, 2)
    assert list(read_records(batch)) == kept
    assert placed.crc == frame_crc(batch)


def test_a_frame_of_which_nothing_is_left_still_takes_its_offsets() -> None:
    header = read_frame_header(foreign(b"", 3))
    placed = read_frame_header(place_batch((), header))
    assert (placed.base_offset, placed.last_offset, placed.record_count) == (5, 7, 0)
    assert placed.max_timestamp == header.max_timestamp


@pytest.mark.parametrize("magic", [magic for magic in READERS if magic != Magic.KAFKA_V2])
def test_a_body_that_makes_no_sense_becomes_a_batch_without_records(magic: int) -> None:
    broken = foreign(b"\xff" * 40, 2, magic)
    placed = read_frame_header(kafka_batch(broken, read_frame_header(broken)))
    assert (placed.base_offset, placed.last_offset, placed.record_count) == (5, 6, 0)


def test_the_time_of_an_append_stays_one() -> None:
    header = read_frame_header(foreign(b"", 1))
    record = Record(offset=5, timestamp_ms=77, key=None, value=b"", append_time=True)
    assert list(read_records(memoryview(place_batch([record], header)))) == [record]


def test_a_built_batch_is_one_that_a_producer_might_have_sent() -> None:
    assert check_batch(memoryview(build_batch(RECORDS))).record_count == 3


def test_records_of_which_some_have_a_time_of_their_own_keep_it() -> None:
    own = Record(offset=0, timestamp_ms=1000, key=None, value=b"own")
    appended = Record(offset=1, timestamp_ms=5000, key=None, value=b"appended", append_time=True)
    for records in ([own, appended], [replace(appended, offset=0), replace(own, offset=1)]):
        header = read_frame_header(build_batch(records))
        placed = read_records(memoryview(place_batch(records, header)))
        assert [one.timestamp_ms for one in placed] == [one.timestamp_ms for one in records]


def test_frames_to_be_translated_are_cut_where_they_have_too_many_records() -> None:
    entry, native = bytes(foreign(b"x", 600)), bytes(frame(RECORDS))
    frames = memoryview(entry + native + entry + native)
    assert first_frames(frames, 99, 600) == (frames[: len(entry + native)], 5, 600)
    assert first_frames(frames, 99, 1200) == (frames, 99, 1200)
    assert first_frames(frames, 99, 0)[0] == frames[: len(entry + native)], "one frame at least"
    assert first_frames(memoryview(native), 8, 0) == (memoryview(native), 8, 0), "a Kafka batch costs nothing"
