"""What a consumer's connection is to its subscription."""

import pytest

from millstream.sessions.pulsar.consumers import connected_consumer, find_consumer
from millstream.sessions.pulsar.errors import ConsumerNotFound
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandActiveConsumerChange,
    CommandCloseConsumer,
    CommandReachedEndOfTopic,
    CommandSubscribe,
)
from tests.unit.sessions.pulsar.conversation import ConsumingClient, ConsumingConversation


@pytest.fixture
def broker() -> ConsumingConversation:
    return ConsumingConversation.with_topic()


def test_a_consumer_is_found_while_it_is_connected(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    link = client.session._link
    assert find_consumer(link, 1) is None
    client.subscribe()
    found = find_consumer(link, 1)
    assert found is not None
    assert found.subscription.name == "s"
    assert connected_consumer(link, 1) is found
    client.request(CommandCloseConsumer(consumer_id=1, request_id=1))
    assert found.gone
    with pytest.raises(ConsumerNotFound):
        connected_consumer(link, 1)


def test_what_was_delivered_goes_to_another_when_the_connection_breaks(broker: ConsumingConversation) -> None:
    one, other = broker.consumer(), broker.consumer()
    broker.publish(b"0", b"1")
    one.subscribe(subType=CommandSubscribe.Shared)
    one.flow()
    assert len(one.arrivals()) == 2
    other.subscribe(subType=CommandSubscribe.Shared)
    other.flow()
    assert other.arrivals() == []
    one.session.close()
    assert [(one.values, one.command.redelivery_count) for one in other.arrivals()] == [([b"0"], 1), ([b"1"], 1)]


def active(client: ConsumingClient) -> list[bool]:
    """What the client was told of being active."""
    return [one.is_active for one in client.commands() if isinstance(one, CommandActiveConsumerChange)]


def test_failover_tells_who_is_active(broker: ConsumingConversation) -> None:
    first, second = broker.consumer(), broker.consumer()
    first.subscribe(consumer_name="b", priority_level=1, subType=CommandSubscribe.Failover)
    first.flow()
    assert active(first) == [True]
    second.subscribe(consumer_name="a", priority_level=0, subType=CommandSubscribe.Failover)
    second.flow()
    assert (active(first), active(second)) == ([False], [True])
    second.session.close()
    assert active(first) == [True]


def test_old_clients_are_not_told_what_they_do_not_know(broker: ConsumingConversation) -> None:
    client = broker.consumer(version=11)
    client.subscribe(subType=CommandSubscribe.Failover)
    client.flow()
    assert client.commands() == []


@pytest.mark.parametrize(
    ("client_version", "told"),
    [
        ("Pulsar-Java-v4.0.1", True),
        ("Pulsar-Client-Java-v1.15.2", True),
        ("by hand", True),
        ("Pulsar-CPP-v4.2.0", False),
        ("Pulsar-Go-v0.19.0", False),
        ("Pulsar Go 0.9.0", False),
        ("2.8.1", False),
    ],
)
def test_the_end_is_told_to_those_that_survive_it(
    broker: ConsumingConversation, client_version: str, told: bool
) -> None:
    client = broker.consumer(client_version=client_version)
    broker.publish(b"0")
    client.subscribe()
    client.flow()
    (arrival,) = client.arrivals()
    broker.wait(broker.broker.topics.terminate(broker.topic(), 0))
    assert client.commands() == []
    client.ack(arrival.id)
    assert [type(command) for command in client.commands()] == ([CommandReachedEndOfTopic] if told else [])


def test_a_client_before_version_5_loses_its_connection_with_its_consumer(broker: ConsumingConversation) -> None:
    client = broker.consumer(version=4)
    client.subscribe()
    client.flow()
    broker.wait(broker.broker.delete_topic(broker.topic()))
    assert client.commands() == []
    assert client.ended


def test_deleting_the_topic_closes_its_consumers(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    client.subscribe()
    client.flow()
    broker.wait(broker.broker.delete_topic(broker.topic()))
    (closed,) = client.commands()
    assert isinstance(closed, CommandCloseConsumer)
    assert (closed.consumer_id, closed.request_id) == (1, 2**64 - 1)
