"""Streams, topics and partitions."""

from pathlib import Path

import pytest

from millstream.broker.streams import UNASKED_FROM
from millstream.sessions.iggy.topic_options import NO_BOUND
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import HeaderKind, UserHeader
from millstream.wire.iggy.messages.streams import CreateStream, StreamRequest, UpdateStream
from millstream.wire.iggy.messages.system import DescribeOptions
from millstream.wire.iggy.messages.topics import (
    CreateTopic,
    DeleteSegments,
    PartitionsRequest,
    StreamTopics,
    TopicRequest,
    UpdateTopic,
)
from tests.unit.sessions.iggy.conversation import Conversation, IggyBroker

DIALECTS = list(Dialect)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.fixture
def server() -> IggyBroker:
    return IggyBroker()


@every_dialect
def test_streams_come_and_go(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    assert client.ask("GET_STREAMS").streams == []
    reply = client.ask("CREATE_STREAM", CreateStream(name="sales", stream_id=0))
    if dialect >= Dialect.B3:
        assert reply.stream.name == "sales"
        assert reply.stream.id == 0
    client.ask("CREATE_STREAM", CreateStream(name="other", stream_id=1))
    found = client.ask("GET_STREAM", StreamRequest(stream="sales"))
    assert (found.stream.id, found.stream.topics_count, found.topics) == (0, 0, [])
    assert found.stream.created_at_us == server.runtime.now_ms() * 1000
    assert [one.name for one in client.ask("GET_STREAMS").streams] == ["sales", "other"]
    client.ask("DELETE_STREAM", StreamRequest(stream=0))
    assert [one.name for one in client.ask("GET_STREAMS").streams] == ["other"]


@every_dialect
def test_what_streams_are_refused_for(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.ask("CREATE_STREAM", CreateStream(name="sales", stream_id=0))
    assert client.refusal("CREATE_STREAM", CreateStream(name="sales", stream_id=5)) == 1012
    assert client.refusal("CREATE_STREAM", CreateStream(name="", stream_id=5)) == 1013
    assert client.refusal("CREATE_STREAM", CreateStream(name="a/b", stream_id=5)) == 1013
    assert client.refusal("DELETE_STREAM", StreamRequest(stream="none")) == 1010
    assert client.refusal("DELETE_STREAM", StreamRequest(stream=77)) == 1009
    if dialect <= Dialect.C1:
        assert client.refusal("CREATE_STREAM", CreateStream(name="third", stream_id=0)) == 1011
        assert client.refusal("DELETE_STREAM", StreamRequest(stream=-1)) == 1014
    if dialect is Dialect.A:
        assert client.refusal("CREATE_STREAM", CreateStream(name="third", stream_id=-1)) == 1014


@every_dialect
def test_what_is_missing(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()
    if dialect >= Dialect.B3:
        assert client.ask("GET_STREAM", StreamRequest(stream="none")) is None
        assert client.ask("GET_TOPIC", TopicRequest(stream="s1", topic="none")) is None
        return
    assert client.refusal("GET_STREAM", StreamRequest(stream="none")) == 1010
    assert client.refusal("GET_STREAM", StreamRequest(stream=77)) == 1009
    assert client.refusal("GET_TOPIC", TopicRequest(stream="s1", topic="none")) == 2011
    assert client.refusal("GET_TOPIC", TopicRequest(stream="s1", topic=77)) == 2010


@every_dialect
def test_topics_come_and_go(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make(partitions=3)
    found = client.ask("GET_TOPIC", TopicRequest(stream="s1", topic="t1"))
    assert (found.topic.id, found.topic.name, found.topic.partitions_count) == (0, "t1", 3)
    assert [one.id for one in found.partitions] == [0, 1, 2]
    client.put(b"12345")
    assert client.ask("GET_TOPIC", TopicRequest(stream=0, topic=0)).topic.messages_count == 1
    assert [one.name for one in client.ask("GET_TOPICS", StreamTopics(stream="s1")).topics] == ["t1"]
    create = CreateTopic(stream="s1", name="t1", partitions_count=1, topic_id=4)
    assert client.refusal("CREATE_TOPIC", create) == 2013
    client.ask("DELETE_TOPIC", TopicRequest(stream="s1", topic="t1"))
    assert client.ask("GET_TOPICS", StreamTopics(stream="s1")).topics == []
    assert client.refusal("DELETE_TOPIC", TopicRequest(stream="s1", topic="t1")) == 2011


@every_dialect
def test_what_topics_are_refused_for(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()

    def refusal(name: str = "t2", partitions: int = 1, number: int | None = 5) -> int:
        create = CreateTopic(stream="s1", name=name, partitions_count=partitions, topic_id=number)
        return client.refusal("CREATE_TOPIC", create)

    assert refusal(name="") == 2014
    assert refusal(partitions=100_000) == 2015
    if dialect <= Dialect.C1:
        assert refusal(number=0) == 2012
    if dialect is Dialect.A:
        assert refusal(number=-1) == 2016


@every_dialect
def test_partitions_are_added(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()
    client.ask("CREATE_PARTITIONS", PartitionsRequest(stream="s1", topic="t1", count=2))
    assert len(client.ask("GET_TOPIC", TopicRequest(stream="s1", topic="t1")).partitions) == 3
    for count in (0, 100_001):
        assert client.refusal("CREATE_PARTITIONS", PartitionsRequest(stream="s1", topic="t1", count=count)) == 2015


def expiry(client: Conversation) -> tuple[int, int]:
    topic = client.ask("GET_TOPIC", TopicRequest(stream="s1", topic="t1")).topic
    return topic.expiry_s, topic.expiry_us


def test_expiry_and_size_become_the_topics_retention(server: IggyBroker) -> None:
    client = server.connect(Dialect.C3)
    client.make()
    never = UpdateTopic(stream="s1", topic="t1", name="t1", expiry_us=NO_BOUND, max_size_bytes=NO_BOUND)
    client.ask("UPDATE_TOPIC", never)
    assert server.topic("s1.t1").configs == {"retention.ms": "-1", "retention.bytes": "-1"}
    assert expiry(client)[1] == NO_BOUND
    some = UpdateTopic(stream="s1", topic="t1", name="t1", expiry_us=1_500_000, max_size_bytes=4 * 2**30)
    client.ask("UPDATE_TOPIC", some)
    assert server.topic("s1.t1").configs == {"retention.ms": "1500", "retention.bytes": str(4 * 2**30)}
    assert expiry(client)[1] == 1_500_000
    small = UpdateTopic(stream="s1", topic="t1", name="t1", max_size_bytes=1000)
    assert client.refusal("UPDATE_TOPIC", small) == 1019
    client.ask("UPDATE_TOPIC", UpdateTopic(stream="s1", topic="t1", name="t1"))
    assert server.topic("s1.t1").configs == {}


def test_expiry_in_seconds(server: IggyBroker) -> None:
    client = server.connect(Dialect.A)
    client.ask("CREATE_STREAM", CreateStream(name="s1", stream_id=0))
    create = CreateTopic(stream="s1", topic_id=0, name="t1", partitions_count=1, expiry_s=90)
    client.ask("CREATE_TOPIC", create)
    assert server.topic("s1.t1").configs == {"retention.ms": "90000"}
    assert expiry(client)[0] == 90


def test_options(server: IggyBroker) -> None:
    client = server.connect(Dialect.D)
    client.ask("CREATE_STREAM", CreateStream(name="s1"))
    options = [
        UserHeader(b"message_expiry", (2_000_000).to_bytes(8, "little"), HeaderKind.UINT64),
        UserHeader(b"segment_size", b"1048576", HeaderKind.STRING),
        UserHeader(b"durability", b"persisted", HeaderKind.STRING),
    ]
    client.ask("CREATE_TOPIC", CreateTopic(stream="s1", name="t1", partitions_count=1, options=options))
    assert server.topic("s1.t1").configs == {"retention.ms": "2000", "segment.bytes": "1048576"}
    topic = client.ask("GET_TOPIC", TopicRequest(stream="s1", topic="t1")).topic
    assert topic.options == options
    assert {one.key for one in topic.derived_options}.isdisjoint(one.key for one in options)
    every_key = {one.key for one in [*topic.derived_options, *options]}
    described = client.ask("DESCRIBE_OPTIONS", DescribeOptions(scope=1)).options
    assert {one.key.encode() for one in described} == every_key

    def refusal(key: bytes, value: bytes, kind: int = HeaderKind.STRING) -> int:
        bad = CreateTopic(stream="s1", name="t2", partitions_count=1, options=[UserHeader(key, value, kind)])
        return client.refusal("CREATE_TOPIC", bad)

    assert refusal(b"colour", b"red") == 4041
    assert refusal(b"message_expiry", b"soon") == 4042
    assert refusal(b"message_expiry", b"\1", HeaderKind.INT8) == 4042
    assert refusal(b"durability", b"maybe") == 4042
    durability = UpdateTopic(stream="s1", topic="t1", name="t1", options=options[2:])
    assert client.refusal("UPDATE_TOPIC", durability) == 4041


def test_purging_leaves_offsets_where_they_are(server: IggyBroker) -> None:
    client = server.connect(Dialect.C3)
    client.make()
    client.put(b"1", b"2")
    client.ask("PURGE_TOPIC", TopicRequest(stream="s1", topic="t1"))
    assert client.values() == []
    client.put(b"3")
    assert [(one["offset"], one["payload"]) for one in client.poll()[1]] == [(2, b"3")]
    client.ask("PURGE_STREAM", StreamRequest(stream="s1"))
    assert client.values() == []


def test_the_oldest_segments_are_deleted(server: IggyBroker) -> None:
    client = server.connect(Dialect.D)
    client.ask("CREATE_STREAM", CreateStream(name="s1"))
    options = [UserHeader(b"segment_size", b"400", HeaderKind.STRING)]
    client.ask("CREATE_TOPIC", CreateTopic(stream="s1", name="t1", partitions_count=1, options=options))
    for value in (b"1", b"2", b"3"):
        client.put(value)
        server.pass_ms(2000)
    client.ask("DELETE_SEGMENTS", DeleteSegments(stream="s1", topic="t1", partition=0, count=1))
    assert client.values() == [b"2", b"3"]
    client.ask("DELETE_SEGMENTS", DeleteSegments(stream="s1", topic="t1", partition=0, count=9))
    assert client.values() == [b"3"]
    nothing = DeleteSegments(stream="s1", topic="t1", partition=0, count=0)
    assert client.refusal("DELETE_SEGMENTS", nothing) == 4030


@every_dialect
def test_names_are_changed(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()
    client.put(b"x")
    client.ask("CREATE_STREAM", CreateStream(name="other", stream_id=7))
    assert client.refusal("UPDATE_STREAM", UpdateStream(stream="s1", name="other")) == 1012
    client.ask("UPDATE_STREAM", UpdateStream(stream="s1", name="s1"))
    client.ask("UPDATE_STREAM", UpdateStream(stream="s1", name="s2"))
    assert client.values(stream=0, topic=0) == client.values(stream="s2", topic="t1") == [b"x"]
    create = CreateTopic(stream="s2", name="t2", partitions_count=1, topic_id=1)
    client.ask("CREATE_TOPIC", create)
    assert client.refusal("UPDATE_TOPIC", UpdateTopic(stream="s2", topic="t1", name="t2")) == 2013
    client.ask("UPDATE_TOPIC", UpdateTopic(stream="s2", topic="t1", name="t3"))
    assert client.values(stream="s2", topic="t3") == client.values(stream=0, topic=0) == [b"x"]
    assert server.topic("s2.t3").name == ("public", "s2", "t3")
    assert [one.name for one in client.ask("GET_STREAMS").streams] == ["s2", "other"]


def test_changed_names_last(tmp_path: Path) -> None:
    server = IggyBroker(str(tmp_path / "metadata"))
    client = server.connect(Dialect.D)
    client.make()
    client.put(b"x")
    client.ask("UPDATE_STREAM", UpdateStream(stream="s1", name="acme.sales"))
    client.ask("UPDATE_TOPIC", UpdateTopic(stream="acme.sales", topic="t1", name="t2"))
    server.kill()
    server.start()
    client = server.connect(Dialect.D)
    assert client.values(stream="acme.sales", topic="t2") == client.values(stream=0, topic=0) == [b"x"]
    assert server.topic("acme.sales.t2").name == ("acme", "sales", "t2")
    assert [one.name for one in client.ask("GET_STREAMS").streams] == ["acme.sales"]


def test_early_dialects_fold_names(server: IggyBroker) -> None:
    old, new = server.connect(Dialect.A), server.connect(Dialect.C3)
    old.make(stream="My  Stream", topic="Orders")
    assert [one.name for one in new.ask("GET_STREAMS").streams] == ["my.stream"]
    found = old.ask("GET_TOPIC", TopicRequest(stream="MY STREAM", topic="ORDERS"))
    assert found.topic.name == "orders"
    assert new.ask("GET_TOPIC", TopicRequest(stream="MY STREAM", topic="ORDERS")) is None


def test_what_other_protocols_made_has_numbers_out_of_the_way(server: IggyBroker) -> None:
    server.create("orders")
    client = server.connect(Dialect.D)
    (stream,) = client.ask("GET_STREAMS").streams
    assert (stream.name, stream.id) == ("default", UNASKED_FROM)
    (topic,) = client.ask("GET_TOPICS", StreamTopics(stream=UNASKED_FROM)).topics
    assert (topic.name, topic.id) == ("orders", UNASKED_FROM)
    assert server.connect(Dialect.A).ask("GET_STREAMS").streams[0].id == UNASKED_FROM
    client.make()
    assert server.topic("s1.t1").name == ("public", "s1", "t1")


def test_a_name_taken_in_another_protocol_is_refused(server: IggyBroker) -> None:
    server.create("sales.orders")
    client = server.connect(Dialect.D)
    client.ask("CREATE_STREAM", CreateStream(name="sales"))
    create = CreateTopic(stream="sales", name="orders", partitions_count=1)
    assert client.refusal("CREATE_TOPIC", create) == 2013


def test_numbers_outlive_a_crash(tmp_path: Path) -> None:
    server = IggyBroker(str(tmp_path / "metadata"))
    client = server.connect(Dialect.B3)
    client.make(number=41)
    server.create("orders")
    before = [(one.id, one.name) for one in client.ask("GET_STREAMS").streams]
    server.kill()
    server.start()
    client = server.connect(Dialect.B3)
    assert [(one.id, one.name) for one in client.ask("GET_STREAMS").streams] == before
    assert client.ask("GET_TOPIC", TopicRequest(stream=41, topic=41)).topic.name == "t1"
    client.ask("DELETE_TOPIC", TopicRequest(stream=41, topic=41))
    reply = client.ask("CREATE_TOPIC", CreateTopic(stream=41, name="t2", partitions_count=1))
    assert reply.topic.id == 0


def test_numbers_are_not_used_again(server: IggyBroker) -> None:
    client = server.connect(Dialect.D)
    client.make()
    client.ask("DELETE_TOPIC", TopicRequest(stream="s1", topic="t1"))
    reply = client.ask("CREATE_TOPIC", CreateTopic(stream="s1", name="t1", partitions_count=1))
    assert reply.topic.id == 1
    client.ask("DELETE_STREAM", StreamRequest(stream="s1"))
    assert client.ask("CREATE_STREAM", CreateStream(name="s1")).stream.id == 1
