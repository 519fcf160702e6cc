"""Partitions that go: from the end, with what was stored of them, and with news to whoever reads there."""

from pathlib import Path

import pytest

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.kinds import Consumer, Partitioning
from millstream.wire.iggy.messages.groups import GroupRequest
from millstream.wire.iggy.messages.offsets import StoreOffset
from millstream.wire.iggy.messages.topics import PartitionsRequest
from tests.unit.sessions.iggy.conversation import Conversation, IggyBroker, Outgoing

every_dialect = pytest.mark.parametrize("dialect", list(Dialect))


@pytest.fixture
def server() -> IggyBroker:
    return IggyBroker()


def resize(client: Conversation, command: str, count: int) -> None:
    client.ask(command, PartitionsRequest(stream="s1", topic="t1", count=count))


@every_dialect
def test_the_last_partitions_go_and_come_back_empty(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make(partitions=3)
    for partition in range(3):
        client.put(b"a", b"b", partitioning=Partitioning(partition))
        client.poll(partition=partition, auto_commit=True)
    resize(client, "DELETE_PARTITIONS", 2)
    assert len(server.topic("s1.t1").partitions) == 1
    assert client.values(partition=0) == [b"a", b"b"]
    late = client.sending([Outgoing(b"x")], Partitioning(1))
    assert client.refusal("SEND_MESSAGES", late) == 3007
    resize(client, "CREATE_PARTITIONS", 2)
    assert client.values(partition=2) == []
    client.put(b"c", partitioning=Partitioning(2))
    (message,) = client.poll(partition=2)[1]
    assert (message["payload"], message["offset"]) == (b"c", 0)


@every_dialect
def test_one_partition_stays(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make(partitions=3)
    for count in (3, 4):
        request = PartitionsRequest(stream="s1", topic="t1", count=count)
        assert client.refusal("DELETE_PARTITIONS", request) == (2015 if dialect is Dialect.A else 2019)
    assert client.refusal("DELETE_PARTITIONS", PartitionsRequest(stream="s1", topic="t1", count=0)) == 2015


@every_dialect
def test_groups_share_what_is_left(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make(partitions=4)
    group = client.group()
    client.ask("JOIN_CONSUMER_GROUP", GroupRequest(stream="s1", topic="t1", group=group))
    resize(client, "DELETE_PARTITIONS", 3)
    details = client.ask("GET_CONSUMER_GROUP", GroupRequest(stream="s1", topic="t1", group=group))
    assert details.group.partitions_count == 1
    assert [member.partitions for member in details.members] == [[0]]


def test_positions_of_those_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    server = IggyBroker(str(tmp_path / "metadata"))
    client = server.connect(Dialect.D)
    client.make(partitions=2)
    consumer = Consumer(False, 9)
    for partition in range(2):
        client.put(b"a", b"b", partitioning=Partitioning(partition))
        store = StoreOffset(consumer=consumer, stream="s1", topic="t1", partition=partition, offset=1)
        client.ask("STORE_CONSUMER_OFFSET", store)
    server.runtime.hold("metadata")
    positions = server.service.shared.positions
    place = server.topic("s1.t1").id, 1
    moves = [positions.put("consumer:9", place, offset) for offset in (1, 2)]
    removing = server.broker.topics.remove_partitions(server.topic("s1.t1"), 1)
    server.runtime.release("metadata")
    server.wait(removing)
    assert all(one.done for one in moves)
    assert positions.get("consumer:9", place) is None
    resize(client, "CREATE_PARTITIONS", 1)
    server.kill()
    server.start()
    positions = server.service.shared.positions
    assert (positions.get("consumer:9", place), positions.get("consumer:9", (place[0], 0))) == (None, 2)
