"""Consumer groups and stored offsets."""

import pytest

from millstream.broker.sharing import REVOCATION_MS
from millstream.storage.metadata import CommittedOffset
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.kinds import Consumer, Identifier, Partitioning
from millstream.wire.iggy.messages.batches import Strategy
from millstream.wire.iggy.messages.groups import CreateGroup, GroupRequest
from millstream.wire.iggy.messages.offsets import DeleteOffset, GetOffset, StoreOffset
from millstream.wire.iggy.messages.topics import PartitionsRequest, TopicRequest
from tests.unit.sessions.iggy.conversation import Conversation, IggyBroker, Refusal

DIALECTS = list(Dialect)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
NAMED = [one for one in DIALECTS if one > Dialect.A]
EAGER = [one for one in DIALECTS if one < Dialect.C3]


@pytest.fixture
def server() -> IggyBroker:
    return IggyBroker()


def member_of(client: Conversation, key: Identifier) -> GroupRequest:
    return GroupRequest(stream="s1", topic="t1", group=key)


def assignments(client: Conversation, key: Identifier) -> list[list[int]]:
    return [one.partitions for one in client.ask("GET_CONSUMER_GROUP", member_of(client, key)).members]


@every_dialect
def test_groups_come_and_go(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make(partitions=3)
    key = client.group()
    group = client.ask("GET_CONSUMER_GROUP", member_of(client, key)).group
    name = "" if dialect is Dialect.A else "g1"
    assert (group.id, group.partitions_count, group.members_count, group.name) == (0, 3, 0, name)
    groups = client.ask("GET_CONSUMER_GROUPS", TopicRequest(stream="s1", topic="t1")).groups
    assert [one.id for one in groups] == [0]
    again = CreateGroup(stream="s1", topic="t1", group_id=1 if dialect > Dialect.A else 0, name="g1")
    assert client.refusal("CREATE_CONSUMER_GROUP", again) == (5001 if dialect is Dialect.A else 5004)
    client.ask("DELETE_CONSUMER_GROUP", member_of(client, key))
    assert client.ask("GET_CONSUMER_GROUPS", TopicRequest(stream="s1", topic="t1")).groups == []
    gone = 5000 if dialect is Dialect.A else 5003
    assert client.refusal("JOIN_CONSUMER_GROUP", member_of(client, key)) == gone
    if dialect >= Dialect.B3:
        assert client.ask("GET_CONSUMER_GROUP", member_of(client, key)) is None
    else:
        assert client.refusal("GET_CONSUMER_GROUP", member_of(client, key)) == gone


def test_a_group_without_a_number_is_refused_where_numbers_are_all(server: IggyBroker) -> None:
    client = server.connect(Dialect.A)
    client.make()
    assert client.refusal("CREATE_CONSUMER_GROUP", CreateGroup(stream="s1", topic="t1", group_id=-1)) == 5003


@every_dialect
def test_members_share_the_partitions(server: IggyBroker, dialect: Dialect) -> None:
    one, two = server.connect(dialect), server.connect(dialect)
    one.make(partitions=3)
    key = one.group()
    one.ask("JOIN_CONSUMER_GROUP", member_of(one, key))
    assert assignments(one, key) == [[0, 1, 2]]
    two.ask("JOIN_CONSUMER_GROUP", member_of(two, key))
    eager = [[0, 2], [1]]
    assert assignments(one, key) == (eager if dialect in EAGER else [[0, 1], [2]])
    one.ask("CREATE_PARTITIONS", PartitionsRequest(stream="s1", topic="t1", count=1))
    assert assignments(one, key) == [[0, 2], [1, 3]]
    two.session.close()
    assert assignments(one, key) == [[0, 1, 2, 3]]
    one.ask("LEAVE_CONSUMER_GROUP", member_of(one, key))
    assert assignments(one, key) == []
    assert one.refusal("LEAVE_CONSUMER_GROUP", member_of(one, key)) == (5002 if dialect is Dialect.A else 5006)


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one < Dialect.D0])
def test_each_poll_goes_to_the_members_next_partition(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make(partitions=2)
    key = client.group()
    for index in range(2):
        client.put(b"a%d" % index, b"b%d" % index, partitioning=Partitioning(index))
    member = Consumer(True, key)
    nobody = 5002 if dialect is Dialect.A else 5006
    with pytest.raises(Refusal, match=str(nobody)):
        client.poll(consumer=member, partition=None)
    client.ask("JOIN_CONSUMER_GROUP", member_of(client, key))
    seen = []
    for _ in range(4):
        partition, messages = client.poll(Strategy.NEXT, count=1, consumer=member, partition=None, auto_commit=True)
        seen.append((partition, messages[0]["payload"]))
    assert seen == [(0, b"a0"), (1, b"a1"), (0, b"b0"), (1, b"b1")]


def test_what_is_being_read_is_handed_over_when_it_is_done(server: IggyBroker) -> None:
    one, two = server.connect(Dialect.C3), server.connect(Dialect.C3)
    one.make(partitions=2)
    one.group()
    one.ask("JOIN_CONSUMER_GROUP", member_of(one, "g1"))
    member = Consumer(True, "g1")
    for index in range(2):
        one.put(b"%d" % index, partitioning=Partitioning(index))
        one.poll(Strategy.NEXT, consumer=member, partition=None)
    two.ask("JOIN_CONSUMER_GROUP", member_of(two, "g1"))
    assert assignments(one, "g1") == [[0, 1], []]
    assert two.poll(Strategy.NEXT, consumer=member, partition=None)[1] == []
    store = StoreOffset(consumer=member, stream="s1", topic="t1", partition=1, offset=0)
    one.ask("STORE_CONSUMER_OFFSET", store)
    assert assignments(one, "g1") == [[0], [1]]


def test_what_is_being_read_is_handed_over_in_the_end(server: IggyBroker) -> None:
    one, two = server.connect(Dialect.D), server.connect(Dialect.D)
    one.make(partitions=2)
    one.group()
    one.ask("JOIN_CONSUMER_GROUP", member_of(one, "g1"))
    member = Consumer(True, "g1")
    for index in range(2):
        one.put(b"%d" % index, partitioning=Partitioning(index))
        one.poll(consumer=member, partition=index)
    before = one.ask("SYNC_CONSUMER_GROUP", member_of(one, "g1"))
    assert before.partitions == [0, 1]
    two.ask("JOIN_CONSUMER_GROUP", member_of(two, "g1"))
    during = one.ask("SYNC_CONSUMER_GROUP", member_of(one, "g1"))
    assert during.partitions == [0]
    assert during.generation > before.generation
    with pytest.raises(Refusal, match="5009"):
        one.poll(consumer=member, partition=1)
    server.pass_ms(REVOCATION_MS)
    assert two.ask("SYNC_CONSUMER_GROUP", member_of(two, "g1")).partitions == [1]
    assert two.values(consumer=member, partition=1) == [b"1"]


@every_dialect
def test_offsets_are_stored(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()
    client.put(b"0", b"1", b"2")
    consumer = Consumer(False, 7)
    get = GetOffset(consumer=consumer, stream="s1", topic="t1", partition=0)
    if dialect >= Dialect.B3:
        assert client.ask("GET_CONSUMER_OFFSET", get) is None
    else:
        info = client.ask("GET_CONSUMER_OFFSET", get)
        assert (info.partition, info.current_offset, info.stored_offset) == (0, 2, 0)

    def store(offset: int) -> StoreOffset:
        return StoreOffset(consumer=consumer, stream="s1", topic="t1", partition=0, offset=offset)

    client.ask("STORE_CONSUMER_OFFSET", store(1))
    info = client.ask("GET_CONSUMER_OFFSET", get)
    assert (info.partition, info.current_offset, info.stored_offset) == (0, 2, 1)
    assert client.values(Strategy.NEXT, consumer=consumer) == [b"2"]
    assert client.refusal("STORE_CONSUMER_OFFSET", store(3)) == 4100
    if dialect > Dialect.A:
        delete = DeleteOffset(consumer=consumer, stream="s1", topic="t1", partition=0)
        client.ask("DELETE_CONSUMER_OFFSET", delete)
        assert client.refusal("DELETE_CONSUMER_OFFSET", delete) == 3021


@pytest.mark.parametrize("dialect", NAMED)
def test_consumers_by_name(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()
    client.put(b"0", b"1")
    named = Consumer(False, "a consumer")
    client.ask("STORE_CONSUMER_OFFSET", StoreOffset(consumer=named, stream="s1", topic="t1", partition=0, offset=0))
    assert client.values(Strategy.NEXT, consumer=named) == [b"1"]
    assert client.values(Strategy.NEXT, consumer=Consumer(False, 7)) == [b"0", b"1"]


def test_a_group_and_a_kafka_group_of_one_name_are_one_cursor(server: IggyBroker) -> None:
    client = server.connect(Dialect.C3)
    client.make()
    client.put(b"0", b"1", b"2")
    client.group()
    client.ask("JOIN_CONSUMER_GROUP", member_of(client, "g1"))
    topic = server.topic("s1.t1")
    committed = CommittedOffset(2, -1, "", server.runtime.now_ms())
    server.wait(server.broker.groups.offsets.commit("g1", {(topic.id, 0): committed}))
    member = Consumer(True, "g1")
    assert client.values(Strategy.NEXT, consumer=member, partition=None, auto_commit=True) == [b"2"]
    server.runtime.run()
    assert server.broker.groups.offsets.of_group("g1")[topic.id, 0].offset == 3
    client.ask("DELETE_CONSUMER_GROUP", member_of(client, "g1"))
    assert server.broker.groups.offsets.of_group("g1") == {}


def test_groups_go_with_their_topic(server: IggyBroker) -> None:
    client = server.connect(Dialect.C3)
    client.make()
    client.group()
    client.ask("DELETE_TOPIC", TopicRequest(stream="s1", topic="t1"))
    assert list(server.service.shared.groups) == []
    assert server.broker.documents.of_kind("topic-group") == {}
