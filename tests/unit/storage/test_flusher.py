"""Group flushing: who shares a flush, who waits for the next one, and what an error does."""

import errno

import pytest

from millstream.model.pending import Pending
from millstream.storage.errors import LogFailed
from millstream.storage.flusher import FLUSH_LANE, GroupFlusher
from millstream.storage.log import LogSettings, PartitionLog
from millstream.storage.recovery import open_log
from tests.support.batches import append, batch, read_all
from tests.support.simulated_files import Fault, SimulatedFiles
from tests.support.simulated_runtime import SimulatedRuntime

INTERVAL_MS = 50


class Setting:
    """Two logs on one disk and a flusher."""

    def __init__(self) -> None:
        self.files = SimulatedFiles()
        self.runtime = SimulatedRuntime()
        self.flusher = GroupFlusher(self.runtime, INTERVAL_MS)
        self.logs = [self.opened(n) for n in range(2)]

    def opened(self, number: int) -> PartitionLog:
        settings = LogSettings(segment_bytes=600, retention_ms=-1)
        return open_log(self.files, f"data/{number}", settings, 0)[0]

    def begin_round(self) -> None:
        """Let the lane do its part of a round of which the loop has not heard yet."""
        syncs = self.files.calls["sync"]
        while self.files.calls["sync"] == syncs:
            assert self.runtime.step()

    def append(self, number: int = 0) -> bytes:
        frame = batch(b"x" * 100)
        append(self.logs[number], frame)
        return bytes(frame)

    def after_power_loss(self, number: int = 0) -> list[bytes]:
        """The frames that the worst of many power losses leaves."""
        survivors = []
        for seed in range(20):
            disk = self.files.copy()
            disk.crash(seed)
            survivors.append(read_all(open_log(disk, f"data/{number}", LogSettings(retention_ms=-1), 0)[0]))
        return min(survivors, key=len)


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_an_answer_means_that_it_is_on_the_disk(setting: Setting) -> None:
    written = [setting.append() for _ in range(10)]
    pending = setting.flusher.flush(setting.logs[0])
    assert not pending.done
    assert setting.after_power_loss() != written
    setting.runtime.run()
    pending.result()
    assert setting.after_power_loss() == written


def test_one_flush_serves_all_who_ask_at_one_time(setting: Setting) -> None:
    pendings = []
    for _ in range(3):
        setting.append()
        pendings.append(setting.flusher.flush(setting.logs[0]))
    setting.runtime.run()
    assert all(pending.done for pending in pendings)
    assert setting.files.calls["sync"] == 1


def test_who_asks_during_a_round_waits_for_the_next(setting: Setting) -> None:
    setting.append()
    first = setting.flusher.flush(setting.logs[0])
    setting.begin_round()
    later = setting.append()
    second, third = setting.flusher.flush(setting.logs[0]), setting.flusher.flush(setting.logs[0])
    answered: list[str] = []
    first.when_done(lambda _: answered.append("first"))
    second.when_done(lambda _: answered.append("second"))
    setting.runtime.run()
    third.result()
    assert answered == ["first", "second"]
    assert setting.files.calls["sync"] == 2
    assert setting.after_power_loss()[-1] == later


def test_the_next_round_grows_until_the_lane_begins_it(setting: Setting) -> None:
    setting.runtime.hold(FLUSH_LANE)
    pendings = []
    for number in (0, 0, 1, 0):
        setting.append(number)
        pendings.append(setting.flusher.flush(setting.logs[number]))
        setting.runtime.run()
        assert setting.runtime.queued(FLUSH_LANE) == 1
    setting.runtime.release(FLUSH_LANE)
    setting.runtime.run()
    for pending in pendings:
        pending.result()
    assert setting.files.calls["sync"] == 2, "one for each log"
    assert (len(setting.after_power_loss(0)), len(setting.after_power_loss(1))) == (3, 1)


def test_a_log_may_go_on_in_another_segment_while_its_round_waits(setting: Setting) -> None:
    log = setting.logs[0]
    setting.runtime.hold(FLUSH_LANE)
    written, pendings = [], []
    while log.segment_count < 4:
        written.append(setting.append())
        pendings.append(setting.flusher.flush(log))
        setting.runtime.run()
    setting.runtime.release(FLUSH_LANE)
    setting.runtime.run()
    for pending in pendings:
        pending.result()
    assert setting.after_power_loss() == written
    log.settings.retention_ms = 0
    assert len(log.expired(10**15)) == 3, "all sealed segments were closed"


def test_a_round_behind_a_failed_one_does_not_flush_its_log_again(setting: Setting) -> None:
    """The second fdatasync would succeed without having written anything, before the loop knows of the first."""
    setting.append()
    setting.files.inject(Fault("sync"))
    pendings = [setting.flusher.flush(setting.logs[0])]
    setting.begin_round()
    setting.append()
    pendings.append(setting.flusher.flush(setting.logs[0]))
    setting.runtime.run()
    for pending in pendings:
        with pytest.raises(LogFailed):
            pending.result()
    assert setting.files.calls["sync"] == 1


def test_a_log_that_is_forgotten_misses_no_flush_that_was_asked_for(setting: Setting) -> None:
    """Its deletion may still fail."""
    kept = setting.append(1)
    forgotten = [setting.append(0) for _ in range(8)]
    assert setting.logs[0].has_sealed
    pendings = [setting.flusher.flush(log) for log in setting.logs]
    setting.flusher.forget(setting.logs[0])
    setting.runtime.run()
    for pending in pendings:
        pending.result()
    assert setting.after_power_loss(1) == [kept]
    assert setting.after_power_loss(0) == forgotten


def test_the_flush_of_one_log_is_not_that_of_another(setting: Setting) -> None:
    setting.append(0)
    setting.append(1)
    setting.flusher.flush(setting.logs[0])
    setting.runtime.run()
    assert (len(setting.after_power_loss(0)), len(setting.after_power_loss(1))) == (1, 0)


def test_a_failed_sync_fails_its_log_for_ever_and_no_other(setting: Setting) -> None:
    lost, kept = setting.append(0), setting.append(1)
    setting.files.inject(Fault("sync", path_ending="0/00000000000000000000.log"))
    pendings = [setting.flusher.flush(log) for log in setting.logs]
    setting.runtime.run()
    with pytest.raises(LogFailed, match="a flush failed: Input/output error"):
        pendings[0].result()
    pendings[1].result()
    assert setting.after_power_loss(1) == [kept]
    with pytest.raises(LogFailed):
        setting.append(0)
    assert read_all(setting.logs[0]) == [lost], "reading goes on"


def test_a_failed_sync_is_never_tried_again(setting: Setting) -> None:
    """A second fsync would succeed without having written anything."""
    setting.append()
    setting.files.inject(Fault("sync"))
    pendings: list[Pending[None]] = [setting.flusher.flush(setting.logs[0])]
    setting.runtime.hold(FLUSH_LANE)
    setting.runtime.run()
    pendings.append(setting.flusher.flush(setting.logs[0]))
    setting.runtime.release(FLUSH_LANE)
    setting.runtime.run()
    pendings.append(setting.flusher.flush(setting.logs[0]))
    setting.flusher.flush_soon(setting.logs[0])
    setting.runtime.advance(1)
    for pending in pendings:
        with pytest.raises(LogFailed):
            pending.result()
    assert setting.files.calls["sync"] == 1


@pytest.mark.parametrize("operation", ["sync", "sync_directory"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_every_call_of_a_flush_may_fail(operation: str, code: int) -> None:
    """Over all calls that a flush of three segments makes: after an error nothing is acknowledged."""
    failed = 0
    for at in range(1, 30):
        setting = Setting()
        written = [setting.append() for _ in range(8)]
        fault = Fault("sync" if operation == "sync" else "sync_directory", at=at, code=code)
        setting.files.inject(fault)
        pending = setting.flusher.flush(setting.logs[0])
        setting.runtime.run()
        try:
            pending.result()
        except LogFailed:
            failed += 1
            with pytest.raises(LogFailed):
                setting.append()
        else:
            assert setting.after_power_loss() == written
        if fault.at > 0:
            break
    else:
        raise AssertionError("a flush has an end")
    assert failed > 0


def test_what_nobody_asks_for_is_flushed_within_the_interval(setting: Setting) -> None:
    written = setting.append()
    setting.flusher.flush_soon(setting.logs[0])
    setting.runtime.advance((INTERVAL_MS - 1) / 1000)
    assert setting.files.calls["sync"] == 0
    setting.append()
    setting.flusher.flush_soon(setting.logs[0])
    setting.runtime.advance(0.001)
    assert setting.files.calls["sync"] == 1, "the interval counts from the first"
    assert setting.after_power_loss()[0] == written
    setting.runtime.advance(10)
    assert setting.files.calls["sync"] == 1, "nothing is left to flush"


def test_a_flush_that_was_asked_for_spares_the_one_by_the_interval(setting: Setting) -> None:
    setting.append()
    setting.flusher.flush_soon(setting.logs[0])
    setting.flusher.flush(setting.logs[0])
    setting.runtime.advance(1)
    assert setting.files.calls["sync"] == 1


def test_stop_takes_the_timer_back(setting: Setting) -> None:
    setting.append()
    setting.flusher.flush_soon(setting.logs[0])
    setting.flusher.stop()
    setting.runtime.advance(1)
    assert setting.files.calls["sync"] == 0


def test_a_fault_of_ours_fences_its_log_alone(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(setting.logs[0], "flush_work", lambda: fail)
    setting.append(0)
    setting.append(1)
    waiting = [setting.flusher.flush(log) for log in setting.logs]
    setting.runtime.run()
    with pytest.raises(LogFailed, match="ZeroDivisionError"):
        waiting[0].result()
    waiting[1].result()
    again = setting.flusher.flush(setting.logs[1])
    setting.runtime.run()
    again.result()
