"""Every topic has one name in each protocol, and no name has two topics, whoever makes them under whatever names."""

from typing import Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.broker.errors import InvalidTopicName, TopicExists
from millstream.broker.namespaces import InvalidNamespaceName, NamespaceExists
from millstream.broker.streams import Streams, flat_namespace
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.model.topic_name import TopicName
from millstream.sessions.iggy.names import check_name as check_iggy_name
from millstream.sessions.kafka.names import check_topic_name as check_kafka_name
from millstream.sessions.kafka07.names import check_topic_name as check_kafka07_name
from millstream.sessions.pulsar.names import find_place, is_partitioned, parse_name, topic_text
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from tests.matrix.conftest import Clients
from tests.matrix.iggy import DEFAULT_STREAM, IggyRefused
from tests.unit.broker.simulated_broker import SimulatedBroker

_REFUSALS: Final = (TopicExists, InvalidTopicName, InvalidNamespaceName, NamespaceExists, Refused)


class Made(NamedTuple):
    """A topic that somebody wants to make."""

    protocol: str
    place: tuple[str, ...]
    name: str
    partitions: int
    partitioned: bool


_words = st.sampled_from(["a", "b", "public", "default", "orders", "-partition-0", "-partition-1", ".", ".b", "a.b"])
_colliding = st.lists(_words, min_size=1, max_size=3).map("".join)
_names = _colliding | st.text(min_size=1, max_size=12)
_makings = st.one_of(
    st.builds(
        Made, st.sampled_from(["kafka", "kafka07"]), st.just(()), _names, st.integers(1, 2), st.just(value=False)
    ),
    st.builds(Made, st.just("pulsar"), st.tuples(_names, _names), _names, st.integers(1, 2), st.booleans()),
    st.builds(Made, st.just("iggy"), st.tuples(_names), _names, st.integers(1, 2), st.just(value=False)),
)


class Server(SimulatedBroker):
    """A broker, and the streams over it."""

    def start(self) -> None:
        super().start()
        broker = self.broker
        self.streams = Streams(self.runtime, broker.documents, broker.namespaces, broker.topics)

    def make(self, wanted: Made) -> Topic:
        """Make a topic as the clients of a protocol do."""
        name = self._name(wanted)
        topics = self.broker.topics
        return self.wait(topics.create(name, wanted.partitions, {}, partitioned=wanted.partitioned))

    def _name(self, wanted: Made) -> TopicName:
        match wanted.protocol:
            case "kafka":
                check_kafka_name(wanted.name)
                return TopicName.from_flat(wanted.name)
            case "kafka07":
                check_kafka07_name(wanted.name)
                return TopicName.from_flat(wanted.name)
            case "pulsar":
                tenant, namespace = wanted.place
                parsed = parse_name(f"persistent://{tenant}/{namespace}/{wanted.name}")
                self._ensure_namespace(parsed.topic)
                return parsed.topic
        (stream_name,) = wanted.place
        check_iggy_name(stream_name, ErrorCode.INVALID_STREAM_NAME)
        check_iggy_name(wanted.name, ErrorCode.INVALID_TOPIC_NAME)
        stream = self.streams.find(stream_name)
        if stream is None:
            stream, stored = self.streams.create(stream_name)
            self.wait(stored)
        return self.streams.check_new_topic(stream, wanted.name, None)

    def _ensure_namespace(self, name: TopicName) -> None:
        namespaces = self.broker.namespaces
        if namespaces.find(name.tenant, name.namespace) is None:
            if name.tenant not in {one.name for one in namespaces.tenants()}:
                self.wait(namespaces.create_tenant(name.tenant))
            self.wait(namespaces.create(name.tenant, name.namespace)[1])


def _pulsar_names(topic: Topic) -> list[str]:
    if not is_partitioned(topic):
        return [topic_text(topic.name)]
    return [topic_text(topic.name, partition=partition) for partition in range(len(topic.partitions))]


@settings(max_examples=150, deadline=None)
@given(st.lists(_makings, min_size=1, max_size=8))
def test_names_are_one_to_one(makings: list[Made]) -> None:
    server = Server()
    for wanted in makings:
        try:
            server.make(wanted)
        except _REFUSALS:
            continue
    topics = list(server.broker.topics)
    for topic in topics:
        assert server.broker.topics.by_flat_name(topic.name.flat) is topic
        stream = server.streams.find(flat_namespace(topic.name))
        assert stream is not None
        assert server.streams.find_topic(stream, topic.name.name) is topic
        for partition, text in enumerate(_pulsar_names(topic)):
            place = find_place(server.broker.topics, parse_name(text))
            assert place is not None
            assert (place.topic, place.partition) == (topic, partition)
    names = [text for topic in topics for text in _pulsar_names(topic)]
    assert len(set(names)) == len(names)
    assert len({topic.name.flat for topic in topics}) == len(topics)


_ORDERS: Final = Made("pulsar", ("public", "default"), "orders", 2, True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_ORDERS, Made("kafka", (), "orders-partition-1", 1, False)),
        (Made("kafka", (), "orders-partition-1", 1, False), _ORDERS),
        (Made("kafka", (), "orders", 2, False), Made("kafka07", (), "orders-partition-0", 1, False)),
        (Made("kafka", (), "sales.orders", 1, False), Made("iggy", ("sales",), "orders", 1, False)),
        (Made("iggy", ("acme.sales",), "orders", 1, False), Made("kafka", (), "acme.sales.orders", 1, False)),
        (Made("pulsar", ("acme", "sales"), "a", 1, False), Made("pulsar", ("public", "acme.sales"), "b", 1, False)),
    ],
)
def test_collisions(first: Made, second: Made) -> None:
    server = Server()
    server.make(first)
    with pytest.raises(MillstreamError) as refused:
        server.make(second)
    assert isinstance(refused.value, TopicExists | NamespaceExists)


def test_more_partitions_never_take_a_name() -> None:
    server = Server()
    orders = server.make(Made("kafka", (), "orders", 1, False))
    server.make(Made("kafka", (), "orders-partition-2", 1, False))
    with pytest.raises(TopicExists):
        server.broker.topics.add_partitions(orders, 3)
    server.wait(server.broker.topics.add_partitions(orders, 2))
    assert len(orders.partitions) == 2


def test_topics_of_one_protocol_in_all_others(clients: Clients) -> None:
    """Made in one, listed and described in the others, and deleted in yet another."""
    client, iggy, kafka = clients.pulsar.client, clients.iggy, clients.kafka
    kafka.create("made.by.kafka", partitions=2)
    client.create_producer("made-by-pulsar").close()
    iggy.call("create_stream", name="made-by")
    iggy.call("create_topic", stream="made-by", name="iggy", partitions_count=3)
    counts = {"made.by.kafka": 2, "made-by-pulsar": 1, "made-by.iggy": 3}
    listed = kafka.admin.list_topics(timeout=10).topics
    assert {name: len(listed[name].partitions) for name in counts} == counts
    told = dict(iggy.call("get_topics", "name", "partitions_count", stream_id=DEFAULT_STREAM))
    assert (told["made.by.kafka"], told["made-by-pulsar"]) == (2, 1)
    assert [len(client.get_topic_partitions(name)) for name in ("made.by.kafka", "public/made-by/iggy")] == [2, 3]
    for name in counts:
        assert clients.kafka07.end(name) == 0
    with pytest.raises(IggyRefused, match=r"already exists|AlreadyExists"):
        iggy.call("create_topic", stream=DEFAULT_STREAM, name="made.by.kafka", partitions_count=1)
    iggy.call("delete_topic", stream_id=DEFAULT_STREAM, topic_id="made.by.kafka")
    for deleted in kafka.admin.delete_topics(["made-by.iggy", "made-by-pulsar"]).values():
        deleted.result(10)
    assert not counts.keys() & kafka.admin.list_topics(timeout=10).topics.keys()
    assert iggy.call("get_topics", "name", stream_id="made-by") in ([], True)
