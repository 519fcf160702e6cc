"""The log of a partition without faults: appending, reading, rolling, retention, look-up by time."""

import errno
from random import Random

import pytest

from millstream.model.frame import read_frame_header
from millstream.storage.errors import DiskFull, LogFailed, OffsetOutOfRange
from millstream.storage.log import LogSettings, PartitionLog
from millstream.storage.recovery import open_log
from tests.support.batches import append, batch, frames_of, read_all, read_from
from tests.support.simulated_files import Fault, SimulatedFiles

DIRECTORY = "data/topics/t/0"


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles()


def opened(files: SimulatedFiles, settings: LogSettings | None = None, now_ms: int = 0) -> PartitionLog:
    return open_log(files, DIRECTORY, settings or LogSettings(retention_ms=-1), now_ms)[0]


def flush(log: PartitionLog) -> None:
    log.flush_work()()
    log.flushed()


def filled(log: PartitionLog, frames: int, seed: int = 1, flush_every: int = 3) -> list[bytes]:
    """Append batches of random sizes; returns them as they must come back."""
    random = Random(seed)
    written = []
    for n in range(frames):
        frame = batch(random.randbytes(random.randint(0, 900)), random.randint(1, 4), random.randint(0, 50))
        assert append(log, frame).duplicate is False
        written.append(bytes(frame))
        if n % flush_every == 0:
            flush(log)
    return written


def test_a_new_log_is_empty(files: SimulatedFiles) -> None:
    log = opened(files)
    assert (log.start_offset, log.end_offset, log.size_bytes, log.segment_count) == (0, 0, 0, 1)
    assert log.max_timestamp == (-1, -1)
    assert read_all(log) == []
    assert log.frame_for_time(0) is None


def test_offsets_are_dense(files: SimulatedFiles) -> None:
    log = opened(files)
    expected = 0
    for count in (1, 5, 2, 1):
        assert append(log, batch(b"x", count)) == (expected, False)
        expected += count
        assert log.end_offset == expected


@pytest.mark.parametrize("segment_bytes", [2**30, 4000, 1], ids=["one segment", "some segments", "one frame each"])
def test_a_read_at_every_offset_begins_with_the_frame_that_holds_it(
    files: SimulatedFiles, segment_bytes: int
) -> None:
    log = opened(files, LogSettings(segment_bytes=segment_bytes, retention_ms=-1))
    written = filled(log, 40)
    for offset in range(log.end_offset + 1):
        following = [frame for frame in written if read_frame_header(frame).last_offset >= offset]
        assert read_from(log, offset) == following
    for offset in (-1, log.end_offset + 1):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 100)


def test_max_bytes_bounds_a_read_but_for_its_first_frame(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=5000, retention_ms=-1))
    written = filled(log, 30)
    for max_bytes in (0, 1, 61, 500, 3000, 10**6):
        assert read_all(log, max_bytes) == written
        for frame in written:
            header = read_frame_header(frame)
            data, next_offset = log.read(header.last_offset, max_bytes)
            got = list(frames_of(data))
            assert got[0] == frame
            assert len(got) == 1 or len(data) <= max_bytes
            assert next_offset == read_frame_header(got[-1]).last_offset + 1


def test_a_frame_larger_than_anything_read_ahead_comes_whole(files: SimulatedFiles) -> None:
    log = opened(files)
    frames = [batch(bytes([n]) * size) for n, size in enumerate((10, 200_000, 10, 60_000))]
    for frame in frames:
        append(log, frame)
    assert read_all(log, 1) == frames
    assert read_from(log, 3, 1) == frames[3:]


def test_a_segment_is_sealed_by_size(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1000, retention_ms=-1))
    filled(log, 30, flush_every=1)
    logs = [name for name in files.list_directory(DIRECTORY) if name.endswith(".log")]
    assert len(logs) == log.segment_count > 5
    for name in logs:
        content = files.content(f"{DIRECTORY}/{name}")
        assert len(content) <= 1000 or len(list(frames_of(content))) == 1
        assert read_frame_header(content).base_offset == int(name.removesuffix(".log"))


def test_a_segment_is_sealed_by_age(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_ms=100, retention_ms=-1))
    for now_ms, segments in ((1000, 1), (1100, 1), (1101, 2), (1201, 2), (5000, 3)):
        append(log, batch(b"x"), now_ms)
        assert log.segment_count == segments


def test_a_segment_is_sealed_before_its_relative_offsets_run_out(files: SimulatedFiles) -> None:
    log = opened(files)
    append(log, batch(b"first"))
    huge = batch(b"x", 1)
    for _ in range(3):
        # A batch may say that it spans many offsets; three of these pass 2^32.
        header = read_frame_header(huge)._replace(last_offset_delta=2**31 - 1)
        log.append(memoryview(huge), header, 0)
    assert log.segment_count == 2


def test_a_frame_may_be_larger_than_a_segment(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=100, retention_ms=-1))
    frame = batch(b"x" * 500)
    append(log, frame)
    assert log.segment_count == 1
    assert read_all(log) == [frame]


def test_an_idempotent_batch_is_written_once(files: SimulatedFiles) -> None:
    log = opened(files)
    for n in range(6):
        append(log, batch(b"x", 2, producer_id=9, sequence=2 * n))
    size_bytes = log.size_bytes
    for n in range(1, 6):
        assert append(log, batch(b"x", 2, producer_id=9, sequence=2 * n)) == (2 * n, True)
    assert (log.size_bytes, log.end_offset) == (size_bytes, 12)


def test_sealed_segments_are_closed_and_indexed_by_the_flush(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1, retention_ms=-1))
    append(log, batch(b"a"))
    append(log, batch(b"b"))
    assert not [name for name in files.list_directory(DIRECTORY) if name.endswith(".index")]
    flush(log)
    assert f"{0:020d}.index" in files.list_directory(DIRECTORY)
    files.crash(seed=0)
    assert len(read_all(opened(files))) == 2


def test_what_was_flushed_survives_any_power_loss(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=2500, retention_ms=-1))
    written = filled(log, 20)
    flush(log)
    lost_tails = filled(log, 6, seed=2, flush_every=100)
    for seed in range(200):
        disk = files.copy()
        disk.crash(seed)
        found = read_all(opened(disk))
        assert found[: len(written)] == written
        assert set(found[len(written) :]) <= set(lost_tails)


@pytest.mark.parametrize("segment_bytes", [2**30, 3000])
def test_frame_for_time_against_a_walk(files: SimulatedFiles, segment_bytes: int) -> None:
    log = opened(files, LogSettings(segment_bytes=segment_bytes, retention_ms=-1))
    written = filled(log, 60, seed=5)
    for start in (0, 1, log.end_offset // 2, log.end_offset - 1):
        log.delete_before(start)
        for timestamp_ms in range(-1, 60):
            first = None
            for frame in written:
                header = read_frame_header(frame)
                if header.last_offset >= start and header.max_timestamp >= timestamp_ms:
                    first = frame
                    break
            assert log.frame_for_time(timestamp_ms) == first


def test_max_timestamp_is_the_first_of_the_latest(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1, retention_ms=-1))
    for timestamp_ms in (5, 9, 7, 9, 8):
        append(log, batch(b"x", timestamp_ms=timestamp_ms))
    assert log.max_timestamp == (9, 1)


def remove(log: PartitionLog, now_ms: int = 0) -> int:
    segments = log.expired(now_ms)
    for segment in segments:
        segment.remove_files()
    return len(segments)


def test_retention_by_time_takes_only_what_is_all_old(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1, retention_ms=100))
    for timestamp_ms in (0, 10, 500, 20, 600):
        append(log, batch(b"x", timestamp_ms=timestamp_ms))
    flush(log)
    assert remove(log, now_ms=120) == 2
    assert (log.start_offset, log.end_offset) == (2, 5)
    assert remove(log, now_ms=599) == 0, "an old segment behind a new one stays"
    assert remove(log, now_ms=601) == 2


def test_retention_by_time_empties_an_idle_log(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(retention_ms=100))
    append(log, batch(b"x", timestamp_ms=0))
    assert remove(log, now_ms=101) == 0, "what was sealed just now is still to be flushed"
    flush(log)
    assert remove(log, now_ms=101) == 1
    assert (log.start_offset, log.end_offset, log.size_bytes) == (1, 1, 0)
    assert remove(log, now_ms=10**9) == 0
    assert append(log, batch(b"y")) == (1, False)
    assert opened(files).start_offset == 1


def test_records_without_a_time_are_kept_as_long_as_they_are_young(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1, retention_ms=100))
    for _ in range(2):
        append(log, batch(b"x", timestamp_ms=-1), now_ms=1000)
    flush(log)
    assert remove(log, now_ms=1100) == 0
    assert remove(log, now_ms=1101) == 1


def test_retention_frees_room_on_a_full_disk(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1, retention_ms=100))
    for timestamp_ms in (0, 10):
        append(log, batch(b"x", timestamp_ms=timestamp_ms))
    flush(log)
    files.inject(Fault("open", code=errno.ENOSPC, path_ending=".log"))
    assert remove(log, now_ms=1000) == 1


def test_retention_by_size(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1, retention_ms=-1, retention_bytes=250))
    frame_bytes = len(batch(b"x"))
    for _ in range(10):
        append(log, batch(b"x"))
    assert remove(log) == 0, "nothing is flushed"
    flush(log)
    assert remove(log) == 10 - (250 // frame_bytes + 1)
    assert log.size_bytes >= 250 > log.size_bytes - frame_bytes
    assert remove(log) == 0


def test_retention_never_takes_the_last_segment_for_its_size(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(retention_ms=-1, retention_bytes=0))
    append(log, batch(b"x"))
    flush(log)
    assert remove(log) == 0


def test_delete_before_every_offset(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1500, retention_ms=-1))
    written = filled(log, 30, flush_every=1)
    flush(log)
    for offset in range(log.end_offset + 1):
        for segment in log.delete_before(offset):
            segment.remove_files()
        log.start_offset_work()()
        assert log.start_offset == offset
        left = [frame for frame in written if read_frame_header(frame).last_offset >= offset]
        assert read_all(log) == left
        if offset:
            with pytest.raises(OffsetOutOfRange):
                log.read(offset - 1, 100)
        again = files.copy()
        again.crash(offset)
        reopened = opened(again)
        assert (reopened.start_offset, reopened.end_offset) == (offset, log.end_offset)
        assert read_all(reopened) == left
    with pytest.raises(OffsetOutOfRange):
        log.delete_before(log.end_offset + 1)
    assert not log.delete_before(0), "it never goes back"
    assert log.start_offset == log.end_offset


def test_an_interrupted_deletion_is_finished_by_the_next(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1, retention_ms=-1))
    filled(log, 5, flush_every=1)
    flush(log)
    log.delete_before(log.end_offset)
    log.start_offset_work()()
    files.kill()  # before any file was removed
    log = opened(files)
    assert log.start_offset == log.end_offset
    assert len(log.delete_before(log.start_offset)) == 4


def test_a_full_disk_keeps_nothing_of_a_batch_and_goes_on_with_room(files: SimulatedFiles) -> None:
    log = opened(files)
    first = batch(b"first")
    append(log, first)
    second = batch(b"s" * 300)
    for room in range(len(second)):
        files.room_bytes = files.used_bytes() + room
        with pytest.raises(DiskFull):
            append(log, second)
        assert (log.end_offset, log.size_bytes, log.failure) == (1, len(first), None)
        assert files.used_bytes() == len(first)
        assert read_all(log) == [first]
    files.room_bytes = None
    assert append(log, second) == (1, False)
    assert read_all(log) == [first, second]


def test_a_full_disk_leaves_no_trace_of_an_idempotent_batch(files: SimulatedFiles) -> None:
    log = opened(files, LogSettings(segment_bytes=1, retention_ms=-1))
    append(log, batch(b"a", producer_id=1, sequence=0))
    files.room_bytes = files.used_bytes()
    for _ in range(3):
        with pytest.raises(DiskFull):
            append(log, batch(b"b", producer_id=1, sequence=1))
    files.room_bytes = None
    assert append(log, batch(b"b", producer_id=1, sequence=1)) == (1, False)
    assert append(log, batch(b"b", producer_id=1, sequence=1)) == (1, True)
    assert log.segment_count == 2


def test_no_room_for_the_cut_ends_writing(files: SimulatedFiles) -> None:
    log = opened(files)
    files.room_bytes = 10
    files.inject(Fault("truncate"))
    with pytest.raises(DiskFull):
        append(log, batch(b"x"))
    files.room_bytes = None
    with pytest.raises(LogFailed):
        append(log, batch(b"x"))


@pytest.mark.parametrize("kept_bytes", [0, 1, 61, 70, 10_000])
def test_a_failed_write_ends_writing_and_not_reading(files: SimulatedFiles, kept_bytes: int) -> None:
    log = opened(files)
    first = batch(b"first")
    append(log, first)
    flush(log)
    files.inject(Fault("write", kept_bytes=kept_bytes))
    refused = batch(b"second")
    for _ in range(3):
        with pytest.raises(LogFailed, match="a write failed"):
            append(log, refused)
    assert files.calls["write"] == 2, "no write is tried again"
    assert read_all(log) == [first]
    files.kill()
    again = read_all(opened(files))
    assert again in ([first], [first, refused])


def test_a_log_that_failed_is_never_vouched_for(files: SimulatedFiles) -> None:
    log = opened(files)
    append(log, batch(b"first"))
    files.inject(Fault("sync", path_ending=".log"))
    with pytest.raises(OSError, match="Input/output"):
        log.flush_work()()
    log.fail("a flush failed")
    syncs = files.calls["sync"]
    log.close_work()()
    log.close()
    assert files.calls["sync"] == syncs, "a flush that failed is not tried again"
    assert not [name for name in files.list_directory(DIRECTORY) if name.endswith(".index")]


def test_a_name_is_not_vouched_for_once_a_sync_of_the_directory_has_failed(files: SimulatedFiles) -> None:
    """An index that is not written is no loss, but the system may have dropped the name of a new segment with it."""
    log = opened(files, LogSettings(segment_bytes=1000, retention_ms=-1))
    for _ in range(2):
        append(log, batch(bytes(600)))
    files.inject(Fault("sync_directory", at=2))
    flush(log)
    assert files.read_whole(f"{DIRECTORY}/{0:020d}.index") is not None, "its name alone did not last"
    append(log, batch(bytes(600)))
    with pytest.raises(OSError, match=r"Input.output error"):
        log.flush_work()()
