"""A write that did not arrive whole: cut at every byte, zero-filled, or with some of its sectors only."""

from itertools import product

import pytest

from millstream.storage.errors import LogFailed
from millstream.storage.log import LogSettings, PartitionLog
from millstream.storage.recovery import RecoveryReport, open_log
from tests.support.batches import append, batch, read_all
from tests.support.simulated_files import SECTOR_BYTES, Fault, SimulatedFiles

DIRECTORY = "data/topics/t/0"
PATH = f"{DIRECTORY}/{0:020d}.log"
SETTINGS = LogSettings(retention_ms=-1)


def opened(files: SimulatedFiles) -> tuple[PartitionLog, RecoveryReport]:
    return open_log(files, DIRECTORY, SETTINGS, 0)


def a_log(last_value: bytes) -> tuple[SimulatedFiles, list[bytes]]:
    """A log of five frames that nobody has flushed or indexed."""
    files = SimulatedFiles()
    log, _ = opened(files)
    frames = [batch(b"value" * n, n + 1, producer_id=3, sequence=n * (n + 1) // 2) for n in range(4)]
    frames.append(batch(last_value, 2, producer_id=3, sequence=10))
    for frame in frames:
        append(log, frame)
    files.kill()
    return files, [bytes(frame) for frame in frames]


def check(files: SimulatedFiles, expected: list[bytes], cut_bytes: int) -> None:
    """Open; everything expected is there, and the log goes on behind it as if the rest had never been."""
    log, report = opened(files)
    assert read_all(log) == expected
    assert (report.cut_bytes, report.holes) == (cut_bytes, 0)
    assert files.size(PATH) == sum(map(len, expected))
    if len(expected) == 4:
        again = batch(b"again", 2, producer_id=3, sequence=10)
        assert append(log, again) == (10, False), "its producer may send it again"
        files.kill()
        assert read_all(opened(files)[0]) == [*expected, again]


@pytest.mark.parametrize("tail", ["cut off", "zeros", "zeros beyond", "ones"])
def test_cut_at_every_byte_of_the_last_frame(tail: str) -> None:
    files, frames = a_log(b"the last value")
    content, before = files.content(PATH), sum(map(len, frames[:4]))
    for size in range(before, len(content) + 1):
        left = {
            "cut off": b"",
            "zeros": bytes(len(content) - size),
            "zeros beyond": bytes(len(content) - size + 5000),
            "ones": b"\xff" * (len(content) - size),
        }[tail]
        disk = files.copy()
        disk.put(PATH, content[:size] + left)
        # A frame that ends in zeros is whole as soon as the rest of it is there.
        whole = content[:size] + left[: len(content) - size] == content
        kept = frames if whole else frames[:4]
        check(disk, kept, size + len(left) - sum(map(len, kept)))


def test_cut_at_every_byte_of_the_whole_file() -> None:
    files, frames = a_log(b"the last value")
    content = files.content(PATH)
    for size in range(len(content)):
        disk = files.copy()
        disk.put(PATH, content[:size])
        kept = max(n for n in range(6) if sum(map(len, frames[:n])) <= size)
        log, report = opened(disk)
        assert read_all(log) == frames[:kept]
        assert (report.cut_bytes, report.holes) == (size - sum(map(len, frames[:kept])), 0)


@pytest.mark.parametrize("index", ["kept", "lost"])
def test_any_sectors_of_the_last_frame(index: str) -> None:
    """All subsets of the sectors that the last frame touches, over zeros or over what an older file left there."""
    files, frames = a_log(bytes(range(256)) * 7)
    content, before = files.content(PATH), sum(map(len, frames[:4]))
    if index == "kept":
        files.put(PATH, content[:before])
        log, _ = opened(files)
        log.close_work()()
        files.kill()
    first_sector = before // SECTOR_BYTES
    sectors = (len(content) - 1) // SECTOR_BYTES - first_sector + 1
    assert sectors >= 5
    for arrived, filler in product(product((False, True), repeat=sectors), (b"\0", b"\x02", b"older ")):
        image = bytearray(content[:before])
        old = (filler * len(content))[: len(content)]
        for n, there in enumerate(arrived):
            start = max((first_sector + n) * SECTOR_BYTES, before)
            stop = (first_sector + n + 1) * SECTOR_BYTES
            image += (content if there else old)[start:stop]
        disk = files.copy()
        disk.put(PATH, bytes(image))
        kept = frames if image == content else frames[:4]
        check(disk, kept, len(content) - sum(map(len, kept)))


def test_a_torn_write_at_every_byte_is_forgotten_after_a_restart() -> None:
    """The same as above, made by a write that fails and tells so."""
    frames = [batch(b"first"), batch(b"second")]
    for kept_bytes in range(len(frames[1])):
        files = SimulatedFiles()
        log, _ = opened(files)
        append(log, frames[0])
        files.inject(Fault("write", kept_bytes=kept_bytes))
        with pytest.raises(LogFailed):
            append(log, frames[1])
        assert read_all(log) == frames[:1]
        files.kill()
        log, report = opened(files)
        assert read_all(log) == frames[:1]
        assert report.cut_bytes == kept_bytes
        assert append(log, batch(b"third")) == (1, False)


def test_a_frame_in_a_torn_record_does_not_come_to_life() -> None:
    """A record may hold a copy of a log; if its own batch is torn, the copy is not part of this log."""
    inner = bytearray(batch(b"x" * 100, 3))
    inner[0:8] = (4711).to_bytes(8, "big")
    files, frames = a_log(bytes(inner) + b"some more text behind it")
    content, before = files.content(PATH), sum(map(len, frames[:4]))
    for size in range(before, len(content)):
        disk = files.copy()
        disk.put(PATH, content[:size])
        log, report = opened(disk)
        assert (read_all(log), report.holes) == (frames[:4], 0)
