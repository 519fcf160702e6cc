"""Segments that are replaced, and what every crash on the way leaves."""

import contextlib
from collections.abc import Iterator

import pytest

from millstream.model.frame import empty_frame, read_frame_header
from millstream.storage.errors import DiskFull, LogFailed
from millstream.storage.log import LogSettings, PartitionLog
from millstream.storage.recovery import open_log
from millstream.storage.segment_draft import SegmentDraft
from tests.support.batches import append, batch, read_all
from tests.support.simulated_files import Fault, Operation, SimulatedFiles

DIRECTORY = "data/topics/t/0"
SETTINGS = LogSettings(segment_bytes=400, retention_ms=-1)


def opened(files: SimulatedFiles) -> PartitionLog:
    return open_log(files, DIRECTORY, SETTINGS, 0)[0]


def filled(files: SimulatedFiles) -> PartitionLog:
    log = opened(files)
    for n in range(30):
        append(log, batch(b"value %d" % n, producer_id=5, sequence=n))
    log.flush_work()()
    log.flushed()
    assert log.segment_count > 5
    return log


def hollow(frames: list[bytes], *, first: int, stop: int) -> list[bytes]:
    """The frames with those of some offsets made empty: every third stays."""
    headers = [read_frame_header(frame) for frame in frames]
    return [
        empty_frame(header.base_offset, header.last_offset, header)
        if first <= header.base_offset < stop and header.base_offset % 3
        else frame
        for frame, header in zip(frames, headers, strict=True)
    ]


def steps(files: SimulatedFiles, log: PartitionLog, count: int) -> Iterator[None]:
    """Replace some segments from the second on by one; a step each time that a crash may come between."""
    old = log.sealed_segments[1 : 1 + count]
    frames = hollow(read_all(log), first=old[0].base_offset, stop=old[-1].next_offset)
    draft = SegmentDraft(files, log)
    for segment in old:
        draft.take(segment)
        for frame in frames:
            if segment.base_offset <= read_frame_header(frame).base_offset < segment.next_offset:
                draft.add(frame)
        draft.write_work()
        yield
    draft.prepare_work()
    yield
    draft.replace()
    yield
    draft.finish_work()
    yield
    draft.finish()


@pytest.mark.parametrize("count", [1, 3])
def test_readers_see_the_new_segment_at_once(count: int) -> None:
    files = SimulatedFiles()
    log = filled(files)
    before, segments = read_all(log), log.segment_count
    bases = [base for base, _ in log.segment_starts]
    after = hollow(before, first=bases[1], stop=bases[1 + count])
    seen = [read_all(log) for _ in steps(files, log, count)]
    assert seen == [before] * (count + 1) + [after] * 2
    assert log.segment_count == segments - count + 1
    assert log.size_bytes == sum(map(len, after))
    for offset in range(30):
        data, _ = log.read(offset, 1)
        assert read_frame_header(data).base_offset == offset
    reads = files.calls["read"]
    log.close_work()()
    log.flushed()
    log.close()
    log = opened(files)
    assert files.calls["read"] == reads, "its index vouches for it"
    assert read_all(log) == after
    assert log.segment_count == segments - count + 1


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
def test_a_crash_between_any_two_calls_leaves_the_old_or_the_new(count: int, power: bool) -> None:
    files = SimulatedFiles()
    log = filled(files)
    before = read_all(log)
    bases = [base for base, _ in log.segment_starts]
    after = hollow(before, first=bases[1], stop=bases[1 + count])
    known = log.producers.encode()
    found = set()
    operations: tuple[Operation, ...] = ("open", "write", "sync", "replace", "remove", "sync_directory", "truncate")
    for operation in operations:
        for at in range(1, 40):
            disk = files.copy()
            disk.keep_all()
            log = opened(disk)
            disk.inject(Fault(operation, at=at, lasting=True))
            stopped = True
            with contextlib.suppress(OSError, DiskFull, LogFailed):
                for _ in steps(disk, log, count):
                    pass
                stopped = False
            disk.heal()
            for seed in range(8 if power else 1):
                left = disk.copy()
                if power:
                    left.crash(seed)
                again = opened(left)
                read = read_all(again)
                assert read in (before, after)
                found.add(read == after)
                assert again.producers.encode()[:10] == known[:10]
                assert [one[:2] for one in again.producers.latest()] == [one[:2] for one in log.producers.latest()]
                assert not [name for name in left.list_directory(DIRECTORY) if name.endswith(".new")]
                append(again, batch(b"goes on", producer_id=5, sequence=30))
            if not stopped:
                break
    assert found == {False, True}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("seed", range(30))
def test_a_power_loss_at_any_step(count: int, seed: int) -> None:
    files = SimulatedFiles()
    log = filled(files)
    before = read_all(log)
    bases = [base for base, _ in log.segment_starts]
    after = hollow(before, first=bases[1], stop=bases[1 + count])
    files.keep_all()
    for number in range(count + 4):
        disk = files.copy()
        log = opened(disk)
        for step, _ in enumerate(steps(disk, log, count)):
            if step == number:
                break
        disk.crash(seed)
        assert read_all(opened(disk)) in (before, after)


def test_what_was_taken_back_is_as_it_was() -> None:
    files = SimulatedFiles()
    log = filled(files)
    before, names = read_all(log), files.list_directory(DIRECTORY)
    old = log.sealed_segments[:2]
    draft = SegmentDraft(files, log)
    for segment in old:
        draft.take(segment)
    for frame in before:
        if read_frame_header(frame).base_offset < old[1].next_offset:
            draft.add(frame)
    draft.prepare_work()
    assert log.delete_before(old[1].next_offset) == [], "what is being replaced is not removed meanwhile"
    draft.discard_work()
    draft.release()
    assert files.list_directory(DIRECTORY) == names
    assert log.delete_before(old[1].next_offset) == old
    log.close()


def test_frames_that_do_not_follow_are_refused() -> None:
    files = SimulatedFiles()
    log = filled(files)
    draft = SegmentDraft(files, log)
    draft.take(log.sealed_segments[0])
    with pytest.raises(ValueError, match="follows"):
        draft.add(empty_frame(1, 2))
    draft.add(empty_frame(0, 0))
    with pytest.raises(ValueError, match="ends before"):
        draft.prepare_work()
