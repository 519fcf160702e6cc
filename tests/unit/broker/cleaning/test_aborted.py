"""What is remembered of aborted transactions once compaction has left nothing of them."""

from pathlib import Path

import pytest

from millstream.broker.transactions.aborted import ABORTED_DOCUMENT
from millstream.broker.transactions.acknowledgements import decode_document
from millstream.model.frame import frame_crc, transaction_fields
from tests.unit.broker.cleaning.keyed_topic import KeyedTopic, keyed_batch
from tests.unit.broker.simulated_broker import append

GRACE_MS = 60_000


class Ledger(KeyedTopic):
    """A compacted topic that is written in transactions."""

    def __init__(self, database: str) -> None:
        super().__init__(database, min__cleanable__dirty__ratio="0")

    def abort(self, key: bytes) -> int:
        """Write a record in a transaction that is aborted then; gives its offset."""
        broker, topic = self.broker, self.broker.topic()
        transactions = broker.broker.transactions
        number = broker.wait(transactions.begin(60_000))
        broker.wait(transactions.add_partitions(number, [(topic, 0)]))
        frame = keyed_batch([(key, b"aborted")])
        epoch, sequence = transaction_fields(number)
        frame[21:23] = (0x10).to_bytes(2, "big")
        frame[51:53] = epoch.to_bytes(2, "big")
        frame[53:57] = sequence.to_bytes(4, "big")
        frame[17:21] = frame_crc(memoryview(frame)).to_bytes(4, "big")
        offset = append(topic.partitions[0], frame).base_offset
        transactions.wrote(number, topic.partitions[0], offset, offset + 1)
        broker.wait(transactions.end(number, commit=False))
        return offset

    def remembered(self) -> list[tuple[int, int]]:
        """The ranges that partitions know of."""
        transactions = self.broker.topic().partitions[0].transactions
        return [] if transactions is None else list(transactions.aborted)

    def stored(self) -> list[tuple[int, int]]:
        """The ranges that last."""
        documents = self.broker.broker.documents.of_kind(ABORTED_DOCUMENT).values()
        return sorted(one for document in documents for one in decode_document(document))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path / "db"))


def test_what_was_aborted_is_forgotten_when_nothing_is_left_of_it(ledger: Ledger) -> None:
    ledger.put((b"a", b"1"))
    ledger.abort(b"a")
    ledger.put((b"b", b"1"))
    ledger.abort(b"b")
    ledger.seal()
    ledger.put((b"c", b"1"))
    ledger.abort(b"a")
    assert ledger.stored() == ledger.remembered() == [(1, 2), (3, 4), (5, 6)]
    ledger.clean()
    assert ledger.left()[:2] == [(0, b"a", b"1"), (2, b"b", b"1")]
    assert ledger.stored() == [(5, 6)]
    assert ledger.remembered() == [(1, 2), (3, 4), (5, 6)], "who has read it before may look at it now"
    ledger.broker.pass_ms(GRACE_MS)
    assert ledger.remembered() == [(5, 6)]
    ledger.restart()
    assert ledger.stored() == ledger.remembered() == [(5, 6)]
    ledger.seal()
    ledger.clean(6)
    assert ledger.stored() == ledger.remembered() == []
    assert ledger.left() == [(0, b"a", b"1"), (2, b"b", b"1"), (4, b"c", b"1")]


def test_a_kill_forgets_nothing_of_what_is_left(ledger: Ledger) -> None:
    for number in range(10):
        ledger.put((b"a", b"%d" % number))
        ledger.abort(b"a")
    ledger.seal()
    ledger.broker.runtime.hold("upkeep")
    ledger.clean()
    ledger.broker.runtime.release("upkeep")
    for _ in range(7):
        ledger.broker.runtime.step()
    ledger.broker.kill()
    ledger.start_again()
    assert len(ledger.remembered()) == 10
    ledger.clean(8)
    assert ledger.left() == [(18, b"a", b"9")]
    assert ledger.stored() == ledger.remembered() == []


def test_what_is_in_damaged_segments_is_remembered(ledger: Ledger) -> None:
    ledger.abort(b"x")
    ledger.put_each(b"a", b"a", b"a")
    ledger.abort(b"a")
    ledger.put_each(b"a", b"a", b"a")
    ledger.abort(b"b")
    ledger.seal()
    damaged = next(segment for segment in ledger.log.sealed_segments if segment.next_offset > 4)
    ledger.broker.files.flip_bit(damaged.log_path, 8 * 100)
    ledger.clean(6)
    assert ledger.stored() == ledger.remembered() == [(4, 5), (8, 9)]


def test_partitions_of_the_same_number_are_not_taken_for_each_other(ledger: Ledger) -> None:
    ledger.abort(b"a")
    ledger.put((b"a", b"1"))
    ledger.seal()
    ledger.clean()
    partition = ledger.broker.topic().partitions[0]
    partition.deleted = True
    ledger.broker.pass_ms(GRACE_MS)
    assert ledger.remembered() == [(0, 1)]
