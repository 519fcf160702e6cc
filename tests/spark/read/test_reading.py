"""One task, without Spark: files, the network, and what happens when files are damaged or go away."""

import dataclasses
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from millstream.model.frame import read_frame_header
from millstream.spark.client import EARLIEST, LATEST, Client
from millstream.spark.errors import DataLost, DirectReadImpossible, TopicMissing
from millstream.spark.read import segments
from millstream.spark.read.options import Direct
from millstream.spark.read.reading import OffsetRange, read_range
from millstream.spark.servers import Servers
from tests.spark.conftest import Topics
from tests.support.server_process import ServerProcess, serving
from tests.support.waiting import eventually

_SCHEMA = pa.schema([("offset", pa.int64()), ("value", pa.binary())])


def _range(server: ServerProcess, topic: str, **changes: Any) -> OffsetRange:
    """All of partition 0."""
    with Client(server.kafka) as client:
        described = client.topics([topic])
        leader = described[topic].leaders[0]
        whole = OffsetRange(
            servers=Servers.at(server.kafka),
            topic=topic,
            topic_id=described[topic].topic_id,
            partition=0,
            leader=leader,
            data_dir=client.data_dir(leader),
            start=client.offsets(described, EARLIEST)[topic][0],
            stop=client.offsets(described, LATEST)[topic][0],
            direct=Direct.ALWAYS,
            fails_on_data_loss=True,
        )
    return dataclasses.replace(whole, **changes)


def _read(wanted: OffsetRange) -> list[int]:
    """The offsets that are read; each record's value must be its offset."""
    rows = [row for batch in read_range(wanted, _SCHEMA) for row in batch.to_pylist()]
    assert all(int(row["value"].split()[0]) == row["offset"] for row in rows)
    return [row["offset"] for row in rows]


def _directory(wanted: OffsetRange) -> str:
    return f"{wanted.data_dir}/topics/{wanted.topic_id}/0"


def _segment_paths(wanted: OffsetRange) -> list[str]:
    directory = _directory(wanted)
    return [f"{directory}/{name}" for name in sorted(os.listdir(directory)) if name.endswith(".log")]


def _frame_positions(path: str) -> list[tuple[int, int]]:
    """Position and base offset of each frame of a file."""
    with open(path, "rb") as file:
        data = file.read()
    position, found = 0, []
    while position < len(data):
        header = read_frame_header(data, position)
        found.append((position, header.base_offset))
        position += header.size
    return found


@pytest.fixture
def topic(topics: Topics) -> str:
    """A topic of 3000 numbered records in several segments of many batches."""
    name = topics.create("task", segment_bytes="8000")
    for first in range(0, 3000, 50):
        topics.write_numbers(name, range(first, first + 50))
    return name


@pytest.fixture(autouse=True)
def _forget_places() -> Iterator[None]:
    segments._places.clear()
    yield
    segments._places.clear()


def test_files_and_network_bring_the_same(broker: ServerProcess, topic: str) -> None:
    for start, stop in ((0, 3000), (1, 2999), (149, 151), (2999, 3000), (1234, 2345)):
        for direct in (Direct.ALWAYS, Direct.NEVER):
            wanted = _range(broker, topic, start=start, stop=stop, direct=direct)
            assert _read(wanted) == list(range(start, stop))


def test_the_parts_of_a_range_make_it_up(broker: ServerProcess, topic: str) -> None:
    parts = _range(broker, topic).split(7)
    assert [number for part in parts for number in _read(part)] == list(range(3000))


def test_the_next_read_goes_on_where_the_last_one_ended(
    broker: ServerProcess, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(_read(_range(broker, topic))) == 3000
    topics.write_numbers(topic, range(3000, 3010))
    read_bytes = 0

    def count(descriptor: int, size: int, position: int) -> bytes:
        nonlocal read_bytes
        data = os.pread(descriptor, size, position)
        read_bytes += len(data)
        return data

    monkeypatch.setattr(segments, "os", _Os(count))
    wanted = _range(broker, topic, start=3000)
    assert _read(wanted) == list(range(3000, 3010))
    last = _segment_paths(wanted)[-1]
    assert read_bytes <= 4 * (os.path.getsize(last) - segments._places[last][1] + 1000)


class _Os:
    """The module os with another pread."""

    def __init__(self, pread: Any) -> None:
        self.pread = pread

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def test_a_place_that_is_remembered_wrongly_does_no_harm(broker: ServerProcess, topic: str) -> None:
    wanted = _range(broker, topic)
    for path in _segment_paths(wanted):
        segments._places[path] = (0, 17)
    assert _read(wanted) == list(range(3000))


@pytest.mark.parametrize("at", [5, 30, 70])
def test_damage_is_left_to_the_broker(broker: ServerProcess, topic: str, at: int) -> None:
    wanted = _range(broker, topic)
    path = _segment_paths(wanted)[1]
    places = _frame_positions(path)
    (position, lost), (_, behind) = places[2], places[3]
    with open(path, "r+b") as file:
        file.seek(position + at)
        byte = file.read(1)[0]
        file.seek(position + at)
        file.write(bytes([byte ^ 0x10]))
    for direct in (Direct.ALWAYS, Direct.NEVER):
        with pytest.raises(DataLost, match=rf"partition 0 has lost the offsets {lost} to {behind - 1} "):
            _read(dataclasses.replace(wanted, direct=direct))
        rest = _read(dataclasses.replace(wanted, direct=direct, fails_on_data_loss=False))
        assert rest == [*range(lost), *range(behind, 3000)]


def test_segments_that_go_away_while_they_are_read(broker: ServerProcess, topics: Topics, topic: str) -> None:
    wanted = _range(broker, topic)
    paths = _segment_paths(wanted)
    last_base = int(os.path.basename(paths[-1]).removesuffix(".log"))
    strict = read_range(wanted, _SCHEMA)
    lenient = read_range(dataclasses.replace(wanted, fails_on_data_loss=False), _SCHEMA)
    assert len(paths) > 3
    read = [row["offset"] for row in next(lenient).to_pylist()]
    assert next(strict).num_rows == len(read)
    topics.delete_before(topic, last_base)
    eventually(lambda: not any(map(os.path.exists, paths[:-1])))

    with pytest.raises(DataLost, match=rf"has lost the offsets {len(read)} to {last_base - 1} "):
        list(strict)
    rest = [row["offset"] for batch in lenient for row in batch.to_pylist()]
    assert rest == list(range(last_base, 3000))


def test_a_topic_that_is_made_anew_is_another(broker: ServerProcess, topics: Topics, topic: str) -> None:
    wanted = _range(broker, topic)
    for done in topics.admin.delete_topics([topic]).values():
        done.result(timeout=30)
    topics.create_exactly(topic)
    topics.write_numbers(topic, range(3000))
    eventually(lambda: not os.path.exists(_directory(wanted)))
    with pytest.raises(DirectReadImpossible, match=r"direct=always, but the data directory .* take direct=auto"):
        _read(wanted)
    with pytest.raises(TopicMissing, match=rf"there is no topic '{topic}-0' at"):
        _read(dataclasses.replace(wanted, direct=Direct.AUTO))


@pytest.mark.parametrize("direct", [Direct.AUTO, Direct.ALWAYS])
def test_a_copy_of_the_directory_that_went_its_own_way(
    topics: Topics, tmp_path_factory: pytest.TempPathFactory, direct: Direct
) -> None:
    """Same path as the broker says, same topic, other records: as on another machine that was made from a copy."""
    original = str(tmp_path_factory.mktemp("original") / "data")
    copied = str(tmp_path_factory.mktemp("copied") / "data")
    with serving(original) as server:
        topic = Topics(server.kafka).create("copied")
        Topics(server.kafka).write_numbers(topic, range(10))
    shutil.copytree(original, copied)
    with serving(copied) as server:
        Topics(server.kafka).write_numbers(topic, range(110, 120))
    with serving(original) as server:
        wanted = dataclasses.replace(_range(server, topic), data_dir=copied, direct=direct)
        assert _read(wanted) == list(range(10)), "as far as they are the same, nobody can tell"
        Topics(server.kafka).write_numbers(topic, range(10, 20))
        wanted = dataclasses.replace(_range(server, topic), data_dir=copied, direct=direct)
        if direct is Direct.AUTO:
            with pytest.raises(DirectReadImpossible, match=r"are not those of the broker at .* take direct=never"):
                list(read_range(wanted, _SCHEMA))
        assert _read(dataclasses.replace(wanted, direct=Direct.NEVER)) == list(range(20))


@pytest.mark.parametrize("content", [b"", b"millstream 2\n"])
def test_a_directory_that_is_not_the_brokers(
    broker: ServerProcess, topic: str, tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    elsewhere = str(tmp_path_factory.mktemp("elsewhere"))
    wanted = _range(broker, topic, data_dir=elsewhere)
    os.makedirs(_directory(wanted))
    with open(f"{elsewhere}/format", "wb") as file:
        file.write(content)
    with pytest.raises(DirectReadImpossible):
        _read(wanted)
    assert _read(dataclasses.replace(wanted, direct=Direct.AUTO)) == list(range(3000))
