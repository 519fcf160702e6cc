"""The broker as a whole: upkeep, deletion of records, its end, and what a new start finds."""

from pathlib import Path
from typing import Literal

import pytest

from millstream.broker.namespaces import Retention
from millstream.broker.subscriptions import Subscription
from millstream.broker.topics import UPKEEP_LANE
from millstream.model.pending import settled
from millstream.model.topic_name import TopicName
from millstream.storage.directory import DataDirectory
from millstream.storage.errors import DataDirectoryInUse, LogFailed, OffsetOutOfRange
from millstream.storage.metadata import METADATA_LANE, CommittedOffset
from millstream.storage.segment import Segment
from tests.support.batches import batch, read_all
from tests.support.simulated_files import Fault
from tests.unit.broker.members import joining
from tests.unit.broker.simulated_broker import SimulatedBroker, append

FRAME_BYTES = len(batch(b"value"))


@pytest.fixture
def sim(tmp_path: Path) -> SimulatedBroker:
    return SimulatedBroker(str(tmp_path / "metadata.sqlite"), log__retention__check__interval__ms="1000")


def small_segments(sim: SimulatedBroker, **configs: str) -> None:
    """A topic whose segments hold two batches each, with ten batches in it."""
    topic = sim.create("orders", 1, segment__bytes=str(2 * FRAME_BYTES), **configs)
    for _ in range(10):
        append(topic.partitions[0], batch(b"value", timestamp_ms=sim.runtime.now_ms()))
    sim.pass_ms(1)
    assert topic.partitions[0].log.segment_count == 5


@pytest.mark.parametrize("end", ["restart", "kill"])
def test_everything_is_there_after_a_new_start(sim: SimulatedBroker, end: str) -> None:
    cluster_id = sim.broker.cluster_id
    small_segments(sim)
    topic = sim.topic()
    append(topic.partitions[0], batch(b"x", producer_id=5, epoch=0, sequence=0))
    place = topic.id, 0
    sim.wait(sim.broker.groups.commit("g", "", None, -1, {place: CommittedOffset(7, 0, "note", 1)}))
    sim.wait(sim.broker.delete_records(topic.partitions[0], 3))
    written = read_all(topic.partitions[0].log)
    if end == "kill":
        sim.kill()
        sim.start()
    else:
        sim.restart()
    found = sim.topic()
    log = found.partitions[0].log
    assert found.id == topic.id
    assert (log.start_offset, log.end_offset, read_all(log)) == (3, 11, written)
    assert sim.broker.groups.offsets.of_group("g") == {place: CommittedOffset(7, 0, "note", 1)}
    assert sim.broker.cluster_id == cluster_id
    assert append(found.partitions[0], batch(b"x", producer_id=5, epoch=0, sequence=0)) == (10, True)


def test_a_clean_stop_spares_the_next_start_the_scan(sim: SimulatedBroker) -> None:
    small_segments(sim)
    sim.restart()
    reads = sim.files.calls["read"]
    sim.restart()
    assert sim.files.calls["read"] - reads <= 2


def test_close_ends_all_timers_and_releases_the_directory(sim: SimulatedBroker) -> None:
    small_segments(sim)
    append(sim.topic().partitions[0])
    sim.broker.groups.join("g", joining())
    with pytest.raises(DataDirectoryInUse):
        DataDirectory(sim.files, "/data")
    sim.wait(sim.broker.close())
    assert not sim.runtime.timers
    DataDirectory(sim.files, "/data").release()


def test_close_puts_everything_on_the_disk(sim: SimulatedBroker) -> None:
    small_segments(sim)
    append(sim.topic().partitions[0])
    sim.wait(sim.broker.close())
    sim.files.crash(seed=1)
    sim.start()
    assert sim.topic().partitions[0].log.end_offset == 11


def test_close_with_a_failed_log_still_closes_the_others(sim: SimulatedBroker) -> None:
    first, second = sim.create("orders", 2).partitions
    append(first)
    append(second)
    first.log.fail("broken")
    sim.restart()
    assert [partition.log.end_offset for partition in sim.topic().partitions] == [1, 1]


def test_close_waits_for_the_changes_that_are_under_way(sim: SimulatedBroker) -> None:
    topic = sim.create()
    sim.runtime.hold(METADATA_LANE)
    committing = sim.broker.groups.commit("g", "", None, -1, {(topic.id, 0): CommittedOffset(7, 0, "", 1)})
    closing = sim.broker.close()
    sim.runtime.run()
    assert not closing.done
    sim.runtime.release(METADATA_LANE)
    sim.wait(closing)
    assert committing.done
    sim.start()
    assert sim.broker.groups.offsets.of_group("g")[topic.id, 0].offset == 7


@pytest.mark.parametrize("fault", ["store", "open", "write", "sync"])
def test_close_comes_to_an_end_whatever_fails(
    sim: SimulatedBroker, fault: Literal["store", "open", "write", "sync"]
) -> None:
    append(sim.create().partitions[0])
    if fault == "store":
        sim.store.failing = True
    else:
        sim.files.inject(Fault(fault, lasting=True))
    sim.wait(sim.broker.close())
    assert not sim.runtime.timers
    sim.files.heal()
    sim.start()
    # What a flush has failed on is not on the disk, whatever the cache showed.
    assert sim.topic().partitions[0].log.end_offset == (0 if fault == "sync" else 1)


def test_retention_by_time(sim: SimulatedBroker) -> None:
    small_segments(sim, retention__ms="60000")
    log = sim.topic().partitions[0].log
    sim.pass_ms(59_000)
    assert log.start_offset == 0
    sim.pass_ms(5_000)
    assert (log.start_offset, log.end_offset, log.segment_count) == (10, 10, 1)
    assert append(sim.topic().partitions[0]).base_offset == 10
    files = sim.files.list_directory(f"{sim.directory.topic_path(sim.topic().id)}/0")
    assert [name for name in files if name.endswith(".log")] == ["00000000000000000010.log"]


def test_retention_by_size(sim: SimulatedBroker) -> None:
    small_segments(sim, retention__bytes=str(4 * FRAME_BYTES))
    sim.pass_ms(2000)
    log = sim.topic().partitions[0].log
    assert (log.start_offset, log.size_bytes) == (6, 4 * FRAME_BYTES)


def test_segments_that_cannot_be_removed_do_not_end_the_upkeep(sim: SimulatedBroker) -> None:
    small_segments(sim, retention__bytes="0")
    sim.files.inject(Fault("remove", lasting=True))
    sim.pass_ms(5000)
    assert sim.topic().partitions[0].log.start_offset == 8
    assert sim.runtime.timers


def test_producers_that_do_not_write_are_forgotten(tmp_path: Path) -> None:
    sim = SimulatedBroker(str(tmp_path / "m.sqlite"), producer__id__expiration__ms="100000")
    partition = sim.create().partitions[0]
    append(partition, batch(producer_id=1, epoch=0, sequence=0))
    sim.pass_ms(90_000)
    append(partition, batch(producer_id=2, epoch=0, sequence=0))
    assert len(partition.log.producers) == 2
    sim.pass_ms(60_000)
    assert len(partition.log.producers) == 1


# Deleting records


def test_deleted_records_stay_deleted(sim: SimulatedBroker) -> None:
    small_segments(sim)
    partition = sim.topic().partitions[0]
    assert sim.wait(sim.broker.delete_records(partition, 5)) == 5
    sim.pass_ms(2000)  # a segment that was not flushed yet goes a little later
    assert partition.log.segment_count == 3
    with pytest.raises(OffsetOutOfRange):
        partition.log.read(4, 1000)
    assert sim.wait(sim.broker.delete_records(partition, 2)) == 5
    sim.kill()
    sim.start()
    assert sim.topic().partitions[0].log.start_offset == 5


def test_files_that_take_long_to_remove_keep_nobody_from_the_disk(sim: SimulatedBroker) -> None:
    small_segments(sim)
    partition = sim.topic().partitions[0]
    sim.runtime.hold(UPKEEP_LANE)
    deleting = sim.broker.delete_records(partition, 5)
    append(partition, all_replicas=True)
    durable = partition.durable()
    assert durable is not None
    sim.wait(durable)
    assert not deleting.done
    sim.runtime.release(UPKEEP_LANE)
    assert sim.wait(deleting) == 5


def test_all_records_are_deleted(sim: SimulatedBroker) -> None:
    small_segments(sim)
    partition = sim.topic().partitions[0]
    assert sim.wait(sim.broker.delete_records(partition, 10)) == 10
    assert read_all(partition.log) == []
    assert append(partition).base_offset == 10
    with pytest.raises(OffsetOutOfRange):
        sim.broker.delete_records(partition, 12)


def test_records_of_a_failed_log_are_not_deleted(sim: SimulatedBroker) -> None:
    small_segments(sim)
    partition = sim.topic().partitions[0]
    partition.log.fail("broken")
    with pytest.raises(LogFailed):
        sim.broker.delete_records(partition, 5)
    assert partition.log.start_offset == 0


def test_an_offset_that_cannot_be_kept_is_an_error(sim: SimulatedBroker) -> None:
    small_segments(sim)
    partition = sim.topic().partitions[0]
    sim.files.inject(Fault("replace"))
    pending = sim.broker.delete_records(partition, 5)
    sim.runtime.run()
    with pytest.raises(OSError, match="Input/output"):
        pending.result()


def test_an_idle_log_becomes_empty_though_a_segment_goes_as_another_is_sealed(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 1, segment__bytes=str(FRAME_BYTES), retention__ms="2500")
    log = topic.partitions[0].log
    for _ in range(2):
        append(topic.partitions[0], batch(b"value", timestamp_ms=sim.runtime.now_ms()))
    sim.pass_ms(1)
    sim.wait(topic.partitions[0].durable() or settled(None))
    assert log.segment_count == 2
    sim.pass_ms(6000)
    assert (log.size_bytes, log.segment_count, log.start_offset) == (0, 1, 2)


def test_close_waits_for_topics_that_are_being_made_and_removed(
    sim: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: set[Segment] = set()
    open_segment = Segment.open

    def remember(segment: Segment) -> None:
        open_segment(segment)
        opened.add(segment)

    monkeypatch.setattr(Segment, "open", remember)
    gone, grows = sim.create("gone", 2), sim.create("grows")
    deleted = sim.broker.delete_topic(gone)
    grown = sim.broker.topics.add_partitions(grows, 3)
    made = sim.broker.topics.create(TopicName.from_flat("made"), 2, {})
    closed = sim.broker.close()
    sim.wait(closed)
    assert deleted.done
    assert grown.done
    assert len(made.result().partitions) == 2
    assert len(opened) == 7
    assert not any(segment.is_open for segment in opened)
    assert sim.files.list_directory("/data/topics") == sorted(str(topic.id) for topic in (grows, made.result()))
    sim.start()
    assert {topic.name.flat: len(topic.partitions) for topic in sim.broker.topics} == {"grows": 3, "made": 2}


def subscribed(sim: SimulatedBroker, offset: int) -> Subscription:
    """A subscription that wants everything from an offset on."""
    return sim.wait(sim.broker.subscriptions.create(sim.topic(), 0, "billing", offset))


def test_what_a_subscription_has_not_read_is_kept(sim: SimulatedBroker) -> None:
    small_segments(sim, retention__ms="60000", retention__bytes="0")
    subscription = subscribed(sim, 5)
    log = sim.topic().partitions[0].log
    sim.pass_ms(3_600_000)
    assert (log.start_offset, log.end_offset) == (4, 10)
    sim.wait(subscription.seek(10))
    sim.pass_ms(10_000)
    assert log.start_offset == 10


def test_what_has_expired_counts_as_read(sim: SimulatedBroker) -> None:
    small_segments(sim, retention__ms="60000")
    subscription = subscribed(sim, 0)
    namespace = sim.broker.namespaces.get("public", "default")
    sim.wait(sim.broker.namespaces.set_policies(namespace, message_ttl_s=100))
    sim.pass_ms(90_000)
    assert subscription.position == 0
    sim.pass_ms(30_000)
    assert (subscription.position, sim.topic().partitions[0].log.start_offset) == (10, 10)


@pytest.mark.parametrize(("configs", "start"), [({}, 10), ({"retention__ms": "3600000"}, 0)])
def test_a_namespace_says_what_is_kept_unless_the_topic_does(
    sim: SimulatedBroker, configs: dict[str, str], start: int
) -> None:
    small_segments(sim, **configs)
    namespace = sim.broker.namespaces.get("public", "default")
    sim.wait(sim.broker.namespaces.set_policies(namespace, retention=Retention(1, 10)))
    sim.pass_ms(30_000)
    assert sim.topic().partitions[0].log.start_offset == 0
    sim.pass_ms(60_000)
    assert sim.topic().partitions[0].log.start_offset == start
