"""Telling messages that come again from new ones, over restarts too."""

from pathlib import Path

import pytest

from millstream.broker.deduplication import Deduplicator, Verdict
from millstream.broker.topics import Topic
from millstream.model.frame import FrameHeader
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import SimulatedBroker, append


def writer_of(header: FrameHeader, frame: memoryview) -> tuple[str, int] | None:
    """In these tests a frame's producer id and base sequence stand for a name and a sequence id."""
    return (str(header.producer_id), header.base_sequence) if header.producer_id >= 0 else None


@pytest.fixture
def sim(tmp_path: Path) -> SimulatedBroker:
    return SimulatedBroker(str(tmp_path / "metadata.sqlite"))


def opened(sim: SimulatedBroker, topic: Topic | None = None) -> Deduplicator:
    topic = sim.topic() if topic is None else topic
    return sim.broker.deduplication.of(topic.id, topic.partitions[0], writer_of)


def send(sim: SimulatedBroker, name: int, sequence: int) -> Verdict:
    """Send a message as a session does."""
    deduplicator = opened(sim)
    verdict = deduplicator.judge(str(name), sequence)
    if verdict is Verdict.NEW:
        frame = batch(b"value", producer_id=name, sequence=sequence)
        appended = append(sim.topic().partitions[0], frame, all_replicas=True)
        deduplicator.pushed(str(name), sequence)
        sim.runtime.run()
        deduplicator.persisted(str(name), sequence, appended.base_offset + 1)
    return verdict


def test_what_comes_again_is_told(sim: SimulatedBroker) -> None:
    sim.create()
    assert [send(sim, 1, n) for n in (0, 1, 1, 0, 2)] == [
        Verdict.NEW,
        Verdict.NEW,
        Verdict.DUPLICATE,
        Verdict.DUPLICATE,
        Verdict.NEW,
    ]
    assert send(sim, 2, 0) is Verdict.NEW
    assert (opened(sim).last_sequence("1"), opened(sim).last_sequence("3")) == (2, -1)


def test_what_is_not_safe_yet_is_neither_new_nor_a_duplicate(sim: SimulatedBroker) -> None:
    deduplicator = opened(sim, sim.create())
    deduplicator.pushed("a", 5)
    assert (deduplicator.judge("a", 5), deduplicator.judge("a", 6)) == (Verdict.UNKNOWN, Verdict.NEW)
    deduplicator.failed("a")
    assert deduplicator.judge("a", 5) is Verdict.NEW


def test_a_crash_forgets_nothing_that_was_answered(sim: SimulatedBroker) -> None:
    sim.create()
    for n in range(5):
        send(sim, 1, n)
    sim.kill()
    sim.start()
    assert [send(sim, 1, n) for n in (4, 5)] == [Verdict.DUPLICATE, Verdict.NEW]
    for n in range(6, 1200):  # over the number at which they are saved
        send(sim, 1, n)
    sim.kill()
    sim.start()
    assert [send(sim, 1, n) for n in (1199, 1200)] == [Verdict.DUPLICATE, Verdict.NEW]


def test_what_was_written_before_it_was_wanted_does_not_count(sim: SimulatedBroker) -> None:
    topic = sim.create()
    append(topic.partitions[0], batch(b"value", producer_id=1, sequence=0))
    assert opened(sim).judge("1", 0) is Verdict.NEW


def test_a_silent_producer_is_forgotten(sim: SimulatedBroker) -> None:
    sim.create()
    send(sim, 1, 0)
    sim.pass_ms(361 * 60 * 1000)
    for n in range(1001):
        send(sim, 2, n)
    assert send(sim, 1, 0) is Verdict.NEW


def test_a_topic_made_anew_knows_nothing(sim: SimulatedBroker) -> None:
    topic = sim.create()
    send(sim, 1, 0)
    sim.wait(sim.broker.delete_topic(topic))
    sim.create()
    assert send(sim, 1, 0) is Verdict.NEW
    assert len(sim.broker.documents.of_kind("deduplication")) == 1


def test_a_failure_does_not_forget_an_earlier_message_that_arrives_after_it(sim: SimulatedBroker) -> None:
    deduplicator = opened(sim, sim.create())
    deduplicator.pushed("a", 5)  # on its way to the disk
    deduplicator.pushed("a", 6)
    deduplicator.failed("a")  # 6 was refused
    deduplicator.persisted("a", 5, 1)
    assert (deduplicator.judge("a", 5), deduplicator.judge("a", 6)) == (Verdict.DUPLICATE, Verdict.NEW)
    assert deduplicator.last_sequence("a") == 5
