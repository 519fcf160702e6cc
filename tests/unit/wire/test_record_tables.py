"""Both ways of translation, by records and by tables, come to the same bytes; and the loops behind the tables give
the same whether they are compiled or not."""

from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.model.frame import FrameHeader, Magic, frame_crc, read_frame_header
from millstream.model.frame_span import FrameSpan, frame_of, spans_of
from millstream.model.record import Record
from millstream.model.record_table import RecordTable
from millstream.wire import iggy, kafka, kafka07, pulsar
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.iggy import message_tables as iggy_tables
from millstream.wire.iggy import polled_frame
from millstream.wire.iggy.incoming import Layout
from millstream.wire.iggy.polled import message_of
from millstream.wire.iggy.polled_frame import poll_messages, poll_table
from millstream.wire.kafka import record_tables as kafka_tables
from millstream.wire.kafka.records import build_batch, place_batch
from millstream.wire.kafka07 import message_tables as kafka07_tables
from millstream.wire.kafka07.frames import encode_records
from millstream.wire.pulsar import message_tables as pulsar_tables
from millstream.wire.pulsar.entry_run import EntryRun
from millstream.wire.pulsar.records import build_entries
from millstream.wire.translation import READERS, read_records
from tests.support.batches import frames_of
from tests.support.twins import twin
from tests.unit.wire.any_frames import frames, kafka_frames, rows_of_frames

PACKAGES = {Magic.KAFKA_V2: kafka, Magic.KAFKA07_SET: kafka07, Magic.PULSAR_ENTRY: pulsar, Magic.IGGY_BATCH: iggy}
TABLES = {
    Magic.KAFKA_V2: kafka_tables,
    Magic.KAFKA07_SET: kafka07_tables,
    Magic.PULSAR_ENTRY: pulsar_tables,
    Magic.IGGY_BATCH: iggy_tables,
}
LOOPS = (
    (kafka_tables, "wire.kafka.record_rows"),
    (kafka07_tables, "wire.kafka07.message_rows"),
    (pulsar_tables, "wire.pulsar.message_rows"),
    (pulsar_tables, "wire.pulsar.entry_rows"),
    (iggy_tables, "wire.iggy.message_rows"),
    (polled_frame, "wire.iggy.polled_rows"),
)
"""Who calls a module of loops, and the module."""
NAMES = ("batch_end", "plain_run", "read_entries", "read_rows", "write_entries", "write_rows", "PolledRows")
"""What they call."""
SEED = b"a seed of ids"
PATIENT = settings(
    derandomize=True,
    max_examples=100,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=["installed", "python"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The loops as they are installed, and in Python."""
    if request.param == "python":
        for caller, name_of_loops in LOOPS:
            module = twin(name_of_loops)
            for name in NAMES:
                if hasattr(module, name) and hasattr(caller, name):
                    monkeypatch.setattr(caller, name, getattr(module, name))
    return str(request.param)


def table_of(frame: memoryview) -> RecordTable | None:
    """A frame as a table, whether or not anything is compiled here."""
    return table_of_span(frame_of(frame))


def table_of_span(span: FrameSpan) -> RecordTable | None:
    """The same of several frames."""
    read: Callable[..., RecordTable | None] = TABLES[Magic(span.magic)].read_table
    return read(span, compiled=True)


def polled_both(
    table: RecordTable, records: list[Record], layout: Layout, header: FrameHeader
) -> Iterator[polled_frame.PolledFrame | None]:
    append_time_ms = header.max_timestamp if header.magic == Magic.IGGY_BATCH else None
    yield poll_table(table, layout, 3, SEED, compiled=True)
    yield poll_messages([message_of(one, SEED, append_time_ms) for one in records], layout, 3)


def test_every_encoding_has_both_readers() -> None:
    assert {magic: (tables.__name__, "read_table") for magic, tables in TABLES.items()} == {
        magic: table_reader for magic, (_, table_reader) in READERS.items()
    }


@given(frames)
@PATIENT
def test_a_table_holds_the_records(loops: str, frame: memoryview) -> None:
    table = table_of(frame)
    if table is None:
        return
    records = list(read_records(frame))
    assert list(table.records()) == records
    assert [table.key(index) for index in range(table.count)] == [one.key for one in records]
    held = [
        part
        for one in records
        for part in (one.key, one.value, *(x for name, value in one.headers for x in (name.encode(), value)))
    ]
    assert table.content_bytes == sum(len(part or b"") for part in held)
    assert table.value_bytes == sum(len(one.value or b"") for one in records)
    assert table.header_count == sum(len(one.headers) for one in records)


@given(frames)
@PATIENT
def test_both_ways_make_the_same_batches_and_message_sets(loops: str, frame: memoryview) -> None:
    table, header = table_of(frame), read_frame_header(frame)
    if table is None:
        return
    records = list(read_records(frame))
    assert kafka_tables.place_table(table) == place_batch(records, header)
    for magic in (0, 1):
        assert kafka07_tables.encode_table(table, magic) == encode_records(records, magic)
        assert kafka07_tables.encoded_bytes(table, magic) == len(encode_records(records, magic))


@given(frames, st.sampled_from([2_500_000, 300, 100, 1]))
@PATIENT
def test_both_ways_make_the_same_entries(loops: str, frame: memoryview, content_bytes_max: int) -> None:
    table, header = table_of(frame), read_frame_header(frame)
    if table is None:
        return
    where = {"first_offset": header.base_offset, "message_count": header.last_offset_delta + 1}
    records = list(read_records(frame))
    assert list(pulsar_tables.build_table_entries(table, **where, content_bytes_max=content_bytes_max)) == list(
        build_entries(records, **where, content_bytes_max=content_bytes_max)
    )


@given(frames, st.sampled_from(Layout))
@PATIENT
def test_both_ways_make_the_same_polls(loops: str, frame: memoryview, layout: Layout) -> None:
    table, header = table_of(frame), read_frame_header(frame)
    if table is None or not table.count:
        return
    found, wanted = polled_both(table, list(read_records(frame)), layout, header)
    assert wanted is not None
    if found is not None:
        assert bytes(found.content) == bytes(wanted.content)
        assert (list(found.offsets), found.starts, found.firsts) == (
            list(wanted.offsets),
            wanted.starts,
            wanted.firsts,
        )


@given(rows_of_frames, st.sampled_from(Layout))
@PATIENT
def test_several_frames_taken_apart_together_are_what_each_is_by_itself(
    loops: str, data: memoryview, layout: Layout
) -> None:
    for span in spans_of(data, frames_max=256):
        table = table_of_span(span)
        if table is None:
            continue
        each = [(one.header, list(read_records(one.data))) for one in span.frames()]
        records = [record for _, found in each for record in found]
        assert list(table.records()) == records
        ends = list(accumulate(len(found) for _, found in each))
        assert table.span.heads[8 : 9 * span.count : 9].tolist() == ends
        check_batches(kafka_tables.place_table(table), each)
        assert kafka07_tables.encode_table(table, 1) == encode_records(records, 1)
        check_entries(pulsar_tables.build_run(table) if span.count > 1 else None, each)
        check_polls(table, each, layout)


def check_batches(batches: bytearray, each: list[tuple[FrameHeader, list[Record]]]) -> None:
    """The batches hold the records at their offsets, and take all offsets of the frames."""
    placed = [read_frame_header(batch) for batch in frames_of(batches)]
    assert (placed[0].base_offset, placed[-1].last_offset) == (each[0][0].base_offset, each[-1][0].last_offset)
    assert [one.base_offset for one in placed[1:]] == [one.last_offset + 1 for one in placed[:-1]]
    found = [record for batch in frames_of(batches) for record in read_records(memoryview(batch))]
    alone = [bytes(place_batch(records, header)) for header, records in each]
    assert found == [record for batch in alone for record in read_records(memoryview(batch))]
    for batch, header in zip(frames_of(batches), placed, strict=True):
        assert header.crc == frame_crc(memoryview(batch))
        within = [
            one for one in alone if header.base_offset <= read_frame_header(one).base_offset <= header.last_offset
        ]
        assert len(within) > 1 or within == [bytes(batch)]


def check_entries(run: EntryRun | None, each: list[tuple[FrameHeader, list[Record]]]) -> None:
    if run is None:
        return
    built = [
        list(build_entries(records, first_offset=header.base_offset, message_count=header.last_offset_delta + 1))
        for header, records in each
    ]
    assert [run.data[start:stop] for start, stop in pairwise(run.starts)] == [one.data for (one,) in built]
    assert list(run.offsets) == [header.base_offset for header, _ in each]
    assert run.end_offset == each[-1][0].last_offset + 1


def check_polls(table: RecordTable, each: list[tuple[FrameHeader, list[Record]]], layout: Layout) -> None:
    found = poll_table(table, layout, 3, SEED, compiled=True) if table.count else None
    if found is None:
        return
    messages = [
        message_of(record, SEED, header.max_timestamp if header.magic == Magic.IGGY_BATCH else None)
        for header, records in each
        for record in records
    ]
    wanted = poll_messages(messages, layout, 3)
    assert bytes(found.content) == bytes(wanted.content)
    assert (list(found.offsets), found.starts, found.firsts) == (list(wanted.offsets), wanted.starts, wanted.firsts)


@given(frames, st.integers(61, 400), st.integers(0, 255))
@PATIENT
def test_a_damaged_body_is_left_to_the_records_or_means_the_same(
    loops: str, frame: memoryview, position: int, byte: int
) -> None:
    frame[61 + position % (len(frame) - 61)] = byte
    try:
        table = table_of(frame)
    except (WireError, CompressionError):
        table = None
    if table is None:
        return
    try:
        records = list(read_records(frame))
    except (WireError, CompressionError):
        # What the checks at the door let through only the records complain of: nothing in there is out of bounds.
        list(table.records())
        return
    assert list(table.records()) == records


@given(kafka_frames)
@PATIENT
def test_nothing_goes_by_tables_where_nothing_is_compiled(frame: memoryview) -> None:
    assert kafka_tables.read_table(frame_of(frame), compiled=False) is None


def test_nearly_all_frames_go_by_tables() -> None:
    plain = [Record(offset=n, timestamp_ms=n, key=b"k", value=b"v", headers=(("h", b"1"),)) for n in range(3)]
    assert table_of(memoryview(build_batch(plain))) is not None


@pytest.mark.parametrize("count", [1, 17, 500])
def test_many_headers(loops: str, count: int) -> None:
    record = Record(
        offset=0, timestamp_ms=1, key=None, value=b"", headers=tuple((f"h{n}", b"v") for n in range(count))
    )
    table = table_of(memoryview(build_batch([record])))
    assert table is not None
    assert list(table.records()) == [record]
