"""Connecting consumers: who may, where they begin, and what happens to those that go away."""

from typing import Any

from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseConsumer,
    CommandError,
    CommandPing,
    CommandPong,
    CommandSubscribe,
    CommandSuccess,
    IntRange,
    KeySharedMeta,
    KeySharedMode,
    MessageIdData,
    ServerError,
)
from tests.unit.sessions.pulsar.conversation import ConsumingConversation, append_entry, single_entry

SUBSCRIBE = CommandSubscribe(
    topic="orders", subscription="s", consumer_id=1, request_id=7, subType=CommandSubscribe.Exclusive
)
EARLIEST = MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
LATEST = MessageIdData(ledgerId=2**63 - 1, entryId=2**63 - 1)


made = ConsumingConversation.with_topic


def reader(start: MessageIdData) -> dict[str, Any]:
    return {"subscription": "reader-0123456789", "durable": False, "start_message_id": start}


def test_nothing_is_delivered_before_permits_and_then_as_much_as_they_allow() -> None:
    broker = made()
    client = broker.consumer()
    first = broker.publish(b"0", b"1", b"2")
    assert isinstance(client.subscribe(), CommandSuccess)
    assert client.received() == []
    client.flow(2)
    arrivals = client.arrivals()
    assert [one.values for one in arrivals] == [[b"0"], [b"1"]]
    assert [one.entry_id for one in arrivals] == [first, first + 1]
    assert arrivals[0].command.message_id.partition == -1
    assert 0 < arrivals[0].command.message_id.ledgerId < 2**53
    client.flow(5)
    assert client.values() == [[b"2"]]
    broker.publish(b"3")
    assert client.values() == [[b"3"]]


def test_the_topic_is_made_only_if_the_client_wants_that() -> None:
    broker = ConsumingConversation()
    client = broker.consumer()
    answer = client.subscribe("new", force_topic_creation=False)
    assert isinstance(answer, CommandError)
    assert answer.error == ServerError.TopicNotFound
    assert isinstance(client.subscribe("new"), CommandSuccess)
    assert len(broker.topic("new").partitions) == 1


def test_initial_positions() -> None:
    broker = made()
    client = broker.consumer()
    broker.publish(b"before")
    client.subscribe(subscription="early", consumer_id=1, initialPosition=CommandSubscribe.Earliest)
    client.subscribe(subscription="late", consumer_id=2, initialPosition=CommandSubscribe.Latest)
    broker.publish(b"after")
    client.flow(consumer_id=1)
    assert client.values() == [[b"before"], [b"after"]]
    client.flow(consumer_id=2)
    assert client.values() == [[b"after"]]


def test_a_new_subscription_can_begin_some_seconds_ago() -> None:
    broker = made()
    broker.publish(b"old")
    broker.pass_ms(60_000)
    broker.publish(b"recent")
    client = broker.consumer()
    client.subscribe(start_message_rollback_duration_sec=30, initialPosition=CommandSubscribe.Latest)
    client.flow()
    assert client.values() == [[b"recent"]]


def test_readers_begin_at_an_id_whether_special_or_not() -> None:
    broker = made()
    client = broker.consumer()
    broker.publish(b"0")
    batch = broker.publish_batch(b"1", b"2", b"3")
    ledger_id = broker.id(0).ledgerId

    def values(start: MessageIdData) -> list[list[bytes]]:
        assert isinstance(client.subscribe(**reader(start)), CommandSuccess)
        client.flow()
        found = client.values()
        client.request(CommandCloseConsumer(consumer_id=1, request_id=99))
        return found

    assert values(EARLIEST) == [[b"0"], [b"1", b"2", b"3"]]
    assert values(LATEST) == []
    assert values(MessageIdData(ledgerId=ledger_id, entryId=batch)) == [[b"1", b"2", b"3"]]
    # The client itself leaves out the message that it has named, by its id: the entry keeps its own.
    assert values(MessageIdData(ledgerId=ledger_id, entryId=batch, batch_index=1)) == [[b"2", b"3"]]
    deleted = MessageIdData(ledgerId=ledger_id + 1, entryId=batch)
    assert values(deleted) == [[b"0"], [b"1", b"2", b"3"]], "an id of a topic of that name that is gone"


def test_a_subscription_that_is_not_durable_is_gone_with_its_consumer() -> None:
    broker = made()
    client = broker.consumer()
    client.subscribe(**reader(EARLIEST))
    assert broker.broker.subscriptions.names(broker.topic(), 0) == ["reader-0123456789"]
    client.session.close()
    assert broker.broker.subscriptions.names(broker.topic(), 0) == []


def test_asking_twice_is_answered_twice() -> None:
    broker = made()
    client = broker.consumer()
    assert isinstance(client.subscribe(), CommandSuccess)
    assert isinstance(client.subscribe(), CommandSuccess)
    broker.publish(b"0")
    client.flow()
    assert len(client.arrivals()) == 1


def test_an_exclusive_subscription_is_busy_while_its_consumer_answers() -> None:
    broker = made()
    holder, other = broker.consumer(), broker.consumer()
    holder.subscribe()
    other.tell(
        CommandSubscribe(
            topic="orders", subscription="s", consumer_id=1, request_id=7, subType=CommandSubscribe.Exclusive
        )
    )
    assert other.commands() == [], "the holder is asked first"
    assert [type(one) for one in holder.commands()] == [CommandPing]
    holder.tell(CommandPong())
    (answer,) = other.commands()
    assert isinstance(answer, CommandError)
    assert (answer.request_id, answer.error) == (7, ServerError.ConsumerBusy)
    holder.flow()
    broker.publish(b"0")
    assert len(holder.arrivals()) == 1


def test_a_consumer_that_is_there_no_more_makes_way() -> None:
    broker = made()
    holder, other = broker.consumer(), broker.consumer()
    holder.subscribe()
    other.tell(
        CommandSubscribe(
            topic="orders", subscription="s", consumer_id=1, request_id=7, subType=CommandSubscribe.Exclusive
        )
    )
    broker.pass_ms(6000)
    assert holder.ended == "it did not answer PING"
    assert [type(one) for one in other.commands()] == [CommandSuccess]
    other.flow()
    broker.publish(b"0")
    assert len(other.arrivals()) == 1


def test_a_second_exclusive_consumer_of_one_connection_is_busy_at_once() -> None:
    broker = made()
    client = broker.consumer()
    client.subscribe(consumer_id=1)
    answer = client.subscribe(consumer_id=2)
    assert isinstance(answer, CommandError)
    assert answer.error == ServerError.ConsumerBusy


def test_another_kind_is_refused_while_there_are_consumers() -> None:
    broker = made()
    client = broker.consumer()
    client.subscribe(consumer_id=1, subType=CommandSubscribe.Shared)
    answer = client.subscribe(consumer_id=2, subType=CommandSubscribe.Failover)
    assert answer.error == ServerError.ConsumerBusy


def test_sticky_ranges_must_not_overlap() -> None:
    broker = made()
    client = broker.consumer()

    def sticky(consumer_id: int, start: int, end: int) -> object:
        meta = KeySharedMeta(keySharedMode=KeySharedMode.STICKY, hashRanges=[IntRange(start=start, end=end)])
        return client.subscribe(consumer_id=consumer_id, subType=CommandSubscribe.Key_Shared, keySharedMeta=meta)

    assert isinstance(sticky(1, 0, 99), CommandSuccess)
    answer = sticky(2, 50, 200)
    assert isinstance(answer, CommandError)
    assert answer.error == ServerError.ConsumerAssignError
    assert isinstance(sticky(2, 100, 65535), CommandSuccess)


def test_what_no_subscription_can_be_is_refused_at_once() -> None:
    broker = made()
    client = broker.consumer()
    for fields in (
        {"subscription": ""},
        {"subscription": "x" * 1025},
        {"read_compacted": True, "subType": CommandSubscribe.Shared},
        {"priority_level": -1},
    ):
        answer = client.subscribe(**fields)
        assert isinstance(answer, CommandError)
        assert answer.error == ServerError.NotAllowedError


def test_partitions_are_topics_of_their_own() -> None:
    broker = made(partitions=3)
    client = broker.consumer()
    assert isinstance(client.subscribe("persistent://public/default/orders-partition-2"), CommandSuccess)
    client.flow()
    append_entry(broker.partition(index=2), single_entry(b"value", broker.runtime.now_ms()))
    (arrival,) = client.arrivals()
    assert arrival.command.message_id.partition == 2
    answer = client.subscribe("orders", consumer_id=2)
    assert answer.error == ServerError.TopicNotFound


def test_a_client_that_leaves_while_it_is_being_connected_leaves_nothing_behind() -> None:
    broker = made()
    client = broker.consumer()
    broker.runtime.hold("metadata")
    client.tell(
        CommandSubscribe(
            topic="orders", subscription="s", consumer_id=1, request_id=7, subType=CommandSubscribe.Exclusive
        )
    )
    client.session.close()
    broker.runtime.release("metadata")
    broker.runtime.run()
    subscription = broker.broker.subscriptions.find(broker.topic(), 0, "s")
    assert subscription is not None
    assert subscription.consumers == []


def test_closing_a_consumer_that_is_being_connected_wins() -> None:
    broker = made()
    client = broker.consumer()
    broker.runtime.hold("metadata")
    client.tell(
        CommandSubscribe(
            topic="orders", subscription="s", consumer_id=1, request_id=7, subType=CommandSubscribe.Exclusive
        )
    )
    client.tell(CommandCloseConsumer(consumer_id=1, request_id=8))
    broker.runtime.release("metadata")
    assert [(type(one), one.request_id) for one in client.commands() if isinstance(one, CommandSuccess)] == [
        (CommandSuccess, 8)
    ]
    assert isinstance(client.subscribe(), CommandSuccess)
