"""Compaction: what stays, what counts after a crash, and what readers see."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from millstream.broker.compaction import CompactionState
from millstream.broker.keyed_frames import KeyedRecord, OpenFrame, steps_of
from millstream.broker.steps import Steps
from millstream.broker.subscriptions import StartAt, Subscribing, SubscriptionKind
from millstream.model.frame import FrameHeader, read_frame_header
from millstream.model.pending import Pending
from millstream.storage.errors import DiskFull
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import append
from tests.unit.broker.subscriptions.desk import NotedReceiver
from tests.unit.broker.transactions.bank import Bank


class TableRecords:
    """Knows the keys of each frame by what a test says of its offset; b"" deletes what stands before it."""

    def __init__(self) -> None:
        self.keys_at: dict[int, bytes | None] = {}
        self.deleting: set[int] = set()
        self.kept: list[tuple[int, list[int]]] = []

    def open(self, header: FrameHeader, frame: memoryview) -> Steps[OpenFrame | None]:
        base_offset = header.base_offset
        records = [
            KeyedRecord(place, self.keys_at.get(base_offset + place), base_offset + place in self.deleting)
            for place in range(header.record_count)
        ]
        yield None
        return OpenTable(self, base_offset, records)


class OpenTable:
    def __init__(self, table: TableRecords, base_offset: int, records: list[KeyedRecord]) -> None:
        self._table = table
        self._base_offset = base_offset
        self._records = records

    def records(self) -> Iterator[Sequence[KeyedRecord]]:
        return iter([self._records[:1], self._records[1:]])

    def left(self, stays: bytearray, horizon_ms: int | None) -> Steps[bytes | None]:
        assert horizon_ms is None, "this compaction has no horizons"
        yield None
        self._table.kept.append((self._base_offset, [place for place, stay in enumerate(stays) if stay]))
        return None


class Press(Bank):
    """A broker whose topic is compacted."""

    def __init__(self, database: str = "") -> None:
        super().__init__(database)
        self.records = TableRecords()

    def add(self, *keys: bytes | None, deletes: bool = False) -> int:
        """Append a frame of records with keys."""
        base_offset = append(self.partition(), batch(b"value", len(keys))).base_offset
        for place, key in enumerate(keys):
            self.records.keys_at[base_offset + place] = key
            if deletes:
                self.records.deleting.add(base_offset + place)
        return base_offset

    def begin_compaction(self) -> Pending[None]:
        return self.broker.broker.compaction.compact(self.broker.topic(), 0, self.records)

    def compact(self) -> None:
        self.broker.wait(self.begin_compaction())

    def left(self) -> list[int]:
        """Base offsets of what compaction has left."""
        view = self.broker.broker.compaction.view(self.broker.topic(), 0)
        offset, found = 0, []
        while offset < view.horizon:
            data, offset = view.read(offset, 1)
            position = 0
            while position < len(data):
                header = read_frame_header(data, position)
                found.append(header.base_offset)
                position += header.size
        return found

    def state(self) -> CompactionState:
        return self.broker.broker.compaction.status(self.broker.topic(), 0).state

    def files(self) -> list[str]:
        names = self.broker.files.list_directory(f"/data/topics/{self.broker.topic().id}/0")
        return [name for name in names if name.endswith(".compacted")]

    def read(self, name: str = "r", *, durable: bool = False) -> list[int]:
        """What a consumer gets that reads what compaction has left, and then the log."""
        receiver = NotedReceiver()
        request = Subscribing(
            kind=SubscriptionKind.EXCLUSIVE,
            consumer_name="c",
            inspector=self.inspector,
            durable=durable,
            start=StartAt.EARLIEST,
            source=self.broker.broker.compaction.view(self.broker.topic(), 0),
        )
        subscriptions = self.broker.broker.subscriptions
        consumer = self.broker.wait(subscriptions.subscribe(self.broker.topic(), 0, name, request, receiver))
        consumer.flow(10_000)
        self.run()
        consumer.close()
        return receiver.take()


def test_the_last_of_each_key_stays_and_what_has_none() -> None:
    press = Press()
    for key in (b"a", b"b", b"a", None, b"b", b"x" * 100, b"x" * 100):
        press.add(key)
    assert press.state() is CompactionState.NOT_RUN
    press.compact()
    assert press.left() == [2, 3, 4, 6]
    assert press.state() is CompactionState.SUCCESS
    assert press.partition().log.start_offset == 0, "the log is not touched"
    press.add(b"a")
    assert press.read() == [2, 3, 4, 6, 7]


def test_a_deletion_takes_what_stands_before_it_and_itself() -> None:
    press = Press()
    press.add(b"a")
    press.add(b"b")
    press.add(b"a", deletes=True)
    press.compact()
    assert press.left() == [1]
    press.add(b"b", deletes=True)
    press.compact()
    assert press.left() == []
    assert press.read() == []


def test_batches_are_kept_in_part() -> None:
    press = Press()
    press.add(b"a", b"b", b"c")
    press.add(b"b", b"d")
    press.compact()
    assert press.left() == [0, 3]
    assert press.records.kept == [(0, [0, 2])]


def test_a_later_run_goes_on_from_the_one_before_even_where_the_log_is_gone() -> None:
    press = Press()
    for key in (b"a", b"b", b"c"):
        press.add(key)
    press.compact()
    press.broker.wait(press.broker.broker.delete_records(press.partition(), 3))
    press.add(b"b")
    assert press.read() == [0, 1, 2, 3]
    assert press.read(durable=True, name="d") == [0, 1, 2, 3]
    press.compact()
    assert press.left() == [0, 2, 3]
    assert len(press.files()) == 1
    press.broker.wait(press.broker.broker.delete_records(press.partition(), 4))
    for _ in range(3):
        press.add(None)
    press.broker.wait(press.broker.broker.delete_records(press.partition(), 6))
    assert press.read(name="again") == [0, 2, 3, 6]


def test_transactions_are_respected() -> None:
    press = Press()
    aborted, still = press.begin(0), press.begin(0)
    press.add(b"a")
    press.records.keys_at[press.write(aborted)] = b"a"
    press.end(aborted, commit=False)
    press.add(b"b")
    press.records.keys_at[press.write(still)] = b"b"
    press.compact()
    assert press.left() == [0, 2]
    assert press.broker.broker.compaction.status(press.broker.topic(), 0).horizon == 3
    press.end(still, commit=True)
    press.compact()
    assert press.left() == [0, 3]


def test_it_survives_restarts_and_crashes(tmp_path: Path) -> None:
    press = Press(str(tmp_path / "metadata"))
    for key in (b"a", b"a", b"b"):
        press.add(key)
    press.compact()
    press.kill()
    assert press.left() == [1, 2]
    press.add(b"b")
    press.begin_compaction()
    for _ in range(8):  # a run that is not over counts for nothing
        press.broker.runtime.step()
    press.kill()
    assert press.left() == [1, 2]
    press.compact()
    assert press.left() == [1, 3]
    assert len(press.files()) == 1, "what the run that was broken off left is removed"
    press.broker.restart()
    assert press.left() == [1, 3]


@pytest.mark.parametrize("steps", range(0, 60, 3))
def test_a_kill_at_any_time_leaves_the_old_or_the_new(tmp_path: Path, steps: int) -> None:
    press = Press(str(tmp_path / "metadata"))
    press.add(b"a")
    press.compact()
    press.add(b"a")
    press.begin_compaction()
    for _ in range(steps):
        press.broker.runtime.step()
    press.kill()
    assert press.left() in ([0], [1])
    press.compact()
    assert press.left() == [1]


def test_a_fault_of_ours_is_told_and_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    press = Press()
    press.add(b"a", b"b")
    compacted = press.begin_compaction()
    compacting = press.begin_compaction()
    press.records.keys_at[1] = 5  # type: ignore[assignment]  # what no session may give
    ended: list[bool] = []
    compacting.when_done(lambda done: ended.append(done.failed))
    press.broker.runtime.run()
    assert compacted is compacting
    assert ended == [True]
    status = press.broker.broker.compaction.status(press.broker.topic(), 0)
    assert status.state is CompactionState.ERROR
    assert "TypeError" in caplog.text
    press.records.keys_at[1] = b"b"
    press.compact()


def test_a_full_disk_fails_the_run_alone() -> None:
    press = Press()
    press.add(b"a")
    press.compact()
    press.add(b"a")
    press.broker.files.room_bytes = press.broker.files.used_bytes()
    with pytest.raises(DiskFull):
        press.compact()
    assert press.state() is CompactionState.ERROR
    press.broker.files.room_bytes = None
    assert press.left() == [0]
    press.compact()
    assert press.left() == [1]
    assert press.state() is CompactionState.SUCCESS


def test_a_run_under_way_is_joined_and_ends_with_its_topic() -> None:
    press = Press()
    press.add(b"a")
    first = press.begin_compaction()
    assert press.begin_compaction() is first
    assert press.state() is CompactionState.RUNNING
    press.broker.wait(press.broker.broker.delete_topic(press.broker.topic()))
    assert first.done
    assert len(press.broker.broker.documents.of_kind("compaction")) == 0


def test_a_large_partition_is_compacted_in_steps() -> None:
    press = Press()
    for number in range(3000):
        frame = batch(bytes(500))
        offset = append(press.partition(), frame).base_offset
        press.records.keys_at[offset] = b"k%d" % (number % 100)
    press.compact()
    assert press.left() == list(range(2900, 3000))


def test_over_a_threshold() -> None:
    press = Press()
    compaction = press.broker.broker.compaction
    compaction.records = press.records
    press.add(b"a")
    press.add(b"a")
    compaction.compact_over(press.broker.topic(), 0, 1 << 20)
    assert press.state() is CompactionState.NOT_RUN
    compaction.compact_over(press.broker.topic(), 0, 100)
    press.run()
    assert press.left() == [1]
    compaction.compact_over(press.broker.topic(), 0, 100)
    assert press.state() is CompactionState.SUCCESS, "nothing has come since"


def test_a_step_takes_few_records_at_a_time() -> None:
    small, large = bytes(batch(count=4000)), bytes(batch(count=20_000))
    data = memoryview(small * 3 + large * 2 + small)
    assert [bytes(one) for one in steps_of(data, 10_000)] == [small * 2, small, large, large, small]
