"""One partition: what the topic's settings refuse, what an answer waits for, and who is told of news."""

import errno

import pytest

from millstream.broker.errors import BatchTooLarge, InvalidTimestamp, NotEnoughReplicas
from millstream.broker.partition import Partition
from millstream.model.frame import Attributes, frame_crc, read_frame_header, set_log_append_time
from millstream.storage.errors import DiskFull, LogFailed
from millstream.storage.flusher import FLUSH_LANE
from tests.support.batches import batch, read_all
from tests.support.simulated_files import Fault
from tests.unit.broker.simulated_broker import SimulatedBroker, append


@pytest.fixture
def sim() -> SimulatedBroker:
    return SimulatedBroker()


def partition_of(sim: SimulatedBroker, **configs: str) -> Partition:
    return sim.create("orders", 1, **configs).partitions[0]


def test_a_batch_of_the_largest_size_is_taken_and_no_larger_one(sim: SimulatedBroker) -> None:
    frame = batch(b"x" * 100)
    partition = partition_of(sim, max__message__bytes=str(len(frame)))
    assert append(partition, frame).base_offset == 0
    with pytest.raises(BatchTooLarge):
        append(partition, batch(b"x" * 101))
    assert partition.log.end_offset == 1


def test_more_replicas_than_there_are_refuse_only_those_who_ask_for_all(sim: SimulatedBroker) -> None:
    partition = partition_of(sim, min__insync__replicas="2")
    with pytest.raises(NotEnoughReplicas):
        append(partition, all_replicas=True)
    assert append(partition).base_offset == 0


def test_times_too_far_away_are_refused(sim: SimulatedBroker) -> None:
    now_ms = sim.runtime.now_ms()
    configs = {"message__timestamp__before__max__ms": "1000", "message__timestamp__after__max__ms": "500"}
    partition = partition_of(sim, **configs)
    for allowed in (now_ms - 1000, now_ms + 500, now_ms):
        append(partition, batch(timestamp_ms=allowed))
    for refused in (now_ms - 1001, now_ms + 501):
        with pytest.raises(InvalidTimestamp):
            append(partition, batch(timestamp_ms=refused))
    with pytest.raises(InvalidTimestamp):
        append(partition, batch(count=2, timestamp_ms=now_ms + 500))  # the second record is 1 ms later
    assert partition.log.end_offset == 3


def test_a_producer_may_not_claim_the_time_of_append(sim: SimulatedBroker) -> None:
    partition = partition_of(sim)
    frame = batch()
    set_log_append_time(memoryview(frame), 5)
    with pytest.raises(InvalidTimestamp):
        append(partition, frame)


def test_the_time_of_append_is_stamped_with_a_right_checksum(sim: SimulatedBroker) -> None:
    partition = partition_of(sim, message__timestamp__type="LogAppendTime")
    append(partition, batch(timestamp_ms=1))
    [stored] = read_all(partition.log)
    header = read_frame_header(stored)
    assert header.attributes & Attributes.LOG_APPEND_TIME
    assert header.max_timestamp == sim.runtime.now_ms()
    assert header.crc == frame_crc(memoryview(stored))
    assert partition.log.max_timestamp[0] == sim.runtime.now_ms()


def test_an_answer_from_all_replicas_waits_for_the_disk(sim: SimulatedBroker) -> None:
    partition = partition_of(sim)
    append(partition, all_replicas=True)
    durable = partition.durable()
    assert durable is not None
    sim.runtime.hold(FLUSH_LANE)
    sim.runtime.run()
    assert not durable.done
    sim.runtime.release(FLUSH_LANE)
    sim.wait(durable)


def test_with_durability_os_there_is_nothing_to_wait_for() -> None:
    sim = SimulatedBroker(durability="os")
    partition = partition_of(sim)
    append(partition, all_replicas=True)
    assert partition.durable() is None


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_what_nobody_waits_for_is_flushed_within_the_interval(durability: str) -> None:
    sim = SimulatedBroker(durability=durability, flush__interval__ms="100")
    partition = partition_of(sim)
    append(partition, all_replicas=durability == "os")
    before = sim.files.calls["sync"]
    sim.pass_ms(99)
    assert sim.files.calls["sync"] == before
    sim.pass_ms(1)
    assert sim.files.calls["sync"] > before


def test_a_flush_that_fails_fences_the_partition_and_no_other(sim: SimulatedBroker) -> None:
    first, second = sim.create("orders", 2).partitions
    sim.files.inject(Fault("sync", path_ending="/0/00000000000000000000.log"))
    append(first, all_replicas=True)
    append(second, all_replicas=True)
    answers = [first.durable(), second.durable()]
    sim.runtime.run()
    assert answers[0] is not None
    with pytest.raises(LogFailed):
        answers[0].result()
    assert answers[1] is not None
    answers[1].result()
    with pytest.raises(LogFailed):
        append(first)
    append(second)


def test_a_full_disk_refuses_and_may_become_free_again(sim: SimulatedBroker) -> None:
    partition = partition_of(sim)
    append(partition)
    sim.files.inject(Fault("write", code=errno.ENOSPC, kept_bytes=10))
    with pytest.raises(DiskFull):
        append(partition)
    assert append(partition).base_offset == 1
    assert len(read_all(partition.log)) == 2


def test_news_are_told_once_after_the_work_at_hand(sim: SimulatedBroker) -> None:
    partition = partition_of(sim)
    news: list[int] = []

    def told() -> None:
        news.append(partition.log.end_offset)

    partition.watch(told)
    append(partition)
    append(partition)
    assert news == []
    sim.runtime.run()
    assert news == [2]
    partition.unwatch(told)
    partition.unwatch(told)
    append(partition)
    sim.runtime.run()
    assert news == [2]


def test_one_who_stops_watching_while_others_are_told_is_left_in_peace(sim: SimulatedBroker) -> None:
    partition = partition_of(sim)
    told: list[str] = []

    def first() -> None:
        told.append("first")
        partition.unwatch(first)

    partition.watch(first)
    partition.watch(lambda: told.append("second"))
    append(partition)
    sim.runtime.run()
    append(partition)
    sim.runtime.run()
    assert told == ["first", "second", "second"]


def test_a_duplicate_is_no_news(sim: SimulatedBroker) -> None:
    partition = partition_of(sim)
    frame = batch(b"x", producer_id=7, epoch=0, sequence=0)
    assert append(partition, bytearray(frame)) == (0, False)
    bytes_before = partition.appended_bytes
    assert append(partition, bytearray(frame)) == (0, True)
    assert (partition.appended_bytes, partition.log.end_offset) == (bytes_before, 1)
