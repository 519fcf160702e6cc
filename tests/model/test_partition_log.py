"""The log of a partition against the reference, under anything that hypothesis thinks of."""

import errno
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from millstream.storage.errors import DiskFull, LogFailed, OffsetOutOfRange, OutOfOrderSequence, StaleProducerEpoch
from millstream.storage.log import LogSettings, PartitionLog
from millstream.storage.recovery import open_log
from millstream.storage.segment import Segment
from tests.model.reference_log import ReferenceLog
from tests.support.batches import append, batch, frames_of, read_from
from tests.support.simulated_files import Fault, SimulatedFiles

DIRECTORY = "data/topics/t/0"
LATEST_MS = 1000
POWER_LOSSES = 4

values = st.binary(max_size=300)
counts = st.integers(1, 4)
times = st.integers(0, LATEST_MS)
PRODUCERS = 3
producers = st.integers(0, PRODUCERS - 1)


class PartitionLogMachine(RuleBasedStateMachine):
    """Everything that can be done to a log, and everything that can happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.files = SimulatedFiles()
        self.reference = ReferenceLog()
        self.failed_by_disk = False
        self.log: PartitionLog

    @initialize()
    def open(self) -> None:
        self.log, _ = open_log(self.files, DIRECTORY, LogSettings(segment_bytes=700, retention_ms=-1), 0)

    # Writing

    @rule(batches=st.lists(st.tuples(values, counts, times), min_size=1, max_size=8))
    def append(self, batches: list[tuple[bytes, int, int]]) -> None:
        for value, count, time in batches:
            self._append(batch(value, count, time))

    @rule(value=values, count=counts, producer_id=producers)
    def append_idempotent(self, value: bytes, count: int, producer_id: int) -> None:
        producer_id = self._producer(producer_id)
        sequence = self.reference.next_sequence(producer_id)
        assert sequence is not None
        self._append(batch(value, count, producer_id=producer_id, sequence=sequence))

    def _producer(self, number: int) -> int:
        """The id of one of a few producers; it takes a new one when nobody can tell whether the old one is known."""
        while self.reference.next_sequence(number) is None:
            number += PRODUCERS
        return number

    def _append(self, frame: bytearray) -> None:
        expected = self.reference.end_offset
        try:
            appended = append(self.log, frame)
        except DiskFull:
            assert self.files.room_bytes is not None
            return
        except LogFailed:
            assert self.failed_by_disk
            return
        assert not self.failed_by_disk
        assert appended == (expected, False)
        self.reference.append(bytes(frame))

    @precondition(lambda self: not self.failed_by_disk)
    @rule(producer_id=producers, choice=st.integers(0, 4))
    def append_again(self, producer_id: int, choice: int) -> None:
        remembered = self.reference.remembered(self._producer(producer_id))
        if remembered:
            chosen = remembered[choice % len(remembered)]
            assert append(self.log, bytearray(chosen.frame)) == (chosen.header.base_offset, True)

    @precondition(lambda self: not self.failed_by_disk)
    @rule(producer_id=producers, gap=st.integers(1, 100))
    def append_what_does_not_follow(self, producer_id: int, gap: int) -> None:
        producer_id = self._producer(producer_id)
        if self.reference.remembered(producer_id):
            sequence = (self.reference.next_sequence(producer_id) or 0) + gap
            with pytest.raises(OutOfOrderSequence):
                append(self.log, batch(b"x", producer_id=producer_id, sequence=sequence))
            with pytest.raises(StaleProducerEpoch):
                append(self.log, batch(b"x", producer_id=producer_id, epoch=-1, sequence=0))

    @rule()
    def flush(self) -> None:
        self.log.flush_work()()
        if self.log.failure is None:
            self.log.flushed()
            self.reference.flushed_offset = self.reference.end_offset

    # Deleting

    @rule(data=st.data())
    def delete_before(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.reference.end_offset))
        segments = self.log.delete_before(offset)
        self.reference.delete_before(offset, self.log.start_offset)
        try:
            self.log.start_offset_work()()
        except DiskFull:
            assert self.files.room_bytes is not None
        else:
            self.reference.kept_start_offset = self.reference.start_offset
            self._remove(segments)

    @rule(age_ms=st.integers(0, LATEST_MS))
    def expire_by_time(self, age_ms: int) -> None:
        self.log.settings.retention_ms = LATEST_MS - age_ms
        segments = self.log.expired(LATEST_MS)
        self.log.settings.retention_ms = -1
        gone = [b for b in self.reference.batches if b.header.last_offset < self.log.start_offset]
        gone = [b for b in gone if b.header.last_offset >= self.reference.start_offset]
        assert all(b.header.max_timestamp < age_ms for b in gone)
        self.reference.start_offset = max(self.reference.start_offset, self.log.start_offset)
        self._remove(segments)

    @rule(keep_bytes=st.integers(0, 3000))
    def expire_by_size(self, keep_bytes: int) -> None:
        self.log.settings.retention_bytes = keep_bytes
        segments = self.log.expired(0)
        self.log.settings.retention_bytes = -1
        first = self.reference.from_offset(self.reference.start_offset)
        if first != self.reference.from_offset(self.log.start_offset):
            assert self.log.size_bytes >= keep_bytes
        self.reference.start_offset = max(self.reference.start_offset, self.log.start_offset)
        self._remove(segments)

    def _remove(self, segments: list[Segment]) -> None:
        for segment in segments:
            segment.close()
            segment.remove_files()

    # Reading

    @rule(data=st.data(), max_bytes=st.sampled_from([0, 1, 200, 1000, 10**6]))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.reference.start_offset, self.reference.end_offset))
        got, next_offset = self.log.read(offset, max_bytes)
        frames = list(frames_of(got))
        expected = self.reference.from_offset(offset)
        assert frames == expected[: len(frames)]
        assert bool(frames) == bool(expected)
        assert len(frames) <= 1 or len(got) <= max_bytes
        assert next_offset > offset or not frames
        for outside in (self.reference.start_offset - 1, self.reference.end_offset + 1):
            with pytest.raises(OffsetOutOfRange):
                self.log.read(outside, 1)

    @rule(time=st.integers(0, LATEST_MS + 10))
    def look_up_time(self, time: int) -> None:
        assert self.log.frame_for_time(time) == self.reference.for_time(time)

    @invariant()
    def ends_agree(self) -> None:
        assert self.log.end_offset == self.reference.end_offset
        assert self.log.start_offset == self.reference.start_offset

    # What happens to it

    @rule(room=st.integers(0, 500))
    def disk_fills_up(self, room: int) -> None:
        self.files.room_bytes = self.files.used_bytes() + room

    @rule()
    def room_comes_back(self) -> None:
        self.files.room_bytes = None

    @precondition(lambda self: not self.failed_by_disk)
    @rule(kept_bytes=st.integers(0, 300))  # less than the whole, which would come back
    def a_write_fails(self, kept_bytes: int) -> None:
        self.files.room_bytes = None
        self.files.inject(Fault("write", kept_bytes=kept_bytes, code=errno.EIO, path_ending=".log"))
        refused = batch(b"x" * 300)
        with pytest.raises(LogFailed):
            append(self.log, refused)
        self.failed_by_disk = True

    @precondition(lambda self: not self.failed_by_disk)
    @rule(at=st.integers(1, 3))
    def a_flush_fails(self, at: int) -> None:
        self.files.inject(Fault("sync", at=at, path_ending=".log"))
        try:
            self.log.flush_work()()
        except OSError:
            self.log.fail("a flush failed")
            self.failed_by_disk = True
        else:
            self.log.flushed()
            self.reference.flushed_offset = self.reference.end_offset
        self.files.heal()

    @rule()
    def stop_cleanly(self) -> None:
        if self.failed_by_disk:
            return
        self.log.close_work()()
        self.log.flushed()
        self.log.close()
        self.reference.flushed_offset = self.reference.end_offset
        self._reopen_after_kill()

    @rule()
    def kill(self) -> None:
        # After an I/O error the system's cache is not to be trusted either: only a power loss shows what is there.
        if not self.failed_by_disk:
            self._reopen_after_kill()

    def _reopen_after_kill(self) -> None:
        self.files.kill()
        self.open()
        found = read_from(self.log, self.log.start_offset)
        self.reference.go_on_after_kill(found, self.log.start_offset, self.log.end_offset)

    @rule(seed=st.integers(0, 2**32))
    def power_fails(self, seed: int) -> None:
        self.files.heal()
        self.failed_by_disk = False
        # Many ways in which it may end are looked at, and one of them is where it goes on.
        ways = [(self.files.copy(), replace(self.reference)) for _ in range(POWER_LOSSES)]
        for n, (files, reference) in enumerate(ways):
            files.crash(seed + n)
            self.files, self.reference = files, reference
            self.open()
            found = read_from(self.log, self.log.start_offset)
            reference.go_on_after_power_loss(found, self.log.start_offset, self.log.end_offset)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            assert read_from(self.log, self.reference.start_offset) == self.reference.from_offset(
                self.reference.start_offset
            )


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Damage and failures are reported by the thousand here."""
    logger = logging.getLogger("millstream")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


TestPartitionLog = PartitionLogMachine.TestCase
TestPartitionLog.settings = settings(
    max_examples=400,
    stateful_step_count=50,
    derandomize=True,
    deadline=None,
    database=None,
    # Without the phase that explains: a failure is made small within the time that a test has.
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
