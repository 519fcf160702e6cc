"""One segment: its index in memory and on the disk, its files, and the damage that it remembers."""

import logging
import struct

import pytest

from millstream.model.frame import read_frame_header, set_base_offset
from millstream.storage.index import SegmentIndex
from millstream.storage.producers import ProducerStates
from millstream.storage.segment import Segment, scan, segment_name
from tests.support.batches import batch, frames_of
from tests.support.simulated_files import Fault, Operation, SimulatedFiles

BASE = 100


@pytest.fixture
def files() -> SimulatedFiles:
    files = SimulatedFiles()
    files.make_directory("d")
    return files


def filled(files: SimulatedFiles, frames: int = 30) -> tuple[Segment, list[bytes]]:
    """An open segment with frames of two records and about 1 KiB each."""
    segment = Segment(files, "d", SegmentIndex(BASE), created_ms=7)
    segment.open()
    written = []
    for n in range(frames):
        frame = batch(b"v" * 500, 2, timestamp_ms=1000 + n, producer_id=1, sequence=2 * n)
        set_base_offset(memoryview(frame), segment.next_offset)
        position = segment.append([frame], len(frame))
        segment.note(segment.next_offset, segment.next_offset + 2, position, len(frame), 1001 + n, 2)
        written.append(bytes(frame))
    return segment, written


def test_names_sort_as_offsets_do() -> None:
    offsets = [0, 9, 10, 99, 2**31, 2**63 - 1]
    assert [segment_name(offset) for offset in offsets] == sorted(segment_name(offset) for offset in offsets)
    assert len(segment_name(2**63 - 1)) == 20


def test_a_sealed_segment_reads_its_index_again(files: SimulatedFiles) -> None:
    segment, written = filled(files)
    segment.write_index(b"")
    in_memory = segment.index
    segment.drop_index()
    assert segment.index is in_memory, "one that is open keeps it"
    segment.close()
    segment.drop_index()
    assert segment.index is not in_memory
    assert segment.index == in_memory
    data, next_offset = segment.read(BASE + 41, 1)
    assert (list(frames_of(data)), next_offset) == ([written[20]], BASE + 42)


def test_a_sealed_segment_rebuilds_an_index_that_is_gone(files: SimulatedFiles) -> None:
    segment, written = filled(files)
    in_memory = segment.index
    segment.close()
    segment.drop_index()
    assert segment.index == in_memory
    data, _ = segment.read(BASE, 10**6)
    assert list(frames_of(data)) == written


def test_an_index_of_another_length_is_not_taken(files: SimulatedFiles) -> None:
    segment, _ = filled(files, 10)
    segment.write_index(b"")
    frame = batch(b"one more")
    set_base_offset(memoryview(frame), segment.next_offset)
    position = segment.append([frame], len(frame))
    segment.note(segment.next_offset, segment.next_offset + 1, position, len(frame), 5, 2)
    segment.close()
    segment.drop_index()
    assert segment.index.next_offset == BASE + 21


@pytest.mark.parametrize("operation", ["open", "write", "sync", "replace"])
def test_an_index_that_cannot_be_written_is_no_loss(
    files: SimulatedFiles, operation: Operation, caplog: pytest.LogCaptureFixture
) -> None:
    segment, written = filled(files)
    files.inject(Fault(operation, code=28))
    segment.write_index(b"")
    assert "index not written" in caplog.text
    segment.close()
    segment.drop_index()
    data, _ = segment.read(BASE, 10**6)
    assert list(frames_of(data)) == written


def test_removing(files: SimulatedFiles) -> None:
    segment, _ = filled(files)
    segment.write_index(b"")
    files.put("d/other", b"")
    segment.close()
    segment.remove_files()
    assert files.list_directory("d") == ["other"]
    segment.remove_files()


def test_the_time_that_retention_goes_by(files: SimulatedFiles) -> None:
    segment, _ = filled(files, 0)
    assert segment.latest_ms == 7
    segment.note(BASE, BASE + 1, 0, 100, -1, 2)
    assert segment.latest_ms == 7
    segment.note(BASE + 1, BASE + 2, 100, 100, 0, 2)
    assert segment.latest_ms == 0


def test_damage_is_measured_once(files: SimulatedFiles) -> None:
    segment, written = filled(files)
    size = len(written[0])
    files.flip_bit(segment.log_path, 8 * (10 * size + 300))
    for _ in range(2):
        data, next_offset = segment.read(BASE + 20, 10**6)
        assert list(frames_of(data)) == written[11:]
        assert next_offset == BASE + 60
    (hole,) = segment.index.holes
    assert (hole.position, hole.stop_position) == (10 * size, 11 * size)
    assert (hole.first_offset, hole.next_offset) == (BASE + 20, BASE + 22)


def test_a_time_in_damage_leads_behind_it(files: SimulatedFiles) -> None:
    segment, written = filled(files)
    files.flip_bit(segment.log_path, 8 * (10 * len(written[0]) + 300))
    found = segment.frame_for_time(1011, BASE)
    assert found is not None
    assert read_frame_header(found).base_offset == BASE + 22


def test_a_scan_finds_what_an_append_knew(files: SimulatedFiles) -> None:
    segment, _ = filled(files)
    index, producers = SegmentIndex(BASE), ProducerStates()
    assert scan(segment, index, producers, segment.log_bytes, None) == 0
    assert index == segment.index
    assert len(producers) == 1


def test_a_scan_tells_a_torn_tail_from_damage(files: SimulatedFiles, caplog: pytest.LogCaptureFixture) -> None:
    segment, written = filled(files, 4)
    size = len(written[0])
    content = files.content(segment.log_path)
    torn = Segment(files, "d", SegmentIndex(BASE), 0)
    files.put(segment.log_path, content[:-1])
    for next_offset, left, holes in ((None, size - 1, 0), (BASE + 8, 0, 1)):
        index = SegmentIndex(BASE)
        with caplog.at_level(logging.CRITICAL):
            assert scan(torn, index, None, len(content) - 1, next_offset) == left
        assert len(index.holes) == holes
        assert index.next_offset == (next_offset or BASE + 6)


def test_a_length_that_is_damaged_in_every_way(files: SimulatedFiles) -> None:
    """Whatever a length field says, the frames around it are served, and nothing large is read for it."""
    segment, written = filled(files, 6)
    place = 2 * len(written[0]) + 8
    right = files.content(segment.log_path)
    for length in (-(2**31), -1, 0, 48, 49, len(written[0]) - 13, len(written[0]) - 11, 10_000, 2**31 - 1):
        files.put(segment.log_path, right[:place] + struct.pack(">i", length) + right[place + 4 :])
        again = Segment(files, "d", SegmentIndex(BASE), 0)
        index = SegmentIndex(BASE)
        assert scan(again, index, None, len(right), BASE + 12) == 0
        again.take_over(index)
        first, next_offset = again.read(BASE, 10**6)
        second, end = again.read(next_offset, 10**6)
        assert list(frames_of(first)) + list(frames_of(second)) == written[:2] + written[3:]
        assert end == BASE + 12
