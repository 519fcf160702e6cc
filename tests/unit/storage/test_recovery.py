"""Opening a log after stops of every kind."""

import pytest

from millstream.model.frame import read_frame_header
from millstream.storage.errors import OutOfOrderSequence
from millstream.storage.log import LogSettings, PartitionLog
from millstream.storage.recovery import RecoveryReport, open_log
from tests.support.batches import append, batch, read_all
from tests.support.simulated_files import SimulatedFiles

DIRECTORY = "data/topics/t/0"
SETTINGS = LogSettings(segment_bytes=400, retention_ms=-1)


def opened(files: SimulatedFiles) -> tuple[PartitionLog, RecoveryReport]:
    return open_log(files, DIRECTORY, SETTINGS, 0)


def stop(log: PartitionLog) -> None:
    log.close_work()()
    log.flushed()
    log.close()


def flush(log: PartitionLog) -> None:
    log.flush_work()()
    log.flushed()


def some(log: PartitionLog, count: int = 9) -> list[bytes]:
    frames = [batch(b"value %d" % n, 2, producer_id=5, sequence=2 * n) for n in range(count)]
    for frame in frames:
        append(log, frame)
    return [bytes(frame) for frame in frames]


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles()


def test_a_clean_stop_needs_no_scan(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    written = some(log)
    stop(log)
    files.crash(seed=1)
    reads = files.calls["read"]
    log, report = opened(files)
    assert report == RecoveryReport()
    assert files.calls["read"] == reads
    assert read_all(log) == written


def test_only_what_no_index_vouches_for_is_scanned(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    some(log)
    flush(log)
    files.crash(seed=1)
    last = max(name for name in files.list_directory(DIRECTORY) if name.endswith(".log"))
    _, report = opened(files)
    assert report == RecoveryReport(scanned_bytes=files.size(f"{DIRECTORY}/{last}"))


def test_what_came_after_a_clean_stop_is_scanned(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    first = batch(b"first")
    append(log, first)
    stop(log)
    log, _ = opened(files)
    second = batch(b"second")
    append(log, second)
    files.kill()
    log, report = opened(files)
    assert report == RecoveryReport(scanned_bytes=len(second))
    assert read_all(log) == [first, second]


def test_every_index_may_be_missing_or_damaged(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    written = some(log)
    times = [log.frame_for_time(t) for t in range(990, 1010)]
    stop(log)
    indexes = [name for name in files.list_directory(DIRECTORY) if name.endswith(".index")]
    assert len(indexes) == log.segment_count
    for chosen in range(1, 2 ** len(indexes)):
        for damage in ("removed", "flipped", "empty"):
            disk = files.copy()
            for n, name in enumerate(indexes):
                if not chosen >> n & 1:
                    continue
                path = f"{DIRECTORY}/{name}"
                if damage == "removed":
                    disk.remove(path)
                elif damage == "flipped":
                    disk.flip_bit(path, 100)
                else:
                    disk.put(path, b"")
            log, report = opened(disk)
            assert (report.cut_bytes, report.holes) == (0, 0)
            assert report.scanned_bytes > 0
            assert read_all(log) == written
            assert [log.frame_for_time(t) for t in range(990, 1010)] == times
            assert append(log, batch(b"value 8", 2, producer_id=5, sequence=16)) == (16, True)
            disk.kill()
            again, report = opened(disk)
            assert read_all(again) == written
            assert report.scanned_bytes <= again.read(again.end_offset - 1, 1)[0].nbytes * 9, (
                "sealed ones have theirs"
            )


@pytest.mark.parametrize("how", ["clean stop", "kill", "power loss"])
def test_producers_are_as_they_were(files: SimulatedFiles, how: str) -> None:
    log, _ = opened(files)
    some(log)
    flush(log)
    if how == "clean stop":
        stop(log)
        files.kill()
    elif how == "kill":
        files.kill()
    else:
        files.crash(seed=3)
    log, _ = opened(files)
    for n in range(4, 9):
        assert append(log, batch(b"value %d" % n, 2, producer_id=5, sequence=2 * n)) == (2 * n, True)
    for sequence in (0, 17, 20):
        with pytest.raises(OutOfOrderSequence):
            append(log, batch(b"x", producer_id=5, sequence=sequence))
    assert append(log, batch(b"x", producer_id=5, sequence=18)) == (18, False)


def test_a_kill_loses_nothing_that_was_written(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    written = some(log)  # never flushed
    files.kill()
    log, report = opened(files)
    assert read_all(log) == written
    assert (report.cut_bytes, report.holes) == (0, 0)


def test_what_a_killed_process_wrote_is_on_the_disk_after_the_first_flush_of_the_next(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    written = some(log)  # over some segments, never flushed
    files.kill()
    log, _ = opened(files)
    # The producer asks again, is told that it is a duplicate, and waits for the flush.
    assert append(log, batch(b"value 8", 2, producer_id=5, sequence=16)).duplicate
    flush(log)
    for seed in range(50):
        disk = files.copy()
        disk.crash(seed)
        assert read_all(opened(disk)[0]) == written


def test_an_index_is_not_believed_once_it_was_found_wrong(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    some(log, 3)
    stop(log)
    path = f"{DIRECTORY}/{0:020d}.log"
    whole = files.content(path)
    files.put(path, whole[: len(whole) // 2])  # the file was cut, and its index vouches for what is gone
    log, report = opened(files)
    assert report.cut_bytes > 0
    after = [batch(b"longer than what was there before %d" % n) for n in range(3)]
    for frame in after:
        append(log, frame)
    flush(log)
    expected = read_all(log)
    assert expected[1:] == after
    files.crash(seed=0)
    log, report = opened(files)
    assert report.holes == 0
    assert read_all(log) == expected


def test_left_overs_are_swept_away(files: SimulatedFiles) -> None:
    files.make_directory(DIRECTORY)
    files.put(f"{DIRECTORY}/{0:020d}.index.new", b"half")
    files.put(f"{DIRECTORY}/{77:020d}.index", b"whose log is gone")
    files.put(f"{DIRECTORY}/notes.txt", b"somebody's")
    opened(files)
    assert files.list_directory(DIRECTORY) == [f"{0:020d}.log", "notes.txt"]


def test_a_missing_segment_costs_only_itself(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    written = some(log)
    stop(log)
    names = [name for name in files.list_directory(DIRECTORY) if name.endswith(".log")]
    files.remove(f"{DIRECTORY}/{names[1]}")
    log, _ = opened(files)
    lost = range(int(names[1].removesuffix(".log")), int(names[2].removesuffix(".log")))
    left = [frame for frame in written if read_frame_header(frame).base_offset not in lost]
    assert read_all(log) == left
    assert log.read(lost[0], 1)[0] == left[len([f for f in left if read_frame_header(f).base_offset < lost[0]])]


def test_a_sealed_segment_that_was_cut_costs_only_what_is_gone(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    written = some(log)
    stop(log)
    path = f"{DIRECTORY}/{0:020d}.log"
    whole = files.content(path)
    first_bytes = read_frame_header(whole).size
    for size in range(first_bytes, len(whole)):
        disk = files.copy()
        disk.put(path, whole[:size])
        log, _ = opened(disk)
        kept = max(n for n in range(5) if sum(map(len, written[:n])) <= size)
        of_first = len([frame for frame in written if frame in whole])
        assert read_all(log) == written[:kept] + written[of_first:]
        assert log.end_offset == 18


def test_every_flipped_bit_of_the_start_offset_is_noticed(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    written = some(log)
    log.delete_before(11)
    log.start_offset_work()()
    stop(log)
    path = f"{DIRECTORY}/start-offset"
    for bit in range(8 * files.size(path)):
        disk = files.copy()
        disk.flip_bit(path, bit)
        log, _ = opened(disk)
        assert log.start_offset <= 11, "no record that is left may be hidden"
        assert read_all(log)[-4:] == written[-4:]


def test_a_log_that_lost_its_tail_goes_on_where_it_was_deleted_up_to(files: SimulatedFiles) -> None:
    log, _ = opened(files)
    some(log, 2)
    log.delete_before(4)
    log.start_offset_work()()
    files.put(f"{DIRECTORY}/{0:020d}.log", b"")
    for _ in range(2):
        log, _ = opened(files)
        assert log.start_offset == log.end_offset == 4
        files.kill()
    log, _ = opened(files)
    frame = batch(b"new")
    assert append(log, frame) == (4, False)
    files.kill()
    log, _ = opened(files)
    assert log.start_offset == 4
    assert read_all(log) == [frame]
