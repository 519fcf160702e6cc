"""The file that compaction leaves: whole or refused, read from any offset, damage kept to itself."""

import pytest

from millstream.model.frame import read_frame_header, set_base_offset
from millstream.storage.compacted import CompactedDamaged, CompactedFile, CompactedWriter
from tests.support.batches import batch
from tests.support.simulated_files import SimulatedFiles

PATH = "/data/topics/t/0/00000000000000000100-abcd.compacted"


def framed(base_offset: int, size_bytes: int = 100) -> bytearray:
    frame = batch(bytes(size_bytes))
    set_base_offset(memoryview(frame), base_offset)
    return frame


def written(offsets: list[int], horizon: int, size_bytes: int = 100) -> SimulatedFiles:
    files = SimulatedFiles()
    files.make_directory("/data/topics/t/0")
    writer = CompactedWriter(files, PATH)
    frames = [framed(offset, size_bytes) for offset in offsets]
    writer.write([(read_frame_header(frame), frame) for frame in frames[:3]])
    writer.write([(read_frame_header(frame), frame) for frame in frames[3:]])
    writer.finish(horizon)
    return files


def all_from(file: CompactedFile, offset: int, max_bytes: int) -> list[int]:
    found: list[int] = []
    while offset < file.horizon:
        data, behind = file.read(offset, max_bytes)
        position = 0
        while position < len(data):
            header = read_frame_header(data, position)
            found.append(header.base_offset)
            position += header.size
        assert behind > offset
        offset = behind
    return found


@pytest.mark.parametrize("max_bytes", [1, 1000, 1 << 20])
def test_it_is_read_from_any_offset(max_bytes: int) -> None:
    offsets = list(range(0, 5000, 7))
    file = CompactedFile(written(offsets, 6000, 400), PATH)
    assert (file.horizon, file.records) == (6000, len(offsets))
    for start in (0, 1, 7, 8, 3501, 4990, 4998, 5500):
        assert all_from(file, start, max_bytes) == [offset for offset in offsets if offset >= start]
    last = file.last_frame()
    assert last is not None
    assert read_frame_header(last).base_offset == offsets[-1]


def test_nothing_left_is_a_file_too() -> None:
    file = CompactedFile(written([], 50), PATH)
    assert file.read(0, 100) == (memoryview(b""), 50)
    assert file.last_frame() is None


def test_what_is_not_whole_is_refused() -> None:
    files = SimulatedFiles()
    files.make_directory("/data/topics/t/0")
    with pytest.raises(CompactedDamaged):
        CompactedFile(files, PATH)
    for cut in (1, 30, 60):
        files = written([1, 2], 10)
        file = files.open(PATH)
        file.truncate(file.size() - cut)
        with pytest.raises(CompactedDamaged):
            CompactedFile(files, PATH)
    for back in (1, 20, 40):
        files = written([1, 2], 10)
        file = files.open(PATH)
        at = file.size() - back
        file.write(at, [bytes([file.read(at, 1)[0] ^ 1])])
        with pytest.raises(CompactedDamaged):
            CompactedFile(files, PATH)


def test_damage_costs_no_more_than_a_stride_of_the_index() -> None:
    offsets = list(range(1000))
    files = written(offsets, 1000, 400)
    file = files.open(PATH)
    file.write(200_000, [b"damage"])
    found = all_from(CompactedFile(files, PATH), 0, 1 << 20)
    assert 850 < len(found) < 1000
    assert found[-1] == 999
