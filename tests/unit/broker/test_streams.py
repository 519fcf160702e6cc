"""Streams and the numbers of topics, beside namespaces that other protocols make."""

import pytest

from millstream.broker.errors import TopicExists
from millstream.broker.namespaces import InvalidNamespaceName
from millstream.broker.streams import UNASKED_FROM, StreamExists, Streams, UnknownStream, flat_namespace, fold
from millstream.broker.topics import Topic
from millstream.model.topic_name import TopicName
from millstream.storage.metadata import MetadataFailed
from tests.unit.broker.simulated_broker import SimulatedBroker


@pytest.fixture
def server() -> SimulatedBroker:
    return SimulatedBroker()


@pytest.fixture
def streams(server: SimulatedBroker) -> Streams:
    return made(server)


def made(server: SimulatedBroker) -> Streams:
    broker = server.broker
    return Streams(server.runtime, broker.documents, broker.namespaces, broker.topics)


def test_a_stream_is_a_namespace(server: SimulatedBroker, streams: Streams) -> None:
    stream, stored = streams.create("acme.sales")
    server.wait(stored)
    namespace = server.broker.namespaces.find("acme", "sales")
    assert namespace is not None
    assert streams.check_new_topic(stream, "orders", None) == ("acme", "sales", "orders")
    server.wait(streams.delete(stream))
    assert server.broker.namespaces.find("acme", "sales") is None
    with pytest.raises(UnknownStream):
        streams.delete(stream)


def test_a_namespace_is_a_stream(server: SimulatedBroker, streams: Streams) -> None:
    namespace, stored = server.broker.namespaces.create("public", "sales")
    server.wait(stored)
    found = streams.find("sales")
    assert found is not None
    assert found.number == UNASKED_FROM
    assert [stream.name for stream in streams] == ["sales"]
    server.wait(server.broker.namespaces.delete(namespace))
    assert len(streams) == 0


def test_the_default_namespace_is_a_stream_once_it_has_topics(server: SimulatedBroker, streams: Streams) -> None:
    assert len(streams) == 0
    topic = server.create("orders")
    (stream,) = streams
    assert (stream.name, streams.number_of(topic)) == ("default", UNASKED_FROM)
    assert streams.stream_of(topic) is stream
    assert streams.find_topic(stream, "orders") is topic
    assert streams.find_topic(stream, UNASKED_FROM) is topic
    assert streams.find_topic(stream, "sales.orders") is None


def test_numbers(server: SimulatedBroker, streams: Streams) -> None:
    first, _ = streams.create("a", 7)
    second, _ = streams.create("b")
    assert (first.number, second.number) == (7, 0)
    with pytest.raises(StreamExists) as taken:
        streams.create("c", 7)
    assert taken.value.by_number
    with pytest.raises(StreamExists) as taken_too:
        streams.create("a", 8)
    assert not taken_too.value.by_number
    assert streams.find(7) is first
    assert streams.find("b") is second
    unsaved = streams.unsaved
    assert unsaved is not None
    server.wait(unsaved)
    again = made(server)
    assert [(stream.name, stream.number) for stream in again] == [("b", 0), ("a", 7)]
    assert again.create("d")[0].number == 1


def test_names_that_no_namespace_can_have(streams: Streams) -> None:
    with pytest.raises(InvalidNamespaceName):
        streams.create("a/b")
    assert len(streams) == 0


def test_topics_that_go_are_forgotten(server: SimulatedBroker, streams: Streams) -> None:
    topic = server.create("orders")
    (stream,) = streams
    server.wait(server.broker.delete_topic(topic))
    server.runtime.run()
    assert stream.topics == {}
    assert server.broker.documents.of_kind("stream-topic") == {}


def test_flat_names() -> None:
    assert flat_namespace(TopicName("public", "sales", "orders")) == "sales"
    assert flat_namespace(TopicName("acme", "sales", "orders")) == "acme.sales"
    assert fold("My  Stream") == "my.stream"


def filled(server: SimulatedBroker, streams: Streams, name: str, topic: str) -> Topic:
    stream, _ = streams.create(name)
    full_name = streams.check_new_topic(stream, topic, None)
    one = server.wait(server.broker.topics.create(full_name, 1, {}))
    server.wait(streams.number_topic(one, None))
    return one


def test_a_stream_gets_another_name(server: SimulatedBroker, streams: Streams) -> None:
    topic = filled(server, streams, "sales", "orders")
    stream = streams.stream_of(topic)
    namespaces = server.broker.namespaces
    namespace = namespaces.get("public", "sales")
    server.wait(namespaces.set_policies(namespace, message_ttl_s=77))
    server.wait(streams.rename(stream, "acme.shop"))
    assert (topic.name, streams.stream_of(topic), stream.number) == (("acme", "shop", "orders"), stream, 0)
    assert streams.find_topic(stream, "orders") is streams.find_topic(stream, 0) is topic
    assert namespaces.by_flat_name("sales") is None
    assert namespaces.get("acme", "shop").policies.message_ttl_s == 77
    assert server.broker.topics.by_flat_name("sales.orders") is None
    assert [one.name for one in streams] == ["acme.shop"]


def test_names_that_collide_change_nothing(server: SimulatedBroker, streams: Streams) -> None:
    filled(server, streams, "a.b", "c")
    topic = filled(server, streams, "x", "b.c")
    stream = streams.stream_of(topic)
    with pytest.raises(StreamExists):
        streams.rename(stream, "a.b")
    with pytest.raises(TopicExists):
        streams.rename(stream, "a")
    server.runtime.run()
    assert sorted(one.name for one in streams) == ["a.b", "x"]
    assert server.broker.namespaces.by_flat_name("a") is None
    assert topic.name == ("public", "x", "b.c")


def test_a_name_that_does_not_last_is_taken_back(server: SimulatedBroker, streams: Streams) -> None:
    topic = filled(server, streams, "sales", "orders")
    stream = streams.stream_of(topic)
    server.store.failing = True
    renaming = streams.rename(stream, "shop")
    server.runtime.run()
    server.store.failing = False
    with pytest.raises(MetadataFailed):
        renaming.result()
    server.runtime.run()
    assert (topic.name, streams.stream_of(topic)) == (("public", "sales", "orders"), stream)
    assert [one.name for one in streams] == ["sales"]
    server.wait(streams.rename(stream, "shop"))
    assert [one.name for one in streams] == ["shop"]
