"""When a partition is cleaned, what is remembered of it, and what errors cost."""

from pathlib import Path

import pytest

from millstream.broker.cleaning.cleaner import CLEANED_DOCUMENT
from millstream.broker.keyed_frames import OpenFrame
from millstream.broker.namespaces.policies import Retention
from millstream.broker.steps import Steps
from millstream.model.frame import FrameHeader
from millstream.sessions.kafka.compaction import KafkaFrameRecords
from millstream.storage.errors import LogFailed
from tests.support.simulated_files import Fault
from tests.unit.broker.cleaning.keyed_topic import KeyedTopic, keyed_batch
from tests.unit.broker.simulated_broker import append


def test_the_last_of_each_key_stays_at_its_offset() -> None:
    topic = KeyedTopic()
    topic.put_each(*[b"a", b"b"] * 10, b"b", b"c", b"a")
    topic.seal()
    topic.put_each(b"c")
    assert topic.log.segment_count > 10
    topic.clean()
    assert topic.keyed() == [(20, b"b"), (21, b"c"), (22, b"a"), (23, b"c")], "the last segment is not cleaned"
    assert topic.log.segment_count == 3, "segments that have become small are one"
    assert topic.log.end_offset == 24


def test_nothing_is_cleaned_without_compact_in_the_policy() -> None:
    topic = KeyedTopic(cleanup__policy="delete", retention__ms="-1")
    topic.put_each(b"a", b"a", b"a")
    topic.seal()
    topic.clean()
    assert len(topic.keyed()) == 3
    broker = topic.broker
    broker.wait(broker.broker.topics.set_configs(broker.topic(), {"cleanup.policy": "compact"}))
    topic.clean()
    assert topic.keyed() == [(2, b"a")]


def test_what_is_not_dirty_enough_waits() -> None:
    topic = KeyedTopic(min__cleanable__dirty__ratio="0.5")
    topic.put_each(*(b"%d" % n for n in range(20)))
    topic.seal()
    topic.clean()
    assert topic.broker.broker.cleaner.figures.runs == 1
    topic.put_each(b"0")
    topic.seal()
    topic.clean()
    assert topic.broker.broker.cleaner.figures.runs == 1
    assert len(topic.keyed()) == 21
    topic.put_each(*(b"%d" % n for n in range(1, 20)))
    topic.seal()
    topic.clean()
    assert topic.broker.broker.cleaner.figures.runs == 2
    assert len(topic.keyed()) == 20


def test_what_is_clean_is_known_after_a_restart(tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"))
    topic.put_each(b"a", b"a", b"b")
    topic.seal()
    topic.clean()
    cleaner = topic.broker.broker.cleaner
    assert cleaner.cleaned_offset(topic.broker.topic(), 0) == 3
    topic.restart()
    topic.clean(3)
    assert topic.broker.broker.cleaner.figures.runs == 0
    assert topic.keyed() == [(1, b"a"), (2, b"b")]


def test_young_records_wait_for_min_compaction_lag() -> None:
    topic = KeyedTopic(min__compaction__lag__ms="60000", min__cleanable__dirty__ratio="0")
    now_ms = topic.broker.runtime.now_ms()
    topic.put((b"a", b"1"), timestamp_ms=now_ms)
    topic.put((b"a", b"2"), timestamp_ms=now_ms)
    topic.seal()
    topic.clean(3)
    assert len(topic.keyed()) == 2
    topic.clean(2)
    assert topic.keyed() == [(1, b"a")]


def test_records_that_waited_for_max_compaction_lag_are_cleaned_however_few_they_are() -> None:
    topic = KeyedTopic(max__compaction__lag__ms="60000", min__cleanable__dirty__ratio="1")
    for _ in range(2):
        topic.put((b"a", b"v"), timestamp_ms=topic.broker.runtime.now_ms())
    topic.clean(3)
    assert len(topic.keyed()) == 2
    topic.clean(4)
    assert topic.keyed() == [(1, b"a")], "the last segment is sealed when it is as old"


def test_a_tombstone_goes_in_time_even_if_nothing_else_is_written() -> None:
    topic = KeyedTopic(delete__retention__ms="100000")
    topic.put((b"a", b"v"))
    topic.put((b"a", None), (b"b", b"v"))
    topic.seal()
    topic.clean()
    assert topic.left() == [(1, b"a", None), (2, b"b", b"v")]
    topic.clean(3)
    assert topic.broker.broker.cleaner.figures.runs == 1
    assert (1, b"a", None) in topic.left()
    topic.clean(10)
    assert topic.left() == [(2, b"b", b"v")]
    assert topic.broker.broker.cleaner.figures.runs == 2
    topic.clean(10)
    assert topic.broker.broker.cleaner.figures.runs == 2


def test_keys_that_memory_does_not_suffice_for_take_several_runs() -> None:
    topic = KeyedTopic(min__cleanable__dirty__ratio="0")
    topic.broker.broker.cleaner._settings.cleaner_keys_bytes = 600  # three keys
    keys = [b"%d" % n for n in range(10)]
    topic.put_each(*keys, *keys)
    topic.seal()
    topic.clean()
    assert topic.broker.broker.cleaner.figures.runs > 3
    assert topic.keyed() == [(10 + n, key) for n, key in enumerate(keys)]


def test_both_policies_together() -> None:
    topic = KeyedTopic(cleanup__policy="compact,delete", retention__ms="200000")
    start_ms = topic.broker.runtime.now_ms()
    topic.put((b"a", b"1"), timestamp_ms=start_ms)
    topic.put((b"a", b"2"), timestamp_ms=start_ms)
    topic.seal()
    topic.put((b"b", b"1"), timestamp_ms=start_ms + 3_000_000)
    topic.clean()
    assert topic.keyed() == [(1, b"a"), (2, b"b")]
    topic.broker.pass_ms(300_000)
    assert topic.keyed() == [(2, b"b")]
    assert topic.log.start_offset == 2


@pytest.mark.parametrize(("policy", "left"), [("compact", [1, 2]), ("compact,delete", [2]), ("delete", [2])])
def test_retention_of_a_namespace_is_for_topics_whose_policy_is_delete(policy: str, left: list[int]) -> None:
    topic = KeyedTopic(cleanup__policy=policy)
    broker = topic.broker.broker
    namespace = broker.namespaces.get("public", "default")
    topic.broker.wait(broker.namespaces.set_policies(namespace, retention=Retention(1, -1)))
    topic.put_each(b"a", b"a")
    topic.seal()
    topic.put((b"b", b"1"), timestamp_ms=topic.broker.runtime.now_ms() + 3_000_000)
    topic.clean()
    topic.broker.pass_ms(600_000)
    assert [offset for offset, _ in topic.keyed()] == left


def test_a_full_disk_puts_it_off() -> None:
    topic = KeyedTopic()
    topic.put_each(b"a", b"a", b"a", b"a")
    topic.seal()
    before = topic.frames()
    topic.broker.files.inject(Fault("open", code=28, path_ending=".log.new", lasting=True))
    topic.clean()
    assert topic.frames() == before
    assert topic.broker.broker.cleaner.figures.failures == 1
    topic.broker.files.heal()
    topic.clean()
    assert topic.keyed() == [(3, b"a")]


@pytest.mark.parametrize("operation", ["write", "sync", "open", "remove", "replace"])
def test_an_error_of_the_disk_loses_nothing(operation: str, tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"))
    topic.put_each(b"a", b"b", b"a", b"a", b"a", b"a", b"c")
    topic.seal()
    topic.flush()
    ending = {"write": ".log.new", "sync": ".log.new", "open": ".log.new", "replace": ".log"}.get(operation, "")
    topic.broker.files.inject(Fault(operation, path_ending=ending))  # type: ignore[arg-type]  # each is an Operation
    topic.clean()
    last = {key: offset for offset, key in topic.keyed()}
    assert last == {b"a": 5, b"b": 1, b"c": 6}
    topic.clean()
    topic.broker.files.crash(1)
    topic.start_again()
    topic.clean()
    assert topic.keyed() == [(1, b"b"), (5, b"a"), (6, b"c")]


@pytest.mark.parametrize("at", [1, 2], ids=["before the new file counts", "after it"])
@pytest.mark.parametrize("seed", range(6))
def test_names_that_cannot_be_made_to_last_end_all_writing(at: int, seed: int, tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"), cleanup__policy="compact,delete", retention__ms="-1")
    topic.put_each(b"a", b"b", b"a", b"a", b"a", b"a", b"c")
    topic.seal()
    topic.flush()
    files = topic.broker.files
    before = [name for name in topic.files() if name.endswith(".log")]
    files.inject(Fault("sync_directory", at=at, path_ending=topic.log.directory))
    topic.broker.pass_ms(60_000)
    assert str(topic.log.failure).startswith("names could not be put on the disk")
    with pytest.raises(LogFailed):
        topic.put((b"d", b"v"))
    assert {key: offset for offset, key in topic.keyed()} == {b"a": 5, b"b": 1, b"c": 6}
    if at == 2:
        topic.log.settings.retention_bytes = 0
        topic.broker.pass_ms(600_000)
        assert [name for name in topic.files() if name.endswith(".log")] == before, "nothing is removed meanwhile"
    files.heal()
    topic.broker.kill()
    files.crash(seed)
    topic.start_again()
    assert topic.log.failure is None
    assert {key: offset for offset, key in topic.keyed()} == {b"a": 5, b"b": 1, b"c": 6}
    topic.clean()
    assert topic.keyed() == [(1, b"b"), (5, b"a"), (6, b"c")]
    assert f"{4:020d}.log" not in topic.files(), "it is in the one before now"


def test_a_name_is_not_acknowledged_whose_sync_another_has_failed(tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"))
    topic.put_each(b"a", b"a", b"a")
    topic.seal()
    topic.flush()
    files, partition = topic.broker.files, topic.broker.topic().partitions[0]
    files.inject(Fault("sync_directory", path_ending=topic.log.directory))
    topic.broker.runtime.hold("flush")
    topic.log._roll(topic.broker.runtime.now_ms())
    topic.put((b"b", b"acknowledged"))
    durable = partition.durable()
    assert durable is not None
    topic.broker.pass_ms(15_000)
    assert not durable.done
    topic.broker.runtime.release("flush")
    topic.broker.pass_ms(1000)
    with pytest.raises(LogFailed):
        durable.result()


def test_files_that_cannot_be_removed_go_at_the_next_start(tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"))
    topic.put_each(b"a", b"b", b"a", b"a", b"a", b"a", b"c")
    topic.seal()
    topic.broker.files.inject(Fault("remove", path_ending="4.log", lasting=True))
    topic.clean()
    assert topic.keyed() == [(1, b"b"), (5, b"a"), (6, b"c")]
    assert topic.broker.broker.cleaner.figures.failures == 0
    assert f"{4:020d}.log" in topic.files()
    topic.broker.files.heal()
    topic.restart()
    assert topic.keyed() == [(1, b"b"), (5, b"a"), (6, b"c")]
    assert f"{4:020d}.log" not in topic.files()


class Faulty(KafkaFrameRecords):
    """A reader with a fault that shows at the n-th frame with a key."""

    def __init__(self, key: bytes, at: int) -> None:
        self._key = key
        self.left = at

    def open(self, header: FrameHeader, frame: memoryview) -> Steps[OpenFrame | None]:
        if self._key in bytes(frame):
            self.left -= 1
            if self.left == 0:
                raise KeyError("a fault of ours")
        return super().open(header, frame)


@pytest.mark.parametrize("at", range(1, 12, 2))
def test_a_fault_of_ours_is_loud_and_costs_no_other_partition_its_cleaning(
    at: int, caplog: pytest.LogCaptureFixture
) -> None:
    topic = KeyedTopic()
    topic.put_each(*[b"faulty"] * 5)
    topic.seal()
    broker = topic.broker
    other = broker.create("other", 1, cleanup__policy="compact", segment__bytes="400").partitions[0]
    for _ in range(3):
        append(other, keyed_batch([(b"a", b"v" * 200)]))
    other.log._roll(broker.runtime.now_ms())
    reader = broker.broker.cleaner.readers[2] = Faulty(b"faulty", at)
    topic.clean(2)
    assert reader.left <= 0
    figures = broker.broker.cleaner.figures
    assert (figures.runs, figures.failures) == (2, 1)
    assert "not cleaned until the next start" in caplog.text
    assert "a fault of ours" in caplog.text
    assert other.log.sealed_segments[0].next_offset == 3, "the other is compacted"
    assert {key: offset for offset, key in topic.keyed()} == {b"faulty": 4}
    assert not [name for name in topic.files() if name.endswith(".new")]
    assert not any(segment.pinned for segment in topic.log.sealed_segments)


def test_a_fault_in_looking_at_a_partition_is_its_own(caplog: pytest.LogCaptureFixture) -> None:
    topic = KeyedTopic()
    topic.put_each(b"a", b"a")
    topic.seal()
    broken = topic.broker.create("broken", 1, cleanup__policy="compact").partitions[0]
    broken.log.seal_old = None  # type: ignore[method-assign, assignment]
    topic.clean(2)
    assert topic.keyed() == [(1, b"a")]
    assert topic.broker.broker.cleaner.figures.failures == 1
    assert caplog.text.count("not cleaned until the next start") == 1


def test_a_topic_that_goes_is_left() -> None:
    topic = KeyedTopic()
    topic.put_each(*([b"a"] * 200))
    topic.seal()
    broker = topic.broker
    broker.runtime.hold("upkeep")
    topic.flush()
    broker.pass_ms(15_000)
    directory = topic.log.directory
    gone = broker.broker.delete_topic(broker.topic())
    broker.runtime.release("upkeep")
    broker.wait(gone)
    broker.pass_ms(15_000)
    assert broker.files.list_directory(directory) == []
    assert not broker.broker.documents.of_kind(CLEANED_DOCUMENT)
    assert broker.broker.cleaner.figures.failures == 0


def test_nothing_is_cleaned_before_all_protocols_are_there() -> None:
    topic = KeyedTopic()
    topic.put_each(b"a", b"a")
    topic.seal()
    reader = topic.broker.broker.cleaner.readers.popitem()
    topic.clean()
    assert len(topic.keyed()) == 2
    topic.broker.broker.cleaner.readers.update([reader])
    topic.clean()
    assert len(topic.keyed()) == 1
