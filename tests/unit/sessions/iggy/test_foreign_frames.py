"""What other protocols wrote, polled in any dialect: translated once, whatever part of a frame is asked for."""

import pytest

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.messages.batches import Strategy
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import append
from tests.unit.broker.transactions.bank import transactional
from tests.unit.sessions.iggy.conversation import IggyBroker


@pytest.mark.parametrize("dialect", [Dialect.B2, Dialect.C1, Dialect.C3, Dialect.D])
def test_a_large_batch_is_polled_in_parts(dialect: Dialect) -> None:
    server = IggyBroker()
    partition = server.create("orders").partitions[0]
    append(partition, batch(b"large", 25))
    append(partition, batch(b"small", 2))
    client = server.connect(dialect)
    frames = server.broker.translated_frames
    found, sizes = [], set()
    for offset in range(0, 30, 7):
        _, messages = client.poll(stream="default", topic="orders", strategy=Strategy.OFFSET, value=offset, count=7)
        found += [(one["offset"], one["payload"]) for one in messages]
        sizes.add(frames.size_bytes)
    assert found == [(offset, b"large" if offset < 25 else b"small") for offset in range(27)]
    assert len(sizes) == 2, "one translation for each of the batches"


@pytest.mark.parametrize("dialect", [Dialect.A, Dialect.B2, Dialect.C1, Dialect.C3, Dialect.D])
def test_many_small_batches_are_polled_in_parts(dialect: Dialect) -> None:
    server = IggyBroker()
    partition = server.create("orders").partitions[0]
    for number in range(300):
        append(partition, batch(b"%d" % number, 1 + number % 2))
    values = [b"%d" % number for number in range(300) for _ in range(1 + number % 2)]
    client = server.connect(dialect)
    for count in (7, 100, 1000):
        found: list[tuple[int, bytes]] = []
        while len(found) < len(values):
            _, messages = client.poll(
                stream="default", topic="orders", strategy=Strategy.OFFSET, value=len(found), count=count
            )
            assert 0 < len(messages) <= count
            found += [(one["offset"], one["payload"]) for one in messages]
        assert found == list(enumerate(values))


def test_the_last_messages_are_the_last_that_may_be_read() -> None:
    """Of those behind an undecided transaction nobody knows yet."""
    server = IggyBroker()
    topic = server.create("orders")
    partition = topic.partitions[0]
    for number in range(3):
        append(partition, batch(b"%d" % number))
    transactions = server.broker.transactions
    number = server.wait(transactions.begin(60_000))
    server.wait(transactions.add_partitions(number, [(topic, 0)]))
    base_offset = append(partition, transactional(number)).base_offset
    transactions.wrote(number, partition, base_offset, base_offset + 1)
    append(partition, batch(b"behind"))
    assert (partition.stable_offset, partition.log.end_offset) == (3, 5)
    client = server.connect(Dialect.A)
    _, messages = client.poll(stream="default", topic="orders", strategy=Strategy.LAST, count=2)
    assert [one["payload"] for one in messages] == [b"1", b"2"]
