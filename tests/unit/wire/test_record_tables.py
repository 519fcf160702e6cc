"""Both ways of translation, by records and by tables, come to the same bytes; and the loops behind the tables give
the same whether they are compiled or not."""

import importlib.machinery
import importlib.util
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.model.frame import FrameHeader, Magic, read_frame_header
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
from millstream.wire.pulsar.records import build_entries
from millstream.wire.translation import READERS, read_records
from tests.unit.wire.any_frames import frames, kafka_frames

PACKAGES = {Magic.KAFKA_V2: kafka, Magic.KAFKA07_SET: kafka07, Magic.PULSAR_ENTRY: pulsar, Magic.IGGY_BATCH: iggy}
TABLES = {
    Magic.KAFKA_V2: kafka_tables,
    Magic.KAFKA07_SET: kafka07_tables,
    Magic.PULSAR_ENTRY: pulsar_tables,
    Magic.IGGY_BATCH: iggy_tables,
}
LOOPS = (
    (kafka_tables, "kafka/record_rows.py"),
    (kafka07_tables, "kafka07/message_rows.py"),
    (pulsar_tables, "pulsar/message_rows.py"),
    (iggy_tables, "iggy/message_rows.py"),
    (polled_frame, "iggy/polled_rows.py"),
)
"""Who calls a module of loops, and its source."""
SEED = b"a seed of ids"
PATIENT = settings(
    derandomize=True,
    max_examples=100,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def twin(source: str) -> ModuleType:
    """A module of loops as Python runs it, even where the compiled one comes first."""
    path = f"{next(iter(kafka.__path__)).removesuffix('kafka')}{source}"
    loader = importlib.machinery.SourceFileLoader(f"{source.replace('/', '_').removesuffix('.py')}_twin", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    assert not module.COMPILED
    return module


@pytest.fixture(params=["installed", "python"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The loops as they are installed, and in Python."""
    if request.param == "python":
        for caller, source in LOOPS:
            module = twin(source)
            for name in ("read_rows", "write_rows", "plain_run", "PolledRows"):
                if hasattr(module, name) and hasattr(caller, name):
                    monkeypatch.setattr(caller, name, getattr(module, name))
    return str(request.param)


def table_of(frame: memoryview) -> RecordTable | None:
    """A frame as a table, whether or not anything is compiled here."""
    read: Callable[..., RecordTable | None] = TABLES[Magic(frame[16])].read_table
    return read(frame, compiled=True)


def polled_both(
    table: RecordTable, records: list[Record], layout: Layout, header: FrameHeader
) -> Iterator[polled_frame.PolledFrame | None]:
    append_time_ms = header.max_timestamp if header.magic == Magic.IGGY_BATCH else None
    yield poll_table(table, layout, 3, SEED, append_time_ms, compiled=True)
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
    assert kafka_tables.place_table(table, header) == place_batch(records, header)
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
    assert kafka_tables.read_table(frame, compiled=False) is None


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
