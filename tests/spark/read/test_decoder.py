"""Frames to Arrow, without Spark: the same records as the codec that reads one at a time finds."""

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.model.frame import Attributes, Magic, frame_crc, set_base_offset
from millstream.model.record import Record
from millstream.spark.errors import MalformedRecords
from millstream.spark.read.decoder import Decoder
from millstream.spark.read.frames import Stop, walk
from millstream.spark.read.origin import with_origins
from millstream.spark.read.schema import ALL_COLUMNS, ORIGIN_COLUMNS
from millstream.wire.compression import Codec
from millstream.wire.kafka.records import build_batch, read_records
from millstream.wire.pulsar.entry import check_entry
from millstream.wire.pulsar.records import build_entry
from millstream.wire.pulsar.stored_frame import build_frame

_TYPES: dict[str, Any] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])),
    "protocol": pa.string(),
    "codec": pa.string(),
    "producerId": pa.int64(),
    "producerEpoch": pa.int32(),
}
_OF_RECORDS = tuple(name for name in ALL_COLUMNS if name not in ORIGIN_COLUMNS)
_bytes = st.one_of(st.none(), st.binary(max_size=20), st.sampled_from([b"", b"x" * 63, b"x" * 64, b"y" * 9000]))
_record = st.builds(
    Record,
    offset=st.just(0),
    timestamp_ms=st.integers(-(2**40), 2**45),
    key=_bytes,
    value=_bytes,
    headers=st.lists(st.tuples(st.text(max_size=5), _bytes), max_size=4).map(tuple),
)
# Lists of equal records are what the short cut for records of one length is for.
_records = st.one_of(
    st.lists(_record, min_size=1, max_size=12),
    st.tuples(_record, st.integers(1, 200)).map(lambda pair: [pair[0]] * pair[1]),
)
_batch = st.tuples(_records, st.sampled_from(Codec))


def _piece(batches: list[bytearray], base_offset: int) -> tuple[bytes, int]:
    """Batches behind each other, as a log has them; and the offset behind them."""
    offset = base_offset
    for batch in batches:
        set_base_offset(memoryview(batch), offset)
        offset += struct.unpack_from(">i", batch, 57)[0]
    return b"".join(batches), offset


def _schema(*columns: str) -> Any:
    return pa.schema([(name, _TYPES[name]) for name in columns or _OF_RECORDS])


def _decoded(data: bytes, start: int, stop: int, *columns: str) -> list[dict[str, Any]]:
    walked = walk(memoryview(data), None, start, stop)
    batches = list(Decoder(_schema(*columns), "a topic", 7).decode(data, walked.found, start, stop))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(_schema(*columns))
        assert batch.num_rows
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, _schema(*columns)).to_pylist()
    return rows


def _expected(data: bytes, start: int, stop: int) -> list[dict[str, Any]]:
    walked = walk(memoryview(data), None, 0, stop)
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": "a topic",
            "partition": 7,
            "offset": record.offset,
            "timestampType": int(record.append_time),
            "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
        }
        for frame in walked.found
        for record in read_records(memoryview(data)[frame.position : frame.position + frame.header.size])
        if start <= record.offset < stop
    ]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(st.lists(_batch, min_size=1, max_size=5), st.integers(0, 2**40), st.data())
def test_the_same_records_as_one_at_a_time(
    batches: list[tuple[list[Record], Codec]], base_offset: int, data: st.DataObject
) -> None:
    built = [build_batch(records, codec=codec) for records, codec in batches]
    piece, end = _piece(built, base_offset)
    start = data.draw(st.integers(base_offset, end))
    stop = data.draw(st.integers(start, end))
    rows = _decoded(piece, start, stop)
    times = [row.pop("timestamp") for row in rows]
    assert rows == _expected(piece, start, stop)
    written = [record for records, _ in batches for record in records][start - base_offset : stop - base_offset]
    micros = pa.array(times, pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    assert micros == [record.timestamp_ms * 1000 for record in written]


def test_one_column_alone() -> None:
    piece, end = _piece([build_batch([Record(offset=0, timestamp_ms=1, key=b"k", value=b"v")] * 3)], 10)
    assert _decoded(piece, 11, end, "offset") == [{"offset": 11}, {"offset": 12}]
    assert _decoded(piece, 0, end, "value", "key")[0] == {"value": b"v", "key": b"k"}


def test_control_batches_are_not_records() -> None:
    control = build_batch([Record(offset=0, timestamp_ms=1, key=b"k", value=b"v")])
    struct.pack_into(">h", control, 21, Attributes.CONTROL)
    struct.pack_into(">I", control, 17, frame_crc(memoryview(control)))
    plain = build_batch([Record(offset=0, timestamp_ms=1, key=None, value=b"v")])
    piece, end = _piece([control, plain], 0)
    assert [row["offset"] for row in _decoded(piece, 0, end)] == [1]


def test_times_that_spark_cannot_hold() -> None:
    records = [Record(offset=0, timestamp_ms=time, key=None, value=None) for time in (2**62, -(2**62))]
    piece, end = _piece([build_batch(records)], 0)
    walked = walk(memoryview(piece), None, 0, end)
    (batch,) = Decoder(_schema("timestamp"), "t", 0).decode(piece, walked.found, 0, end)
    assert batch.column(0).cast(pa.int64()).to_pylist() == [9223372036854775000, -9223372036854775000]


def test_header_names_that_are_no_text() -> None:
    batch = build_batch([Record(offset=0, timestamp_ms=1, key=None, value=None, headers=(("ab", b"x"),))])
    at = batch.index(b"ab")
    batch[at] = 0xFF
    struct.pack_into(">I", batch, 17, frame_crc(memoryview(batch)))
    piece, end = _piece([batch], 0)
    assert _decoded(piece, 0, end, "headers") == [{"headers": [{"key": "\ufffdb", "value": b"x"}]}]


@settings(max_examples=300, deadline=None)
@given(st.lists(_record, min_size=1, max_size=30), st.data())
def test_no_body_makes_it_read_outside(records: list[Record], data: st.DataObject) -> None:
    batch = build_batch(records)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    struct.pack_into(">I", batch, 17, frame_crc(memoryview(batch)))
    sound = build_batch([Record(offset=0, timestamp_ms=1, key=None, value=b"sound")])
    piece, end = _piece([sound, batch, sound[:]], 0)
    try:
        rows = _decoded(piece, 0, end)
    except MalformedRecords as error:
        assert f"the batch of records 1 to {len(records)} of topic 'a topic' partition 7" in str(error)  # noqa: PT017
    else:
        assert len(rows) == len(records) + 2


@pytest.mark.parametrize(("position", "value"), [(0, 1), (11, 7), (12, 1), (16, 3), (20, 1), (60, 9), (70, 9)])
def test_a_walk_ends_at_what_is_not_the_next_frame(position: int, value: int) -> None:
    batches = [build_batch([Record(offset=0, timestamp_ms=1, key=None, value=b"v" * 30)]) for _ in range(3)]
    piece, end = _piece(batches, 100)
    size = len(batches[0])
    damaged = bytearray(piece)
    damaged[size + position] ^= value
    walked = walk(memoryview(damaged), 100, 100, end)
    assert [frame.header.base_offset for frame in walked.found] == [100]
    assert (walked.position, walked.next_offset) == (size, 101)
    assert walked.stop is not Stop.DONE
    cut = walk(memoryview(piece)[: size + 80], 100, 100, end)
    assert (cut.stop, cut.needed_bytes) == (Stop.SHORT, size)
    assert walk(memoryview(piece), 100, 101, 102).found[0].header.base_offset == 101


def _entry(records: list[Record], first_offset: int, count: int) -> bytearray:
    """What a Pulsar client wrote, as the log has it."""
    data = memoryview(build_entry(records, first_offset, count))
    frame = build_frame(data, check_entry(data))
    set_base_offset(memoryview(frame), first_offset)
    return frame


def test_records_of_another_protocol_are_rows_like_any_other() -> None:
    written = [
        Record(offset=10 + n, timestamp_ms=1000 + n, key=b"k%d" % n, value=b"v" * n, headers=(("h", b"x"),))
        for n in range(6)
    ]
    kafka = build_batch(written[3:5])
    set_base_offset(memoryview(kafka), 13)
    piece = bytes(_entry(written[:3], 10, 3) + kafka + _entry(written[5:], 15, 1))
    rows = _decoded(piece, 0, 16)
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (r.offset, r.key, r.value) for r in written
    ]
    assert rows[0]["headers"] == [{"key": "h", "value": b"x"}]
    assert _decoded(piece, 11, 14, "offset") == [{"offset": 11}, {"offset": 12}, {"offset": 13}]


def test_who_wrote_it_and_how() -> None:
    record = Record(offset=0, timestamp_ms=1, key=None, value=b"v" * 100)
    packed = build_batch([record] * 2, codec=Codec.ZSTD)
    struct.pack_into(">qh", packed, 43, 7001, 3)
    struct.pack_into(">I", packed, 17, frame_crc(memoryview(packed)))
    piece, end = _piece([packed, build_batch([record])], 0)
    piece += bytes(_entry([Record(offset=end, timestamp_ms=1, key=None, value=b"v")], end, 1))
    assert [tuple(row.values()) for row in _decoded(piece, 0, end + 1, *ORIGIN_COLUMNS)] == [
        ("kafka", "zstd", 7001, 3),
        ("kafka", "zstd", 7001, 3),
        ("kafka", "none", None, None),
        ("pulsar", None, None, None),
    ]
    # What a broker sends is Kafka's, and beside it, how it was written.
    frames = walk(memoryview(piece), None, 0, end).found
    told = with_origins(frames, [(0, Magic.KAFKA_V2), (frames[1].header.base_offset, Magic.IGGY_BATCH)])
    batches = Decoder(_schema(*ORIGIN_COLUMNS), "t", 0).decode(piece, told, 1, 3)
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == [
        ("kafka", "zstd", 7001, 3),
        ("iggy", None, None, None),
    ]
    assert with_origins(frames, []) == frames


def test_places_without_a_record_are_no_rows() -> None:
    kept = [Record(offset=offset, timestamp_ms=5, key=None, value=b"%d" % offset) for offset in (10, 12, 15)]
    piece = bytes(_entry(kept, 10, 7) + _entry([], 17, 2))
    assert _decoded(piece, 0, 19, "offset", "value") == [{"offset": r.offset, "value": r.value} for r in kept]
    assert _decoded(piece, 11, 15, "offset") == [{"offset": 12}]
