"""What a run makes of damage, of open and aborted transactions, of deletions, and of other protocols' frames."""

from pathlib import Path

from millstream.broker.transactions.aborted import transactions_of
from millstream.model.frame import read_frame_header
from millstream.sessions.pulsar.compaction import PulsarFrameRecords
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata
from millstream.wire.pulsar.stored_frame import build_frame
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
    (found,) = PulsarFrameRecords().keys(headers[-1], memoryview(topic.frames()[-1]))
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
