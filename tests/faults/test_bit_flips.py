"""Every single bit of a small log turned over, while it is closed and while it is open.

What is served must be what was written; at most the one frame that was hit may be missing.
"""

import logging
from collections.abc import Iterator

import pytest

from millstream.model.frame import FrameHeader, read_frame_header
from millstream.storage.log import LogSettings, PartitionLog
from millstream.storage.recovery import open_log
from tests.support.batches import append, batch, frames_of, read_all, read_from
from tests.support.simulated_files import SimulatedFiles

DIRECTORY = "data/topics/t/0"
STEM = f"{DIRECTORY}/{0:020d}"
COUNTS = (1, 3, 2, 1, 4, 2)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Thousands of reported damages are not worth keeping; that they are reported is tested below."""
    logging.getLogger("millstream").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("millstream").setLevel(logging.NOTSET)


def opened(files: SimulatedFiles, segment_bytes: int = 2**30) -> PartitionLog:
    return open_log(files, DIRECTORY, LogSettings(segment_bytes=segment_bytes, retention_ms=-1), 0)[0]


def written(log: PartitionLog) -> list[bytes]:
    frames = []
    for n, count in enumerate(COUNTS):
        frame = batch(b"value %d" % n, count, 1000 + n, producer_id=4, sequence=sum(COUNTS[:n]))
        append(log, frame)
        frames.append(bytes(frame))
    return frames


def headers(frames: list[bytes]) -> list[FrameHeader]:
    return [read_frame_header(frame) for frame in frames]


def hit_by(bit: int, frames: list[bytes]) -> int:
    """Which frame a bit of the log file belongs to."""
    position = 0
    for n, frame in enumerate(frames):
        position += len(frame)
        if bit // 8 < position:
            return n
    raise AssertionError("the bit lies behind the last frame")


def check_served(log: PartitionLog, frames: list[bytes], hit: int) -> None:
    """Reading gives all frames but, perhaps, the one that was hit; from every offset, and by time."""
    left = frames[:hit] + frames[hit + 1 :]
    got = read_all(log)
    assert got == left, f"frames {[read_frame_header(frame).base_offset for frame in got]}"
    for header in headers(frames):
        data, _ = log.read(min(header.last_offset, log.end_offset), 1)
        following = [frame for frame in left if read_frame_header(frame).last_offset >= header.last_offset]
        assert list(frames_of(data)) == following[:1]
    for timestamp_ms in (1000, 1002, 1004):
        late = [frame for frame in left if read_frame_header(frame).max_timestamp >= timestamp_ms]
        found = log.frame_for_time(timestamp_ms)
        assert found is not None
        assert bytes(found) == late[0]


def check_goes_on(log: PartitionLog, files: SimulatedFiles, frames: list[bytes], hit: int) -> None:
    """The log takes more, and serves it after a restart too."""
    end = log.end_offset
    more = batch(b"more")
    assert append(log, more).base_offset == end
    files.kill()
    again = opened(files)
    assert read_from(again, end) == [more]
    assert read_all(again) == [*frames[:hit], *frames[hit + 1 :], more]


@pytest.mark.parametrize("index", ["whole", "missing"])
def test_every_bit_of_a_closed_log_file(index: str) -> None:
    files = SimulatedFiles()
    log = opened(files)
    frames = written(log)
    if index == "whole":
        log.close_work()()
    files.kill()
    for bit in range(8 * files.size(STEM + ".log")):
        files.flip_bit(STEM + ".log", bit)
        hit = hit_by(bit, frames)
        disk = files.copy()
        log = opened(disk)
        check_served(log, frames, hit)
        # A damaged last frame that no index vouches for cannot be told from a torn write: its offsets are free again.
        is_tail = index == "missing" and hit == len(frames) - 1
        assert log.end_offset == sum(COUNTS[:-1] if is_tail else COUNTS)
        if bit % 16 == 0:
            check_goes_on(log, disk, frames, hit)
        files.flip_bit(STEM + ".log", bit)


@pytest.mark.parametrize("index", ["whole", "missing"])
def test_every_bit_of_a_closed_and_sealed_log_file(index: str) -> None:
    files = SimulatedFiles()
    log = opened(files)
    frames = written(log)
    log.settings.segment_bytes = 1
    frame = batch(b"in the next segment")
    append(log, frame)
    behind = bytes(frame)
    log.close_work()()
    files.kill()
    if index == "missing":
        files.remove(STEM + ".index")
    for bit in range(8 * files.size(STEM + ".log")):
        files.flip_bit(STEM + ".log", bit)
        log = opened(files.copy())
        check_served(log, [*frames, behind], hit_by(bit, frames))
        assert log.end_offset == sum(COUNTS) + 1
        files.flip_bit(STEM + ".log", bit)


def test_every_bit_of_a_closed_index_file() -> None:
    files = SimulatedFiles()
    log = opened(files)
    frames = written(log)
    log.close_work()()
    files.kill()
    for bit in range(8 * files.size(STEM + ".index")):
        files.flip_bit(STEM + ".index", bit)
        disk = files.copy()
        log = opened(disk)
        assert read_all(log) == frames
        duplicate = batch(b"value 5", 2, 1005, producer_id=4, sequence=11)
        assert append(log, duplicate) == (11, True), "the producers are rebuilt"
        files.flip_bit(STEM + ".index", bit)


@pytest.mark.parametrize("sealed", [False, True], ids=["last segment", "sealed segment"])
def test_every_bit_of_an_open_log_file(sealed: bool) -> None:
    files = SimulatedFiles()
    log = opened(files)
    frames = written(log)
    if sealed:
        log.settings.segment_bytes = 1
        behind = batch(b"in the next segment")
        append(log, behind)
        frames.append(bytes(behind))
        log.flush_work()()
        log.flushed()
    bits = 8 * files.size(STEM + ".log")
    for bit in range(bits):
        files.flip_bit(STEM + ".log", bit)
        hit = hit_by(bit, frames)
        check_served(log, frames, hit)
        assert log.end_offset == read_frame_header(frames[-1]).last_offset + 1
        files.flip_bit(STEM + ".log", bit)
        # A log remembers damage that it has met; a fresh one is needed for the next bit.
        files.kill()
        log = opened(files)


def test_every_bit_of_the_index_of_an_open_log() -> None:
    """The entries of a sealed segment are dropped and read again: they are checked again, too."""
    files = SimulatedFiles()
    log = opened(files)
    frames = written(log)
    log.settings.segment_bytes = 1
    behind = batch(b"in the next segment")
    append(log, behind)
    log.flush_work()()
    log.flushed()
    for bit in range(8 * files.size(STEM + ".index")):
        files.flip_bit(STEM + ".index", bit)
        log._segments[0].drop_index()
        assert read_all(log) == [*frames, behind]
        files.flip_bit(STEM + ".index", bit)


def test_damage_is_reported_once_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("millstream").setLevel(logging.NOTSET)
    files = SimulatedFiles()
    log = opened(files)
    frames = written(log)
    position = sum(map(len, frames[:2]))
    files.flip_bit(STEM + ".log", 8 * (position + 70))
    for _ in range(3):
        read_all(log)
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    place = f"file={STEM}.log position={position} bytes=89 offsets=4..5"
    assert errors == [f"damage {place}: these records are lost and will not be served"]


def test_two_frames_hit_at_once() -> None:
    """Damage at two places, next to each other and apart, in the fields that say where a frame ends and begins."""
    files = SimulatedFiles()
    log = opened(files)
    frames = written(log)
    files.kill()
    starts = [sum(map(len, frames[:n])) for n in range(len(frames))]
    fields = (7, 11, 15, 16, 20, 70)  # base offset, length, epoch, magic, checksum, body
    for first in range(len(frames)):
        for second in range(first + 1, len(frames)):
            for at_first in fields:
                for at_second in fields:
                    disk = files.copy()
                    disk.flip_bit(STEM + ".log", 8 * (starts[first] + at_first))
                    disk.flip_bit(STEM + ".log", 8 * (starts[second] + at_second))
                    whole = [frame for n, frame in enumerate(frames) if n not in (first, second)]
                    got = read_all(opened(disk))
                    if second == first + 1 == len(frames) - 2 and 11 in (at_first, at_second):
                        # With no length to follow, nothing confirms the last frame's offset: it counts as torn.
                        assert got == whole[:-1]
                    else:
                        assert got == whole


@pytest.mark.timeout(20)
def test_a_log_file_cut_while_it_is_open() -> None:
    for size in range(0, 300, 7):
        files = SimulatedFiles()
        log = opened(files)
        frames = written(log)
        files._inode(STEM + ".log").content[size:] = b""
        kept = max(n for n in range(len(frames)) if sum(map(len, frames[:n])) <= size)
        assert read_all(log) == frames[:kept]
