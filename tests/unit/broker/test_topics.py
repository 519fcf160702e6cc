"""Topics: making, changing and deleting them, also at the same time, and with a store or a disk that fails."""

import errno
from pathlib import Path
from typing import Any

import pytest

from millstream.broker.errors import (
    BatchTooLarge,
    InvalidConfig,
    InvalidPartitionCount,
    TopicExists,
    TopicTerminated,
    UnknownTopic,
)
from millstream.broker.topics import PARTITIONS_MAX, TOPICS_LANE, Topic
from millstream.model.frame import read_frame_header
from millstream.model.pending import Pending
from millstream.model.topic_name import TopicName
from millstream.storage.flusher import FLUSH_LANE
from millstream.storage.metadata import METADATA_LANE, MetadataFailed
from millstream.storage.segment import Segment
from tests.support.batches import batch, frames_of
from tests.support.simulated_files import Fault
from tests.unit.broker.simulated_broker import SimulatedBroker, append

ORDERS = TopicName.from_flat("orders")


@pytest.fixture
def sim(tmp_path: Path) -> SimulatedBroker:
    return SimulatedBroker(str(tmp_path / "metadata.sqlite"))


def names(sim: SimulatedBroker) -> list[str]:
    return sorted(topic.name.flat for topic in sim.broker.topics)


def indexes(topic: Topic) -> list[int]:
    return [partition.index for partition in topic.partitions]


def test_a_topic_is_found_by_name_and_by_id_and_after_a_restart(sim: SimulatedBroker) -> None:
    made = sim.create("orders", 3, retention__ms="5000")
    topics = sim.broker.topics
    assert topics.by_flat_name("orders") is topics.by_id(made.id) is made
    assert (indexes(made), made.configs) == ([0, 1, 2], {"retention.ms": "5000"})
    sim.restart()
    found = sim.topic()
    assert (found.id, found.name, found.created_ms) == (made.id, ORDERS, made.created_ms)
    assert (indexes(found), found.configs) == ([0, 1, 2], {"retention.ms": "5000"})
    assert found.partitions[2].log.settings.retention_ms == 5000


def test_a_topic_is_there_only_once_it_lasts(sim: SimulatedBroker) -> None:
    sim.runtime.hold(METADATA_LANE)
    pending = sim.broker.topics.create(ORDERS, 1, {})
    sim.runtime.run()
    assert not pending.done
    assert names(sim) == []
    sim.runtime.release(METADATA_LANE)
    assert sim.wait(pending) is sim.topic()


@pytest.mark.parametrize(
    ("partitions", "configs", "error"),
    [
        (0, {}, InvalidPartitionCount),
        (-1, {}, InvalidPartitionCount),
        (PARTITIONS_MAX + 1, {}, InvalidPartitionCount),
        (1, {"no.such.setting": "1"}, InvalidConfig),
        (1, {"retention.ms": "-2"}, InvalidConfig),
    ],
)
def test_what_cannot_be_made(
    sim: SimulatedBroker, partitions: int, configs: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        sim.broker.topics.create(ORDERS, partitions, configs)
    sim.create("orders")


def test_of_two_who_make_one_topic_one_is_refused(sim: SimulatedBroker) -> None:
    first = sim.broker.topics.create(ORDERS, 1, {})
    with pytest.raises(TopicExists):
        sim.broker.topics.create(ORDERS, 2, {})
    assert len(sim.wait(first).partitions) == 1
    with pytest.raises(TopicExists):
        sim.broker.topics.create(ORDERS, 2, {})


def test_two_names_that_are_one_to_a_flat_protocol_collide(sim: SimulatedBroker) -> None:
    sim.create("sales.orders")
    with pytest.raises(TopicExists):
        sim.broker.topics.create(TopicName("public", "sales", "orders"), 1, {})


def test_all_who_ask_for_a_topic_at_once_get_the_same(sim: SimulatedBroker) -> None:
    asked = [sim.broker.topics.get_or_create(ORDERS) for _ in range(3)]
    made = sim.wait(asked[0])
    assert all(pending.result() is made for pending in asked)
    assert sim.broker.topics.get_or_create(ORDERS).result() is made


def test_a_topic_that_could_not_be_stored_is_not_there(sim: SimulatedBroker) -> None:
    sim.store.failing = True
    pending = sim.broker.topics.create(ORDERS, 1, {})
    sim.runtime.run()
    with pytest.raises(MetadataFailed):
        pending.result()
    assert names(sim) == []
    sim.store.failing = False
    made = sim.create("orders", 2)
    sim.restart()
    assert (names(sim), sim.topic().id) == (["orders"], made.id)


def test_a_topic_whose_files_could_not_be_made_does_not_come_back(sim: SimulatedBroker) -> None:
    sim.files.inject(Fault("open", code=errno.EIO))
    pending = sim.broker.topics.create(ORDERS, 1, {})
    sim.runtime.run()
    with pytest.raises(OSError, match="Input/output"):
        pending.result()
    sim.restart()
    assert names(sim) == []
    made = sim.create("orders")
    sim.restart()
    assert sim.topic().id == made.id


# More partitions


def test_partitions_are_added(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 1)
    sim.wait(sim.broker.topics.add_partitions(topic, 3))
    assert indexes(topic) == [0, 1, 2]
    append(topic.partitions[2])
    sim.restart()
    assert indexes(sim.topic()) == [0, 1, 2]
    assert sim.topic().partitions[2].log.end_offset == 1


@pytest.mark.parametrize("count", [-1, 0, 1, 2, PARTITIONS_MAX + 1])
def test_partitions_that_cannot_be_added(sim: SimulatedBroker, count: int) -> None:
    topic = sim.create("orders", 2)
    with pytest.raises(InvalidPartitionCount):
        sim.broker.topics.add_partitions(topic, count)


def test_partitions_are_added_by_one_at_a_time(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 1)
    first = sim.broker.topics.add_partitions(topic, 3)
    with pytest.raises(InvalidPartitionCount, match="being changed"):
        sim.broker.topics.add_partitions(topic, 4)
    sim.wait(first)
    sim.wait(sim.broker.topics.add_partitions(topic, 4))
    assert indexes(topic) == [0, 1, 2, 3]


def test_settings_changed_while_partitions_are_added_take_nothing_back(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 1)
    adding = sim.broker.topics.add_partitions(topic, 3)
    sim.wait(sim.broker.topics.set_configs(topic, {"retention.ms": "77"}))
    assert adding.done
    assert {partition.log.settings.retention_ms for partition in topic.partitions} == {77}
    sim.restart()
    assert (indexes(sim.topic()), sim.topic().configs) == ([0, 1, 2], {"retention.ms": "77"})


def test_partitions_that_could_not_be_stored_are_not_added(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 1)
    sim.store.failing = True
    pending = sim.broker.topics.add_partitions(topic, 3)
    sim.runtime.run()
    with pytest.raises(MetadataFailed):
        pending.result()
    sim.store.failing = False
    assert indexes(topic) == [0]
    sim.wait(sim.broker.topics.add_partitions(topic, 2))
    assert indexes(topic) == [0, 1]


@pytest.mark.parametrize("held", [METADATA_LANE, TOPICS_LANE, FLUSH_LANE])
def test_a_topic_deleted_while_it_grows_leaves_no_files(sim: SimulatedBroker, held: str) -> None:
    topic = sim.create("orders", 1)
    sim.runtime.hold(held)
    adding = sim.broker.topics.add_partitions(topic, 3)
    sim.runtime.run()
    deleting = sim.broker.delete_topic(topic)
    sim.runtime.run()
    sim.runtime.release(held)
    sim.wait(deleting)
    assert adding.done
    assert sim.files.list_directory("/data/topics") == []


# Settings


def test_settings_are_obeyed_at_once_and_kept(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 2)
    pending = sim.broker.topics.set_configs(topic, {"max.message.bytes": "100", "segment.bytes": "5000"})
    for partition in topic.partitions:
        assert partition.settings.batch_bytes_max == 100
        assert partition.log.settings.segment_bytes == 5000
    sim.wait(pending)
    sim.restart()
    assert sim.topic().configs == {"max.message.bytes": "100", "segment.bytes": "5000"}
    sim.wait(sim.broker.topics.set_configs(sim.topic(), {}))
    assert sim.topic().partitions[0].settings.batch_bytes_max == 1024 * 1024 + 12


def test_bad_settings_change_nothing(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 1, retention__ms="5")
    for configs in ({"retention.ms": "x"}, {"retention": "1"}, {"retention.ms": "1", "segment.bytes": "0"}):
        with pytest.raises(InvalidConfig):
            sim.broker.topics.set_configs(topic, configs)
    assert topic.configs == {"retention.ms": "5"}
    assert topic.partitions[0].log.settings.retention_ms == 5


def test_settings_that_could_not_be_stored_are_taken_back(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 1, retention__ms="5")
    sim.store.failing = True
    pending = sim.broker.topics.set_configs(topic, {"retention.ms": "6"})
    sim.runtime.run()
    with pytest.raises(MetadataFailed):
        pending.result()
    assert topic.configs == {"retention.ms": "5"}
    assert topic.partitions[0].log.settings.retention_ms == 5


# Deleting


def test_a_deleted_topic_is_gone_with_its_files_and_its_name_is_free(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 2)
    append(topic.partitions[1])
    pending = sim.broker.delete_topic(topic)
    assert names(sim) == []
    assert sim.broker.topics.by_id(topic.id) is None
    sim.wait(pending)
    assert sim.files.list_directory("/data/topics") == []
    again = sim.create("orders")
    assert again.id != topic.id
    assert again.partitions[0].log.end_offset == 0
    sim.restart()
    assert sim.topic().id == again.id


def test_a_topic_is_deleted_once(sim: SimulatedBroker) -> None:
    topic = sim.create()
    sim.broker.delete_topic(topic)
    with pytest.raises(UnknownTopic):
        sim.broker.delete_topic(topic)


def test_a_name_is_free_only_once_its_topic_cannot_come_back(sim: SimulatedBroker) -> None:
    topic = sim.create()
    pending = sim.broker.delete_topic(topic)
    with pytest.raises(TopicExists):
        sim.broker.topics.create(ORDERS, 1, {})
    with pytest.raises(TopicExists):
        sim.broker.topics.get_or_create(ORDERS)
    sim.wait(pending)
    sim.create()


def test_a_topic_that_could_not_be_deleted_is_there_as_before(sim: SimulatedBroker) -> None:
    topic = sim.create("orders", 1)
    append(topic.partitions[0])
    sim.store.failing = True
    pending = sim.broker.delete_topic(topic)
    with pytest.raises(UnknownTopic):
        append(topic.partitions[0])
    sim.runtime.run()
    with pytest.raises(MetadataFailed):
        pending.result()
    sim.store.failing = False
    assert sim.topic() is topic
    assert append(topic.partitions[0]).base_offset == 1
    sim.restart()
    assert sim.topic().partitions[0].log.end_offset == 2


def test_an_append_to_a_topic_that_is_being_deleted_is_refused(sim: SimulatedBroker) -> None:
    topic = sim.create()
    news = []
    topic.partitions[0].watch(lambda: news.append(topic.partitions[0].deleted))
    sim.broker.delete_topic(topic)
    with pytest.raises(UnknownTopic):
        append(topic.partitions[0])
    sim.runtime.run()
    assert news == [True]


def test_a_flush_that_is_under_way_keeps_the_files_until_it_is_over(sim: SimulatedBroker) -> None:
    topic = sim.create()
    sim.runtime.hold(FLUSH_LANE)
    append(topic.partitions[0], all_replicas=True)
    durable = topic.partitions[0].durable()
    assert durable is not None
    sim.runtime.run()
    deleting = sim.broker.delete_topic(topic)
    sim.runtime.run()
    assert deleting.done
    assert len(sim.files.list_directory("/data/topics")) == 1
    sim.runtime.release(FLUSH_LANE)
    sim.wait(durable)
    assert sim.files.list_directory("/data/topics") == []


def test_what_a_reader_holds_survives_the_deletion(sim: SimulatedBroker) -> None:
    topic = sim.create()
    frame = batch(b"kept")
    append(topic.partitions[0], frame)
    data, _ = topic.partitions[0].log.read(0, 1000)
    sim.wait(sim.broker.delete_topic(topic))
    assert list(frames_of(data)) == [bytes(frame)]


def test_files_that_belong_to_no_topic_are_left_alone(sim: SimulatedBroker) -> None:
    made = sim.create()
    stranger = "00000000-0000-4000-8000-000000000001"
    sim.files.make_directory(f"/data/topics/{stranger}/0")
    sim.restart()
    assert names(sim) == ["orders"]
    assert sim.files.list_directory("/data/topics") == sorted([stranger, str(made.id)])


def test_a_deletion_that_was_interrupted_is_ended_at_the_next_start(sim: SimulatedBroker) -> None:
    topic = sim.create()
    sim.runtime.hold(FLUSH_LANE)
    deleting = sim.broker.delete_topic(topic)
    sim.runtime.run()
    assert deleting.done
    sim.kill()
    assert len(sim.files.list_directory("/data/topics")) == 1
    sim.start()
    assert (names(sim), sim.files.list_directory("/data/topics")) == ([], [])


def test_ids_never_look_like_an_option(sim: SimulatedBroker) -> None:
    ids = [sim.broker.topics._new_id() for _ in range(1000)]
    assert all(one.version == 4 and one.bytes[0] >> 2 != 62 for one in ids)


@pytest.mark.parametrize("grow", [False, True])
def test_what_was_opened_before_one_failed_is_closed(
    sim: SimulatedBroker, grow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = sim.create("sales")
    opened: list[Segment] = []
    open_segment = Segment.open

    def remember(segment: Segment) -> None:
        open_segment(segment)
        opened.append(segment)

    monkeypatch.setattr(Segment, "open", remember)
    sim.files.inject(Fault("open", at=4, code=errno.EMFILE))
    done: list[Pending[Any]] = []
    if grow:
        done.append(sim.broker.topics.add_partitions(topic, 10))
    else:
        done.append(sim.broker.topics.create(ORDERS, 9, {}))
    sim.runtime.run()
    with pytest.raises(OSError, match="Too many open files"):
        done[0].result()
    assert [segment.is_open for segment in opened] == [False] * 3
    assert len(topic.partitions) == 1


def test_how_a_topic_was_made_and_ended_outlasts_a_crash(sim: SimulatedBroker) -> None:
    made = sim.wait(sim.broker.topics.create(ORDERS, 3, {}, partitioned=True))
    append(made.partitions[1])
    sim.wait(sim.broker.topics.terminate(made, 1))
    sim.kill()
    sim.start()
    found = sim.topic()
    assert (found.partitioned, found.terminated) == (True, [1])
    with pytest.raises(TopicTerminated):
        append(found.partitions[1])
    append(found.partitions[0])
    sim.wait(sim.broker.delete_topic(found))
    again = sim.create()
    sim.kill()
    sim.start()
    assert (again.partitioned, sim.topic().partitioned, sim.topic().terminated) == (False, False, [])


def test_a_full_name_finds_its_own_topic_only(sim: SimulatedBroker) -> None:
    sales = TopicName("public", "sales", "orders")
    made = sim.wait(sim.broker.topics.create(sales, 1, {}))
    topics = sim.broker.topics
    assert topics.by_name(sales) is topics.by_flat_name("sales.orders") is made
    assert topics.by_name(TopicName.from_flat("sales.orders")) is None
    with pytest.raises(TopicExists):
        topics.create(TopicName.from_flat("sales.orders"), 1, {})


def test_a_protocol_may_have_a_size_limit_of_its_own(sim: SimulatedBroker) -> None:
    partition = sim.create(max__message__bytes="100").partitions[0]
    frame = memoryview(batch(b"x" * 200))
    with pytest.raises(BatchTooLarge):
        append(partition, bytearray(frame))
    partition.append(frame, read_frame_header(frame), all_replicas=False, bytes_max=300)
    with pytest.raises(BatchTooLarge):
        partition.append(frame, read_frame_header(frame), all_replicas=False, bytes_max=200)
