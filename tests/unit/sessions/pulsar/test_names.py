"""Names of topics as Pulsar writes them."""

import pytest

from millstream.broker.errors import InvalidTopicName, UnknownTopic
from millstream.model.topic_name import TopicName
from millstream.sessions.pulsar.names import find_place, is_partitioned, parse_name, topic_text
from tests.unit.broker.simulated_broker import SimulatedBroker


@pytest.mark.parametrize(
    ("text", "topic", "persistent"),
    [
        ("orders", ("public", "default", "orders"), True),
        ("acme/sales/orders", ("acme", "sales", "orders"), True),
        ("persistent://acme/sales/orders", ("acme", "sales", "orders"), True),
        ("non-persistent://acme/sales/orders", ("acme", "sales", "orders"), False),
        ("persistent://acme/cluster/sales/orders", ("acme", "sales", "orders"), True),
        ("persistent://public/default/späti.東京", ("public", "default", "späti.東京"), True),
    ],
)
def test_names_are_taken_apart(text: str, topic: tuple[str, str, str], persistent: bool) -> None:
    name = parse_name(text)
    assert (name.topic, name.base, name.partition, name.persistent) == (
        TopicName(*topic),
        TopicName(*topic),
        None,
        persistent,
    )
    assert str(name) == topic_text(TopicName(*topic), persistent=persistent)


@pytest.mark.parametrize(
    ("text", "base", "partition"),
    [
        ("orders-partition-0", "orders", 0),
        ("orders-partition-12", "orders", 12),
        ("orders-partition-1-partition-2", "orders-partition-1", 2),
        ("orders-partition-01", "orders-partition-01", None),
        ("orders-partition-", "orders-partition-", None),
        ("-partition-1", "-partition-1", None),
        ("orders-partition-9999999999", "orders-partition-9999999999", None),
    ],
)
def test_the_suffix_of_a_partition(text: str, base: str, partition: int | None) -> None:
    name = parse_name(text)
    assert (name.topic.name, name.base.name, name.partition) == (text, base, partition)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/b",
        "a/b/c/d/e",
        "kafka://a/b/c",
        "persistent://a/b",
        "persistent:///b/c",
        "persistent://a/b/",
        "persistent:// /c/d",
        "persistent://a\n/c/d",
        "persistent://a/b/c\0",
        "persistent://a/b/" + "x" * 1025,
        "persistent://" + "a" * 1025 + "/b/c",
    ],
)
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(InvalidTopicName):
        parse_name(text)


def test_places() -> None:
    sim = SimulatedBroker()
    topics = sim.broker.topics
    one = sim.create("one")
    many = sim.create("many", 3)
    single = sim.wait(topics.create(TopicName.from_flat("single"), 1, {}, partitioned=True))
    odd = sim.create("odd-partition-1")
    assert [is_partitioned(topic) for topic in (one, many, single)] == [False, True, True]
    assert find_place(topics, parse_name("one")) == (one, 0, -1)
    assert find_place(topics, parse_name("many-partition-2")) == (many, 2, 2)
    assert find_place(topics, parse_name("single-partition-0")) == (single, 0, 0)
    assert find_place(topics, parse_name("odd-partition-1")) == (odd, 0, -1)
    assert find_place(topics, parse_name("nothing")) is None
    assert find_place(topics, parse_name("nothing-partition-1")) is None
    assert find_place(topics, parse_name("one-partition-0")) is None
    for name in ("many", "many-partition-3", "single-partition-1"):
        with pytest.raises(UnknownTopic):
            find_place(topics, parse_name(name))
