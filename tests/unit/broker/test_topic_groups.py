"""Groups that belong to one topic each."""

import pytest

from millstream.broker.errors import GroupNotFound
from millstream.broker.topic_groups import GroupExists, TopicGroups
from tests.unit.broker.simulated_broker import SimulatedBroker


@pytest.fixture
def server() -> SimulatedBroker:
    return SimulatedBroker()


def made(server: SimulatedBroker) -> TopicGroups:
    return TopicGroups(server.runtime, server.broker.documents, server.broker.topics)


def test_groups_last(server: SimulatedBroker) -> None:
    topic = server.create("orders", 3)
    groups = made(server)
    first, stored = groups.create(topic, "g1")
    server.wait(stored)
    second, _ = groups.create(topic, "g2", 7)
    assert (first.number, second.number) == (0, 7)
    for name, number in (("g1", None), ("g3", 7)):
        with pytest.raises(GroupExists) as taken:
            groups.create(topic, name, number)
        assert taken.value.by_number == (number is not None)
    server.runtime.run()
    again = made(server)
    assert [(group.name, group.number) for group in again.of_topic(topic)] == [("g1", 0), ("g2", 7)]
    assert again.get(topic, 7).name == "g2"
    assert again.create(topic, "g3")[0].number == 1
    with pytest.raises(GroupNotFound):
        again.get(topic, "nobody's")


def test_members_follow_the_partitions(server: SimulatedBroker) -> None:
    topic = server.create("orders", 2)
    groups = made(server)
    group, _ = groups.create(topic, "g1")
    group.sharing.join(1, cooperative=False)
    server.wait(server.broker.topics.add_partitions(topic, 3))
    server.runtime.run()
    assert group.sharing.assigned(1) == [0, 1, 2]


def test_groups_are_deleted(server: SimulatedBroker) -> None:
    topic = server.create("orders")
    groups = made(server)
    group, _ = groups.create(topic, "g1")
    server.wait(groups.delete(group))
    assert list(groups) == []
    groups.create(topic, "g2")
    server.wait(server.broker.delete_topic(topic))
    server.runtime.run()
    assert list(groups) == []
    assert server.broker.documents.of_kind("topic-group") == {}
    assert server.broker.documents.of_kind("topic-group-counter") == {}
    groups.close()
