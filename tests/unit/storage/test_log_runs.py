"""Runs of batches that go into the log in one write: the same as one by one, all or nothing."""

from random import Random

import pytest

from millstream.model.frame import Magic, read_frame_header
from millstream.model.frame_run import FrameRun
from millstream.storage.errors import DiskFull, LogFailed
from millstream.storage.log import LogSettings, PartitionLog
from millstream.storage.recovery import open_log
from tests.support.batches import append, batch, read_all
from tests.support.simulated_files import Fault, SimulatedFiles

DIRECTORY = "data/topics/t/0"
SETTINGS = LogSettings(segment_bytes=20_000, retention_ms=-1)


def opened(files: SimulatedFiles) -> PartitionLog:
    return open_log(files, DIRECTORY, SETTINGS, 0)[0]


def run_of(batches: list[bytearray]) -> FrameRun:
    run = FrameRun(Magic.KAFKA_V2)
    for one in batches:
        header = read_frame_header(one)
        run.data += one
        run.sizes.append(len(one))
        run.counts.append(header.last_offset_delta + 1)
        run.times.append(header.max_timestamp)
    return run


def some_batches(random: Random, count: int) -> list[bytearray]:
    return [
        batch(random.randbytes(random.randint(0, 900)), random.randint(1, 4), random.randint(0, 50))
        for _ in range(count)
    ]


def test_runs_leave_what_batches_one_by_one_leave() -> None:
    random, files, other_files = Random(1), SimulatedFiles(), SimulatedFiles()
    log, other = opened(files), opened(other_files)
    written = []
    for _ in range(20):
        batches = some_batches(random, random.randint(1, 6))
        base_offset = log.append_run(run_of(batches), 0)
        offsets = [append(other, one).base_offset for one in batches]
        assert base_offset == offsets[0]
        written += [bytes(one) for one in batches]
    assert read_all(log) == read_all(other) == written
    assert (log.end_offset, log.max_timestamp, log.encodings) == (other.end_offset, other.max_timestamp, 2)
    assert log.segment_count > 1
    for timestamp_ms in range(60):
        mine, theirs = log.frame_for_time(timestamp_ms), other.frame_for_time(timestamp_ms)
        assert (mine and bytes(mine)) == (theirs and bytes(theirs))


def test_the_index_of_runs_is_that_of_batches_one_by_one() -> None:
    random, files, other_files = Random(2), SimulatedFiles(), SimulatedFiles()
    log, other = opened(files), opened(other_files)
    for each in (log, other):
        each.settings = LogSettings(retention_ms=-1)
    batches = some_batches(random, 30)
    for start in range(0, 30, 7):
        log.append_run(run_of(batches[start : start + 7]), 0)
    for one in batches:
        append(other, one)
    for each in (log, other):
        each.close_work()()
    (name,) = [name for name in files.list_directory(DIRECTORY) if name.endswith(".index")]
    path = f"{DIRECTORY}/{name}"
    assert files.read_whole(path) == other_files.read_whole(path)


def test_a_run_stays_in_one_segment() -> None:
    log = opened(SimulatedFiles())
    append(log, batch(b"x"))
    log.append_run(run_of([batch(bytes(9_000)) for _ in range(5)]), 0)
    assert log.segment_starts[-1][0] == 1
    assert log.segment_count == 2
    assert len(read_all(log)) == 6


def test_a_full_disk_takes_nothing_of_a_run() -> None:
    files = SimulatedFiles()
    log = opened(files)
    before = batch(b"before")
    append(log, before)
    files.room_bytes = files.used_bytes() + 500
    with pytest.raises(DiskFull):
        log.append_run(run_of([batch(bytes(200)) for _ in range(5)]), 0)
    assert log.end_offset == 1
    files.room_bytes = None
    after = [batch(b"after"), batch(b"and more")]
    assert log.append_run(run_of(after), 0) == 1
    assert read_all(log)[0] == bytes(before)
    log.close()
    again = opened(files)
    assert again.end_offset == 3
    assert len(read_all(again)) == 3


def test_a_write_that_fails_ends_the_log() -> None:
    files = SimulatedFiles()
    log = opened(files)
    files.inject(Fault("write"))
    with pytest.raises(LogFailed):
        log.append_run(run_of([batch(b"x")]), 0)
    assert log.end_offset == 0
    with pytest.raises(LogFailed):
        log.append_run(run_of([batch(b"x")]), 0)


def test_a_stamped_run_is_valid() -> None:
    log = opened(SimulatedFiles())
    run = run_of([batch(b"x", 2, 5), batch(b"y", 1, 9)])
    run.stamp(1234)
    log.append_run(run, 1234)
    headers = [read_frame_header(frame) for frame in read_all(log)]
    assert [(header.base_offset, header.max_timestamp) for header in headers] == [(0, 1234), (2, 1234)]
    assert log.max_timestamp == (1234, 0)
