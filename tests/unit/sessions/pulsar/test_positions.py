"""SEEK, GET_LAST_MESSAGE_ID, CONSUMER_STATS and UNSUBSCRIBE."""

import pytest

from millstream.model.frame import Attributes, frame_crc
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseConsumer,
    CommandConsumerStats,
    CommandError,
    CommandGetLastMessageId,
    CommandSeek,
    CommandSubscribe,
    CommandSuccess,
    CommandUnsubscribe,
    MessageIdData,
    ServerError,
)
from tests.unit.sessions.pulsar.conversation import ConsumingClient, ConsumingConversation, append_batch, kafka_batch

EARLIEST = MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
LATEST = MessageIdData(ledgerId=2**63 - 1, entryId=2**63 - 1)
NO_REQUEST = 2**64 - 1


@pytest.fixture
def broker() -> ConsumingConversation:
    return ConsumingConversation.with_topic()


def seek(client: ConsumingClient, **target: object) -> list[list[bytes]]:
    """Seek, come back, and give what is delivered then."""
    command = CommandSeek(consumer_id=1, request_id=9)
    for name, value in target.items():
        if isinstance(value, MessageIdData):
            command.message_id.CopyFrom(value)
        else:
            setattr(command, name, value)
    client.tell(command)
    closed, success = client.commands()
    assert isinstance(closed, CommandCloseConsumer)
    assert (closed.consumer_id, closed.request_id) == (1, NO_REQUEST)
    assert isinstance(success, CommandSuccess)
    client.subscribe()
    client.flow()
    return client.values()


def test_seeking_closes_the_consumers_before_it_answers(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0", b"1")
    middle_ms = broker.runtime.now_ms() + 500
    broker.pass_ms(1000)
    batch_id = broker.publish_batch(b"2", b"3", b"4")
    client.subscribe()
    client.flow()
    client.ack(client.arrivals()[-1].id, cumulative=True)
    assert seek(client, message_id=broker.id(1)) == [[b"1"], [b"2", b"3", b"4"]]
    assert seek(client, message_id=broker.id(batch_id, 1)) == [[b"3", b"4"]]
    assert seek(client, message_id=broker.id(batch_id, ack_set=[0b100])) == [[b"4"]], "as the Java client says it"
    assert seek(client, message_publish_time=middle_ms) == [[b"2", b"3", b"4"]]
    assert seek(client, message_publish_time=0) == [[b"0"], [b"1"], [b"2", b"3", b"4"]]
    assert seek(client, message_id=LATEST) == []
    assert seek(client, message_id=EARLIEST) == [[b"0"], [b"1"], [b"2", b"3", b"4"]]
    assert seek(client, message_publish_time=2**64 - 1) == []


def test_a_client_that_seeks_finds_the_ids_it_has_named(broker: ConsumingConversation) -> None:
    """It leaves out messages up to the one that it has named, by entry and index."""
    client = broker.consumer()
    broker.publish_batch(b"0", b"1", b"2")
    client.subscribe()
    client.tell(CommandSeek(consumer_id=1, request_id=9, message_id=broker.id(0, 1)))
    client.commands()
    client.subscribe()
    client.flow()
    (arrival,) = client.arrivals()
    assert (arrival.entry_id, list(arrival.command.ack_set)) == (0, [0b110])


def test_others_of_the_subscription_are_closed_too(broker: ConsumingConversation) -> None:
    one, other = broker.consumer(), broker.consumer()
    for client in (one, other):
        client.subscribe(subType=CommandSubscribe.Shared)
    one.tell(CommandSeek(consumer_id=1, request_id=9, message_id=EARLIEST))
    assert [type(command) for command in other.commands()] == [CommandCloseConsumer]


def test_nowhere_to_seek_to(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    client.subscribe()
    answer = client.request(CommandSeek(consumer_id=1, request_id=9))
    assert (answer.request_id, answer.error) == (9, ServerError.NotAllowedError)


@pytest.mark.parametrize(
    "command",
    [
        CommandSeek(consumer_id=5, request_id=9, message_publish_time=0),
        CommandGetLastMessageId(consumer_id=5, request_id=9),
        CommandUnsubscribe(consumer_id=5, request_id=9),
    ],
)
def test_a_consumer_that_is_not_there(broker: ConsumingConversation, command: CommandSeek) -> None:
    answer = broker.consumer().request(command)
    assert isinstance(answer, CommandError)
    assert (answer.request_id, answer.error) == (9, ServerError.ConsumerNotFound)


def test_closing_a_consumer_that_is_not_there_succeeds(broker: ConsumingConversation) -> None:
    answer = broker.consumer().request(CommandCloseConsumer(consumer_id=5, request_id=9))
    assert isinstance(answer, CommandSuccess)


def last(client: ConsumingClient) -> tuple[int, int, int]:
    """Entry id and batch index of the last message, and the entry id up to which all is acknowledged."""
    answer = client.request(CommandGetLastMessageId(consumer_id=1, request_id=9))
    found, mark = answer.last_message_id, answer.consumer_mark_delete_position
    return _signed(found.entryId), found.batch_index, _signed(mark.entryId)


def _signed(number: int) -> int:
    return number - 2**64 if number >> 63 else number


def test_the_last_message(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    client.subscribe()
    assert last(client) == (-1, -1, -1)
    broker.publish(b"0")
    assert last(client) == (0, -1, -1)
    broker.publish_batch(b"1")
    assert last(client) == (1, 0, -1), "a batch of one is a batch"
    broker.publish_batch(b"2", b"3", b"4")
    assert last(client) == (2, 2, -1)
    client.ack(broker.id(1), cumulative=True)
    assert last(client) == (2, 2, 1)
    client.ack(broker.id(3), cumulative=True)
    assert last(client) == (2, 2, 1), "the last entry is not done with as long as part of it is wanted"
    client.ack(broker.id(2), cumulative=True)
    assert last(client) == (2, 2, 4)


def test_the_last_message_of_another_protocol(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    client.subscribe()
    for values, expected in (([b"0", b"1"], (0, 1, -1)), ([b"2"], (2, -1, -1))):
        append_batch(broker.partition(), kafka_batch(values))
        assert last(client) == expected


def test_marks_of_transactions_are_no_messages(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    client.subscribe()
    broker.publish(b"0")
    frame = kafka_batch([b"mark"])
    frame[22] |= Attributes.CONTROL
    frame[17:21] = frame_crc(memoryview(frame)).to_bytes(4, "big")
    append_batch(broker.partition(), frame)
    assert last(client) == (0, -1, -1)


def test_figures(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0", b"1", b"2")
    client.subscribe(consumer_name="me", subType=CommandSubscribe.Shared)
    client.flow(10)
    client.ack(client.arrivals()[0].id)
    answer = client.request(CommandConsumerStats(consumer_id=1, request_id=9))
    assert (answer.consumerName, answer.type, answer.address) == ("me", "Shared", client.address)
    assert (answer.availablePermits, answer.unackedMessages, answer.msgBacklog) == (7, 2, 2)
    assert answer.msgRateOut > 0
    assert answer.connectedSince.startswith("2023-11-14T")
    answer = client.request(CommandConsumerStats(consumer_id=2, request_id=9))
    assert answer.error_code == ServerError.ConsumerNotFound


def test_ending_a_subscription(broker: ConsumingConversation) -> None:
    one, other = broker.consumer(), broker.consumer()
    for client in (one, other):
        client.subscribe(subType=CommandSubscribe.Shared)
    answer = one.request(CommandUnsubscribe(consumer_id=1, request_id=9))
    assert (type(answer), answer.error) == (CommandError, ServerError.ConsumerBusy)
    answer = one.request(CommandUnsubscribe(consumer_id=1, request_id=9, force=True))
    assert isinstance(answer, CommandSuccess)
    assert [type(command) for command in other.commands()] == [CommandCloseConsumer]
    assert broker.broker.subscriptions.names(broker.topic(), 0) == []


def test_who_ends_its_subscription_is_not_told_to_come_back(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    client.subscribe()
    answer = client.request(CommandUnsubscribe(consumer_id=1, request_id=9))
    assert isinstance(answer, CommandSuccess)
    answer = client.request(CommandCloseConsumer(consumer_id=1, request_id=10))
    assert isinstance(answer, CommandSuccess)
