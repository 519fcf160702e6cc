"""Partitions that are taken away: what goes with them, what comes after them, and what a crash in between leaves."""

import errno
from pathlib import Path

import pytest

from millstream.broker.errors import InvalidPartitionCount, UnknownTopic
from millstream.broker.producers import AccessMode, Producer
from millstream.broker.subscriptions.interface import StartAt
from millstream.broker.topics import UPKEEP_LANE, Topic
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.storage.flusher import FLUSH_LANE
from millstream.storage.metadata import METADATA_LANE, CommittedOffset, MetadataFailed
from tests.support.simulated_files import Fault
from tests.unit.broker.simulated_broker import SimulatedBroker, append


@pytest.fixture
def sim(tmp_path: Path) -> SimulatedBroker:
    return SimulatedBroker(str(tmp_path / "metadata.sqlite"))


def commit(sim: SimulatedBroker, topic: Topic, *partitions: int) -> Pending[None]:
    offsets = {(topic.id, index): CommittedOffset(1, -1, "", 0) for index in partitions}
    return sim.broker.groups.offsets.commit("g", offsets)


def committed(sim: SimulatedBroker) -> list[int]:
    return sorted(index for _, index in sim.broker.groups.offsets.of_group("g"))


def filled(sim: SimulatedBroker, partitions: int = 3) -> Topic:
    """A topic with a record and a committed offset in each partition."""
    topic = sim.create("orders", partitions)
    for partition in topic.partitions:
        append(partition)
    sim.wait(commit(sim, topic, *range(partitions)))
    return topic


def directories(sim: SimulatedBroker, topic: Topic) -> list[str]:
    path = sim.directory.topic_path(topic.id)
    return [str(index) for index in range(5) if sim.files.list_directory(f"{path}/{index}")]


def ends(topic: Topic) -> list[int]:
    return [partition.log.end_offset for partition in topic.partitions]


def check_new(sim: SimulatedBroker) -> None:
    """Nothing is left of the removed partitions, and those that come in their place are new."""
    topic = sim.topic()
    assert (ends(topic), committed(sim)) == ([1], [0])
    assert directories(sim, topic) == ["0"]
    sim.wait(sim.broker.topics.add_partitions(topic, 3))
    assert (ends(topic), committed(sim)) == ([1, 0, 0], [0])
    append(topic.partitions[2])
    sim.restart()
    assert (ends(sim.topic()), committed(sim)) == ([1, 0, 1], [0])


def test_partitions_go_with_all_that_is_kept_of_them(sim: SimulatedBroker) -> None:
    topic = filled(sim)
    going = topic.partitions[1:]
    news: list[int] = []
    for partition in going:
        partition.watch(lambda index=partition.index: news.append(index))  # type: ignore[misc]  # mypy: default argument
    sim.broker.topics.watch(lambda: news.append(len(topic.partitions)))
    sim.wait(sim.broker.topics.remove_partitions(topic, 1))
    assert news == [1, 2, 1]
    assert all(partition.deleted for partition in going)
    with pytest.raises(UnknownTopic):
        append(going[0])
    check_new(sim)


def test_they_stay_away_after_a_restart(sim: SimulatedBroker) -> None:
    topic = filled(sim)
    sim.wait(sim.broker.topics.remove_partitions(topic, 1))
    sim.restart()
    check_new(sim)


@pytest.mark.parametrize("held", [METADATA_LANE, FLUSH_LANE, UPKEEP_LANE])
def test_a_crash_in_the_middle_leaves_all_or_nothing(sim: SimulatedBroker, held: str) -> None:
    topic = filled(sim)
    sim.runtime.hold(held)
    removing = sim.broker.topics.remove_partitions(topic, 1)
    sim.runtime.run()
    assert removing.done is (held != METADATA_LANE)
    sim.kill()
    sim.start()
    if held == METADATA_LANE:
        assert (ends(sim.topic()), committed(sim)) == ([1, 1, 1], [0, 1, 2])
    else:
        check_new(sim)


def test_new_ones_wait_until_the_old_ones_are_gone(sim: SimulatedBroker) -> None:
    topic = filled(sim)
    sim.runtime.hold(UPKEEP_LANE)
    sim.wait(sim.broker.topics.remove_partitions(topic, 1))
    adding = sim.broker.topics.add_partitions(topic, 3)
    sim.wait(sim.broker.topics.set_configs(topic, {"retention.ms": "77"}))
    assert not adding.done
    sim.runtime.release(UPKEEP_LANE)
    sim.wait(adding)
    assert (ends(topic), committed(sim)) == ([1, 0, 0], [0])
    sim.kill()
    sim.start()
    assert (ends(sim.topic()), sim.topic().configs) == ([1, 0, 0], {"retention.ms": "77"})


def test_what_cannot_be_removed_now_is_removed_before_new_ones_come(sim: SimulatedBroker) -> None:
    topic = filled(sim)
    sim.files.inject(Fault("sync_directory", code=errno.EIO))
    sim.wait(sim.broker.topics.remove_partitions(topic, 1))
    assert topic.leftover == 3
    sim.wait(sim.broker.topics.add_partitions(topic, 3))
    assert (ends(topic), topic.leftover) == ([1, 0, 0], 0)


def test_partitions_that_could_not_be_removed_are_there_as_before(sim: SimulatedBroker) -> None:
    topic = filled(sim)
    sim.store.failing = True
    removing = sim.broker.topics.remove_partitions(topic, 1)
    assert len(topic.partitions) == 1
    sim.runtime.run()
    with pytest.raises(MetadataFailed):
        removing.result()
    sim.store.failing = False
    assert (ends(topic), committed(sim), topic.partitioned) == ([1, 1, 1], [0, 1, 2], False)
    append(topic.partitions[2])
    sim.wait(sim.broker.topics.set_configs(topic, {}))
    sim.restart()
    assert ends(sim.topic()) == [1, 1, 2]


@pytest.mark.parametrize("left", [-1, 0, 3, 4])
def test_how_many_cannot_be_left(sim: SimulatedBroker, left: int) -> None:
    topic = sim.create("orders", 3)
    with pytest.raises(InvalidPartitionCount):
        sim.broker.topics.remove_partitions(topic, left)


def test_one_change_at_a_time(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 4)
    removing = sim.broker.topics.remove_partitions(topic, 3)
    for change in (sim.broker.topics.add_partitions, sim.broker.topics.remove_partitions):
        with pytest.raises(InvalidPartitionCount):
            change(topic, 5 if change == sim.broker.topics.add_partitions else 2)
    sim.wait(removing)
    again = [sim.broker.topics.remove_partitions(topic, count) for count in (2,)]
    sim.wait(again[0])
    assert directories(sim, topic) == ["0", "1"]


@pytest.mark.parametrize("held", [METADATA_LANE, FLUSH_LANE, UPKEEP_LANE])
def test_a_topic_deleted_meanwhile_leaves_nothing(sim: SimulatedBroker, held: str) -> None:
    topic = filled(sim)
    sim.runtime.hold(held)
    removing = sim.broker.topics.remove_partitions(topic, 1)
    sim.runtime.run()
    deleting = sim.broker.delete_topic(topic)
    sim.runtime.run()
    sim.runtime.release(held)
    sim.wait(deleting)
    assert removing.done
    assert sim.files.list_directory("/data/topics") == []
    sim.restart()
    assert list(sim.broker.topics) == []
    assert committed(sim) == []


def test_who_waits_for_the_disk_is_told(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 2)
    append(topic.partitions[1], all_replicas=True)
    waiting = topic.partitions[1].durable()
    assert waiting is not None
    sim.wait(sim.broker.topics.remove_partitions(topic, 1))
    waiting.result()  # it was written, and then removed


def test_an_offset_on_its_way_goes_too(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 2)
    sim.runtime.hold(METADATA_LANE)
    removing = sim.broker.topics.remove_partitions(topic, 1)
    commit(sim, topic, 0, 1)
    sim.runtime.release(METADATA_LANE)
    sim.wait(removing)
    sim.restart()
    assert committed(sim) == [0]


class Link:
    """A connection of producers."""

    def probe(self) -> Pending[bool]:
        return settled(True)


def test_producers_subscriptions_and_transactions_part_from_them(sim: SimulatedBroker) -> None:
    topic, broker = filled(sim), sim.broker
    told: list[MillstreamError] = []
    producer = Producer(
        name="p", connection=Link(), number=1, epoch=0, mode=AccessMode.EXCLUSIVE, displaced=told.append
    )
    sim.wait(broker.producers.connect(topic.id, 1, producer))
    subscription = sim.wait(broker.subscriptions.create(topic, 1, "s", StartAt.EARLIEST))
    number = sim.wait(broker.transactions.begin(60_000))
    sim.wait(broker.transactions.add_partitions(number, [(topic, 0), (topic, 1)]))
    broker.transactions.wrote(number, topic.partitions[1], 0, 1)
    sim.wait(broker.topics.remove_partitions(topic, 1))
    assert [type(error) for error in told] == [UnknownTopic]
    assert subscription.is_over
    assert list(broker.transactions.find(number).partitions) == [(topic.id, 0)]
    sim.wait(broker.transactions.end(number, commit=False))
    sim.wait(broker.topics.add_partitions(topic, 2))
    assert broker.subscriptions.names(topic, 1) == []
    assert list(broker.producers.of(topic.id, 1)) == []
    append(topic.partitions[1])
    assert not topic.partitions[1].is_aborted(0)
    sim.restart()
    assert sim.broker.subscriptions.names(sim.topic(), 1) == []
    assert not sim.topic().partitions[1].is_aborted(0)
