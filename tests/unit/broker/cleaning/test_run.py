"""What a run makes of damage, of open and aborted transactions, of deletions, and of other protocols' frames."""

from pathlib import Path

import pytest

from millstream.broker.transactions.aborted import transactions_of
from millstream.model.frame import read_frame_header
from millstream.sessions.pulsar.compaction import PulsarFrameRecords
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata
from millstream.wire.pulsar.stored_frame import build_frame
from tests.support.steps import keyed
from tests.unit.broker.cleaning.keyed_topic import KeyedTopic, headers_of
from tests.unit.broker.simulated_broker import append

CLEAN = {"min__cleanable__dirty__ratio": "0"}


def test_damage_stays_damage_and_keeps_tombstones_back(tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"), delete__retention__ms="0", **CLEAN)
    topic.put_each(b"a", b"b", b"a", b"b")
    topic.seal()
    topic.put((b"a", None))
    topic.put_each(b"c", b"c", b"c")
    topic.seal()
    path = topic.log.sealed_segments[1].log_path
    assert topic.log.sealed_segments[1].base_offset == 2
    topic.broker.files.flip_bit(path, 8 * 100)
    topic.clean(3)
    assert topic.keyed() == [(3, b"b"), (4, b"a"), (7, b"c")], "what stood at 2 is lost, and nothing else"
    assert topic.log.sealed_segments[1].base_offset == 2, "the damaged segment is where it was"
    hole = topic.log.sealed_segments[1].index.holes[0]
    assert (hole.first_offset, hole.next_offset) == (2, 3)
    topic.restart()
    topic.clean(3)
    assert (4, b"a", None) in topic.left(), "it might be what keeps a record from coming back"


def test_damage_that_a_run_meets_where_nothing_changes(tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"), delete__retention__ms="0", **CLEAN)
    topic.put_each(b"a", b"b", b"c", b"d")
    topic.seal()
    topic.clean()
    topic.put((b"a", None))
    topic.put_each(b"x", b"x", b"x")
    topic.seal()
    path, bit = topic.log.sealed_segments[0].log_path, 8 * 100
    topic.broker.files.flip_bit(path, bit)
    topic.clean(4)
    assert topic.keyed() == [(1, b"b"), (2, b"c"), (3, b"d"), (4, b"a"), (7, b"x")]
    topic.broker.files.flip_bit(path, bit)
    topic.restart()
    assert {key: value for _, key, value in topic.left()}[b"a"] is None, "what can be read again does not come back"


def test_a_damaged_frame_that_a_run_meets_first(tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"), **CLEAN)
    topic.put_each(*[b"a", b"b"] * 6)
    topic.seal()
    segments = topic.log.sealed_segments
    topic.broker.files.flip_bit(segments[-1].log_path, 8 * 100)
    topic.clean(3)
    assert topic.broker.broker.cleaner.figures.failures == 0
    assert topic.keyed() == [(8, b"a"), (11, b"b")], "10 is lost, so that 8 is the last of its key"
    assert not [name for name in topic.files() if name.endswith(".new")]


def test_nothing_behind_an_open_transaction_is_cleaned() -> None:
    topic = KeyedTopic(**CLEAN)
    partition = topic.broker.topic().partitions[0]
    topic.put_each(b"a", b"a", b"a", b"a")
    topic.seal()
    offset = topic.put((b"a", b"open"))
    transactions_of(partition).wrote(1, offset, offset + 1)
    topic.put_each(b"a", b"a", b"a")
    topic.seal()
    topic.clean(3)
    assert topic.keyed() == [(n, b"a") for n in (3, 4, 5, 6, 7)]
    transactions_of(partition).end(1, commit=False)
    topic.clean(3)
    assert topic.keyed() == [(7, b"a")]


def test_an_aborted_record_supersedes_nothing() -> None:
    topic = KeyedTopic(**CLEAN)
    transactions = transactions_of(topic.broker.topic().partitions[0])
    topic.put((b"a", b"1"), (b"b", b"1"))
    offset = topic.put((b"a", b"2"))
    transactions.wrote(1, offset, offset + 1)
    transactions.end(1, commit=False)
    topic.put((b"b", b"2"))
    topic.seal()
    topic.clean()
    assert topic.left() == [(0, b"a", b"1"), (3, b"b", b"2")]


def test_records_that_are_deleted_meanwhile(tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"), **CLEAN)
    topic.put_each(*[b"%d" % (n % 7) for n in range(60)])
    topic.seal()
    topic.flush()
    broker = topic.broker
    broker.runtime.hold("upkeep")
    broker.pass_ms(15_000)
    deleted = broker.broker.delete_records(broker.topic().partitions[0], 57)
    broker.runtime.release("upkeep")
    assert broker.wait(deleted) == 57
    topic.clean(3)
    assert [offset for offset, _ in topic.keyed()][-3:] == [57, 58, 59]
    topic.restart()
    assert topic.log.start_offset == 57
    topic.broker.pass_ms(120_000)
    assert topic.log.segment_count <= 3


@pytest.mark.parametrize("steps", range(1, 40, 3))
@pytest.mark.parametrize("by_retention", [False, True])
def test_segments_that_go_in_any_step_of_a_run(steps: int, by_retention: bool, tmp_path: Path) -> None:
    policy = {"cleanup__policy": "compact,delete"} if by_retention else {}
    topic = KeyedTopic(str(tmp_path / "db"), segment__bytes="1000", **CLEAN, **policy)
    now_ms = topic.broker.runtime.now_ms()
    for key in [b"%d" % n for n in range(30)] + [b"%d" % n for n in range(0, 30, 3)]:
        topic.put((key, b"v" * 300), timestamp_ms=now_ms)
    topic.seal()
    broker = topic.broker
    is_held = False

    def take() -> None:
        nonlocal is_held
        is_held = topic.log.sealed_segments[0].pinned  # then retention comes another time
        if by_retention:
            topic.log.settings.retention_bytes = 6000
            broker.broker._upkeep()
            topic.log.settings.retention_bytes = -1
        else:
            broker.broker.delete_records(broker.topic().partitions[0], 20)

    topic.clean_meanwhile(steps, take)
    topic.clean(2)
    assert broker.broker.cleaner.figures.failures == 0
    start_offset, left = topic.log.start_offset, topic.left()
    assert start_offset > 0 or (by_retention and is_held)
    topic.restart()
    assert topic.log.start_offset == start_offset
    assert topic.left() == left
    assert not [name for name in topic.files() if name.endswith(".new")]


@pytest.mark.parametrize("steps", range(1, 90, 4))
def test_nothing_is_read_of_a_topic_that_goes(steps: int) -> None:
    topic = KeyedTopic(segment__bytes="200000", **CLEAN)
    for n in range(12):
        topic.put((b"%d" % (n % 5), b"v" * 60_000))
    topic.seal()
    broker, reads = topic.broker, [0, 0]

    def go() -> None:
        broker.runtime.hold("upkeep")  # so that the files are still there
        broker.broker.delete_topic(broker.topic())
        reads[0] = broker.files.calls["read"]

    topic.clean_meanwhile(steps, go)
    reads[1] = broker.files.calls["read"]
    assert reads[0] == reads[1], "each would keep the space of a file that is gone"


def test_a_policy_that_changes_ends_a_run() -> None:
    topic = KeyedTopic(segment__bytes="1000", **CLEAN)
    topic.put_each(*(b"%d" % n for n in [*range(60), *range(0, 60, 3)]), value=b"v" * 300)
    topic.seal()
    broker = topic.broker

    broker.runtime.hold("upkeep")
    topic.clean()
    while len(topic.left()) > 75:
        broker.runtime.release("upkeep")
        broker.runtime.step()
        broker.runtime.hold("upkeep")
    broker.wait(broker.broker.topics.set_configs(broker.topic(), {"cleanup.policy": "delete", "retention.ms": "-1"}))
    broker.runtime.release("upkeep")
    broker.pass_ms(15_000)
    left = topic.left()
    assert 60 < len(left) < 80, "in the middle of it"
    topic.clean(2)
    assert topic.left() == left
    assert broker.broker.cleaner.figures.failures == 0
    assert not [name for name in topic.files() if name.endswith(".new")]


def test_a_gap_between_segments_stays_between_segments(tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"), **CLEAN)
    topic.put_each(b"a", b"b", b"a", b"b", b"c", b"c", b"d")
    topic.seal()
    files, cut = topic.broker.files, topic.log.sealed_segments[1]
    assert (cut.base_offset, cut.next_offset) == (2, 4)
    topic.broker.kill()
    file = files.open(cut.log_path)
    file.truncate(cut.log_bytes // 2)
    file.close()
    topic.start_again()
    topic.log.settings.segment_bytes = 10_000
    topic.clean()
    assert topic.broker.broker.cleaner.figures.failures == 0
    assert topic.keyed() == [(1, b"b"), (2, b"a"), (5, b"c"), (6, b"d")]
    assert [segment.base_offset for segment in topic.log.sealed_segments] == [0, 4]


def test_tombstones_that_are_to_stay_for_ever() -> None:
    topic = KeyedTopic(delete__retention__ms=str(2**63 - 1), **CLEAN)
    topic.put((b"a", b"1"))
    topic.put((b"a", None), timestamp_ms=topic.broker.runtime.now_ms() + 60_000)
    topic.seal()
    topic.clean()
    assert topic.left() == [(1, b"a", None)]
    (last,) = [header for header in headers_of(topic.frames()) if header.record_count]
    assert last.delete_horizon_ms == 2**63 - 1


def test_a_run_lets_go_of_the_indexes_that_it_reads() -> None:
    topic = KeyedTopic(segment__bytes="1000", **CLEAN)
    topic.put_each(*(b"%d" % n for n in range(30)), value=b"v" * 600)
    topic.seal()
    topic.clean()
    assert topic.broker.broker.cleaner.figures.runs == 1
    assert sum(segment._index is not None for segment in topic.log.sealed_segments) <= 4


def test_entries_of_pulsar_clients() -> None:
    topic = KeyedTopic(**CLEAN)
    partition = topic.broker.topic().partitions[0]

    def publish(key: str, content: bytes) -> None:
        metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, partition_key=key.encode())
        data = memoryview(encode_entry(metadata, content))
        append(partition, bytearray(build_frame(data, check_entry(data))))

    publish("a", b"1")
    topic.put((b"a", b"2"), (b"b", b"2"))
    publish("b", b"3")
    publish("c", b"3")
    publish("c", b"")
    topic.seal()
    topic.clean()
    headers = headers_of(topic.frames())
    assert [(one.base_offset, one.record_count, one.magic) for one in headers] == [
        (0, 0, 2),
        (1, 1, 2),
        (3, 1, 4),
        (4, 0, 2),
        (5, 1, 4),
    ]
    assert headers[-1].delete_horizon_ms is not None
    (found,) = keyed(PulsarFrameRecords(), topic.frames()[-1])
    assert (found.key, found.deletes) == (b"c", True)


def test_pulsars_own_compaction_of_the_same_topic() -> None:
    topic = KeyedTopic(**CLEAN)
    topic.put_each(*[b"a", b"b"] * 5, b"c")
    topic.seal()
    topic.clean()
    broker = topic.broker
    compaction = broker.broker.compaction
    broker.wait(compaction.compact(broker.topic(), 0, PulsarFrameRecords()))
    data, _ = compaction.view(broker.topic(), 0).read(0, 10_000)
    assert read_frame_header(data).base_offset == 8
    assert compaction.status(broker.topic(), 0).records == 3


def test_what_is_known_of_producers_outlives_everything(tmp_path: Path) -> None:
    topic = KeyedTopic(str(tmp_path / "db"), **CLEAN)
    for sequence in range(30):
        topic.put((b"a", b"v" * 50), producer=(7, 0, sequence))
    topic.seal()
    topic.clean()
    known = topic.log.producers.encode()
    assert topic.keyed() == [(29, b"a")]
    topic.restart()
    assert topic.log.producers.encode() == known
    topic.broker.kill()
    for name in [name for name in topic.files() if name.endswith(".index")]:
        topic.broker.files.remove(f"{topic.log.directory}/{name}")
    topic.start_again()
    (producer,) = topic.log.producers.latest()
    assert producer[:2] == (7, 0)
    assert producer[2] is not None
    assert producer[2].last_sequence == 29
    for batch_offset in range(25, 30):
        assert topic.log.producers.remembers(7, batch_offset)


def test_the_address_of_what_is_not_touched_stays() -> None:
    """An unchanged segment is not written anew, and one that changes is only where something goes."""
    topic = KeyedTopic(segment__bytes="1000", **CLEAN)
    topic.put_each(*(b"%d" % n for n in range(30)), value=b"v" * 300)
    topic.seal()
    topic.clean()
    before = {segment.base_offset: segment for segment in topic.log.sealed_segments}
    topic.put_each(b"20", value=b"v" * 900)
    topic.seal()
    topic.clean()
    after = {segment.base_offset: segment for segment in topic.log.sealed_segments}
    changed = [base for base, segment in after.items() if before.get(base) is not segment]
    assert len(changed) <= 2, changed
    assert topic.broker.broker.cleaner.figures.before_bytes < 4000
