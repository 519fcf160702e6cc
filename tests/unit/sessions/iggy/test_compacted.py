"""Polls of a topic that was compacted: the next message is the next that is left."""

import pytest

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.messages.batches import Strategy
from tests.unit.broker.cleaning.keyed_topic import READERS, keyed_batch
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.iggy.conversation import IggyBroker, Outgoing

BASE_MS = 1_699_999_000_000


@pytest.fixture
def server() -> IggyBroker:
    return IggyBroker(log__segment__bytes="1000", log__cleaner__min__cleanable__ratio="0")


@pytest.mark.parametrize("dialect", list(Dialect))
def test_polls_pass_over_what_is_gone(server: IggyBroker, dialect: Dialect) -> None:
    talk = server.connect(dialect)
    talk.make()
    (topic,) = server.broker.topics
    server.wait(server.broker.topics.set_configs(topic, {"cleanup.policy": "compact"}))
    server.broker.cleaner.readers.update(READERS)
    partition = topic.partitions[0]
    for n in range(0, 200, 4):
        pairs = [(b"%d" % (m % 10), b"%03d" % m) for m in range(n, n + 4)]
        append(partition, keyed_batch(pairs, BASE_MS + n))
    talk.put(Outgoing(b"no key"))
    partition.log._roll(server.runtime.now_ms())
    durable = partition.durable()
    assert durable is not None
    server.wait(durable)
    server.pass_ms(20_000)
    assert server.broker.cleaner.figures.after_bytes < server.broker.cleaner.figures.before_bytes / 5
    expected = [b"%03d" % n for n in range(190, 200)] + [b"no key"]
    assert talk.values() == expected
    assert talk.values(Strategy.OFFSET, 50, 3) == expected[:3]
    assert talk.values(Strategy.OFFSET, 195, 2) == expected[5:7]
    assert talk.values(Strategy.TIMESTAMP, (BASE_MS + 196) * 1000, 2)[0] >= b"196"
    found = [talk.values(Strategy.NEXT, count=4, auto_commit=True) for _ in range(4)]
    assert found == [expected[:4], expected[4:8], expected[8:], []]
