"""Index files: what the broker writes is understood, and used to begin in the right place."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from glob import glob
from typing import Any

import pytest
from pyspark.sql.datasource import GreaterThanOrEqual

from millstream.spark.client import Client
from millstream.spark.read import segments
from millstream.spark.read.indexes import read_index
from millstream.spark.read.segments import partition_directory
from millstream.storage.index import Hole, SegmentIndex, encode_index
from tests.spark.conftest import Topics
from tests.spark.read.readers_bed import batch_rows, pushing_reader, rows_of
from tests.support.sample_records import BASE_MS
from tests.support.server_process import ServerProcess
from tests.support.waiting import eventually

_START = datetime.fromtimestamp(BASE_MS / 1000, UTC)


def _written(path: str, index: SegmentIndex, producers: bytes = b"") -> str:
    log_path = f"{path}/{index.base_offset:020d}.log"
    with open(log_path.removesuffix(".log") + ".index", "wb") as file:
        file.write(encode_index(index, producers))
    return log_path


def test_what_the_broker_writes(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = str(tmp_path_factory.mktemp("index"))
    index = SegmentIndex(1000)
    for number in range(50):
        index.add(1000 + 10 * number, 1010 + 10 * number, 3000 * number, 3000, BASE_MS + number, 2)
    log_path = _written(directory, index, b"producers")
    read = read_index(log_path, 1000)
    assert read is not None
    assert (read.log_bytes, read.next_offset, read.max_timestamp_ms) == (150_000, 1500, BASE_MS + 49)
    assert read.tells_times
    for offset in (1000, 1005, 1019, 1020, 1333, 1499, 9999):
        assert read.place_of(offset) == index.floor(offset)
    for number in (-5, 0, 1, 20, 49, 100):
        assert read.place_before(BASE_MS + number) == index.before_time(BASE_MS + number)


def test_what_tells_no_times(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = str(tmp_path_factory.mktemp("foreign"))
    index = SegmentIndex(0)
    index.add(0, 10, 0, 3000, BASE_MS, 2)
    index.add(10, 20, 3000, 3000, BASE_MS, 4)
    read = read_index(_written(directory, index), 0)
    assert read is not None
    assert not read.tells_times, "an application may have given Pulsar's messages any time"
    index = SegmentIndex(0)
    index.add(0, 10, 0, 3000, BASE_MS, 2)
    index.add_hole(Hole(3000, 6000, 10, 20))
    read = read_index(_written(directory, index), 0)
    assert read is not None
    assert not read.tells_times, "what is lost has to be reported"


@pytest.mark.parametrize("at", [0, 9, 41, 60, -1])
def test_a_damaged_file_counts_as_none(tmp_path_factory: pytest.TempPathFactory, at: int) -> None:
    directory = str(tmp_path_factory.mktemp("damaged"))
    index = SegmentIndex(0)
    index.add(0, 10, 0, 3000, BASE_MS, 2)
    log_path = _written(directory, index)
    path = log_path.removesuffix(".log") + ".index"
    with open(path, "rb") as file:
        content = bytearray(file.read())
    content[at] ^= 0x11
    with open(path, "wb") as file:
        file.write(content)
    assert read_index(log_path, 0) is None
    os.remove(path)
    assert read_index(log_path, 0) is None


@pytest.fixture(scope="module")
def topic(broker: ServerProcess, topics: Topics) -> str:
    """5000 records in many segments; the full ones have their index files, which are written behind a flush."""
    name = topics.create("indexed", segment_bytes="20000")
    for first in range(0, 5000, 100):
        topics.write_numbers(name, range(first, first + 100))
    with Client(broker.kafka) as client:
        directory = partition_directory(broker.data_dir, client.topics([name])[name].topic_id, 0)
    assert directory is not None
    eventually(lambda: len(glob(f"{directory}/*.log")) - len(glob(f"{directory}/*.index")) == 1)
    return name


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How much is read of segment files."""
    segments._places.clear()
    sizes: list[int] = []

    class Counting:
        """The module os, whose pread counts."""

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        @staticmethod
        def pread(descriptor: int, size: int, position: int) -> bytes:
            data = os.pread(descriptor, size, position)
            sizes.append(len(data))
            return data

    monkeypatch.setattr(segments, "os", Counting())
    yield sizes
    segments._places.clear()


def test_old_segments_are_not_read(broker: ServerProcess, topic: str, bytes_read: list[int]) -> None:
    assert len(batch_rows(broker.kafka, subscribe=topic, direct="always")) == 5000
    whole = sum(bytes_read)
    segments._places.clear()
    bytes_read.clear()
    reader = pushing_reader(broker.kafka, subscribe=topic, direct="always")
    reader.pushFilters([GreaterThanOrEqual(("timestamp",), _START + timedelta(milliseconds=4800))])
    assert [row["offset"] for row in rows_of(reader)] == list(range(4800, 5000))
    assert sum(bytes_read) < whole / 4


def test_a_task_begins_near_its_first_offset(broker: ServerProcess, topics: Topics, bytes_read: list[int]) -> None:
    topic = topics.create("begin", segment_bytes="400000")
    for first in range(0, 30000, 1000):
        topics.write_numbers(topic, range(first, first + 1000), batch_num_messages=50, linger_ms=50)
    start = f'{{"{topic}": {{"0": 9000}}}}'
    end = f'{{"{topic}": {{"0": 9010}}}}'
    rows = batch_rows(broker.kafka, subscribe=topic, startingOffsets=start, endingOffsets=end, direct="always")
    assert [row["offset"] for row in rows] == list(range(9000, 9010))
    assert len(bytes_read) <= 3, "no walk from the beginning of the segment"
