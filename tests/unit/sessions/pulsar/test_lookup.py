"""Looking topics up: partitions, addresses, lists and watchers."""

import pytest

from millstream.broker.namespaces import AutoTopicCreation
from millstream.model.topic_name import TopicName
from millstream.sessions.pulsar.topic_lists import topics_hash
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandError,
    CommandGetTopicsOfNamespace,
    CommandGetTopicsOfNamespaceResponse,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    CommandSuccess,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
    CommandWatchTopicListSuccess,
    CommandWatchTopicUpdate,
    ServerError,
)
from tests.unit.sessions.pulsar.spoken import Client, Conversation

NAMESPACE = "public/default"
ORDERS = "persistent://public/default/orders"


@pytest.fixture
def there() -> Conversation:
    return Conversation()


def partitions(client: Client, topic: str) -> int:
    """Partitions of a topic, or the error, negated."""
    answer = client.ask(
        CommandPartitionedTopicMetadata(topic=topic, request_id=1), CommandPartitionedTopicMetadataResponse
    )
    if answer.response == CommandPartitionedTopicMetadataResponse.Failed:
        return -answer.error
    return answer.partitions


def test_partitions_are_counted_as_pulsar_does(there: Conversation) -> None:
    there.create("orders", 3)
    there.create("single")
    there.wait(there.broker.topics.create(TopicName.from_flat("one"), 1, {}, partitioned=True))
    client = there.client()
    assert [partitions(client, name) for name in ("orders", "single", "one", "orders-partition-2")] == [3, 0, 1, 0]
    assert partitions(client, "new") == 0
    assert there.broker.topics.by_flat_name("new") is None
    assert partitions(client, "non-persistent://public/default/x") == 0


def test_a_namespace_that_makes_partitioned_topics_makes_them_here(there: Conversation) -> None:
    namespaces = there.broker.namespaces
    rule = AutoTopicCreation(allowed=True, partitions=4)
    there.wait(namespaces.set_policies(namespaces.get("public", "default"), auto_topic_creation=rule))
    assert partitions(there.client(), "new") == 4
    assert there.topic("new").partitioned


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ("persistent://nobody/default/x", ServerError.TopicNotFound),
        ("a/b/c/d/e", ServerError.InvalidTopicName),
        ("orders-partition-9", ServerError.TopicNotFound),
    ],
)
def test_what_cannot_be_is_told_at_once(there: Conversation, topic: str, error: ServerError) -> None:
    there.create("orders", 3)
    assert partitions(there.client(), topic) == -error


def test_a_topic_is_here(there: Conversation) -> None:
    client = there.client()
    answer = client.ask(CommandLookupTopic(topic=ORDERS, request_id=3), CommandLookupTopicResponse)
    assert (answer.response, answer.brokerServiceUrl) == (CommandLookupTopicResponse.Connect, "pulsar://here:6650")
    assert (answer.request_id, answer.authoritative, answer.proxy_through_service_url) == (3, True, False)
    assert not answer.HasField("brokerServiceUrlTls")
    lookup = CommandLookupTopic(topic=ORDERS, request_id=4, advertised_listener_name="secure")
    answer = client.ask(lookup, CommandLookupTopicResponse)
    assert (answer.brokerServiceUrlTls, answer.HasField("brokerServiceUrl")) == ("pulsar+ssl://here:6651", False)


def test_a_listener_that_is_not_there_is_told_in_words_that_clients_know(there: Conversation) -> None:
    command = CommandLookupTopic(topic=ORDERS, request_id=3, advertised_listener_name="outside")
    answer = there.client().ask(command, CommandLookupTopicResponse)
    assert (answer.response, answer.error) == (CommandLookupTopicResponse.Failed, ServerError.ServiceNotReady)
    assert answer.message == "the broker do not have outside listener"


def listed(client: Client, **fields: object) -> CommandGetTopicsOfNamespaceResponse:
    command = CommandGetTopicsOfNamespace(request_id=1, namespace=NAMESPACE)
    for name, value in fields.items():
        setattr(command, name, value)
    return client.ask(command, CommandGetTopicsOfNamespaceResponse)


def test_topics_are_listed_with_their_partitions(there: Conversation) -> None:
    there.create("orders", 2)
    there.create("one")
    there.wait(there.broker.topics.create(TopicName("public", "other", "hidden"), 1, {}))
    client = there.client()
    whole = listed(client)
    names = [f"persistent://{NAMESPACE}/{name}" for name in ("one", "orders-partition-0", "orders-partition-1")]
    assert (list(whole.topics), whole.filtered, whole.changed) == (names, False, True)
    assert whole.topics_hash == topics_hash(names)
    again = listed(client, topics_hash=whole.topics_hash)
    assert (list(again.topics), again.changed) == ([], False)
    matching = listed(client, topics_pattern="persistent://public/default/ord.*")
    assert (list(matching.topics), matching.filtered) == (names[1:], True)
    long = listed(client, topics_pattern="public/default/" + "x" * 50)
    assert (list(long.topics), long.filtered) == (names, False)
    assert list(listed(client, mode=CommandGetTopicsOfNamespace.NON_PERSISTENT).topics) == []


@pytest.mark.parametrize(
    ("namespace", "pattern", "error"),
    [
        ("public/nothing", "", ServerError.TopicNotFound),
        (NAMESPACE, "(", ServerError.NotAllowedError),
        (NAMESPACE, "(?=a)b", ServerError.NotAllowedError),
    ],
)
def test_what_cannot_be_listed(there: Conversation, namespace: str, pattern: str, error: ServerError) -> None:
    command = CommandGetTopicsOfNamespace(request_id=1, namespace=namespace, topics_pattern=pattern)
    assert there.client().refused(command).error == error


def watch(pattern: str = "public/default/ord.*", watcher_id: int = 7) -> CommandWatchTopicList:
    return CommandWatchTopicList(request_id=1, watcher_id=watcher_id, namespace=NAMESPACE, topics_pattern=pattern)


def test_a_watcher_is_told_what_comes_and_goes(there: Conversation) -> None:
    there.create("orders")
    client = there.client()
    success = client.ask(watch(), CommandWatchTopicListSuccess)
    assert list(success.topic) == [ORDERS]
    there.create("order2", 2)
    there.create("other")
    (update,) = client.taken()
    assert isinstance(update, CommandWatchTopicUpdate)
    assert list(update.new_topics) == [f"persistent://{NAMESPACE}/order2-partition-{n}" for n in (0, 1)]
    there.wait(there.broker.delete_topic(there.topic()))
    (update,) = client.taken()
    assert isinstance(update, CommandWatchTopicUpdate)
    assert (list(update.new_topics), list(update.deleted_topics)) == ([], [ORDERS])
    there.wait(there.broker.topics.add_partitions(there.topic("order2"), 3))
    (update,) = client.taken()
    assert isinstance(update, CommandWatchTopicUpdate)
    assert list(update.new_topics) == [f"persistent://{NAMESPACE}/order2-partition-2"]
    client.ask(CommandWatchTopicListClose(request_id=2, watcher_id=7), CommandSuccess)
    there.create("orders3")
    assert client.taken() == []


def test_a_watcher_goes_with_its_connection(there: Conversation) -> None:
    client = there.client()
    client.ask(watch(), CommandWatchTopicListSuccess)
    client.session.close()
    there.create("orders")
    assert client.taken() == []


def test_what_cannot_be_watched(there: Conversation) -> None:
    client = there.client()
    for pattern in ("x" * 51, "("):
        assert client.ask(watch(pattern), CommandError).error == ServerError.NotAllowedError
    for number in range(1000):
        client.ask(watch(watcher_id=number), CommandWatchTopicListSuccess)
    assert client.ask(watch(watcher_id=1000), CommandError).error == ServerError.NotAllowedError
