"""Watchers of topics: one look for all of them, and one update for what a slow one has missed."""

from uuid import UUID

from millstream.model.topic_name import TopicName
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandSuccess,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
    CommandWatchTopicListSuccess,
    CommandWatchTopicUpdate,
)
from tests.unit.sessions.pulsar.spoken import Client, Conversation

DOMAIN = "persistent://public/default/"


def watch(client: Client, number: int, pattern: str = ".*") -> CommandWatchTopicListSuccess:
    command = CommandWatchTopicList(
        request_id=number, watcher_id=number, namespace="public/default", topics_pattern=pattern
    )
    return client.ask(command, CommandWatchTopicListSuccess)


def updates(client: Client) -> list[tuple[int, list[str], list[str]]]:
    """Watcher, new topics and deleted ones, without their domain, of what has come."""
    found = []
    for one in client.taken():
        assert isinstance(one, CommandWatchTopicUpdate)
        new, deleted = (
            [name.removeprefix(DOMAIN) for name in names] for names in (one.new_topics, one.deleted_topics)
        )
        found.append((one.watcher_id, new, deleted))
    return found


def delete(broker: Conversation, name: str) -> None:
    broker.wait(broker.broker.delete_topic(broker.topic(name)))


def test_each_is_told_what_its_pattern_means() -> None:
    broker = Conversation()
    one, two = broker.client(), broker.client()
    watch(one, 1, ".*/logs-.*")
    watch(one, 2, ".*/metrics-.*")
    watch(two, 1, ".*/logs-.*")
    broker.create("logs-a", 2)
    assert updates(one) == updates(two) == [(1, ["logs-a-partition-0", "logs-a-partition-1"], [])]
    broker.create("metrics-a")
    assert (updates(one), updates(two)) == ([(2, ["metrics-a"], [])], [])
    assert one.ask(CommandWatchTopicListClose(request_id=9, watcher_id=1), CommandSuccess).request_id == 9
    delete(broker, "logs-a")
    assert (updates(one), len(updates(two))) == ([], 1)


def test_who_has_no_room_gets_one_update_for_all_that_it_missed() -> None:
    broker = Conversation()
    client = broker.client()
    broker.create("there")
    watch(client, 1)
    client.room = 0
    for name in ("a", "b", "c"):
        broker.create(name)
    delete(broker, "b")
    delete(broker, "there")
    broker.create("there")
    assert updates(client) == []
    client.room = 1000
    client.session.resume()
    (update,) = client.taken()
    assert isinstance(update, CommandWatchTopicUpdate)
    assert list(update.new_topics) == [f"{DOMAIN}a", f"{DOMAIN}c"]
    assert list(update.deleted_topics) == []
    assert update.topics_hash == watch(client, 2).topics_hash


def test_the_names_of_a_late_watcher_are_those_of_now() -> None:
    broker = Conversation()
    client = broker.client()
    watch(client, 1)
    broker.create("a")
    client.taken()
    assert list(watch(client, 2).topic) == [f"{DOMAIN}a"]
    broker.create("b")
    assert updates(client) == [(1, ["b"], []), (2, ["b"], [])]


def test_a_topic_that_gets_another_name_is_gone_and_come() -> None:
    broker = Conversation()
    client = broker.client()
    topic = broker.create("old")
    watch(client, 1)
    names: dict[UUID, TopicName] = {topic.id: TopicName("public", "default", "new")}
    broker.wait(broker.broker.topics.rename(names))
    assert updates(client) == [(1, ["new"], ["old"])]


def test_nothing_is_looked_for_when_nobody_watches() -> None:
    broker = Conversation()
    client = broker.client()
    watch(client, 1)
    watch(client, 1, ".*/x")
    topics = broker.broker.topics
    assert len(topics._watchers) == 1
    client.session.close()
    assert not topics._watchers
    broker.create("unseen")
    assert client.taken() == []
