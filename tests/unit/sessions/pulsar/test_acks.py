"""ACK and REDELIVER_UNACKNOWLEDGED_MESSAGES."""

import pytest

from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAck,
    CommandAckResponse,
    CommandCloseConsumer,
    CommandRedeliverUnacknowledgedMessages,
    CommandSubscribe,
    MessageIdData,
    ServerError,
)
from tests.unit.sessions.pulsar.conversation import ConsumingConversation

BEFORE_THE_FIRST = 2**64 - 1


@pytest.fixture
def broker() -> ConsumingConversation:
    return ConsumingConversation.with_topic()


def test_single_acknowledgements_in_one_command_repeated_and_unknown(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0", b"1", b"2", b"3")
    client.subscribe()
    client.flow()
    arrivals = client.arrivals()
    of_another_topic = MessageIdData(ledgerId=arrivals[0].id.ledgerId + 1, entryId=3)
    nowhere = broker.id(1000), broker.id(-1)
    client.ack(arrivals[0].id, arrivals[0].id, arrivals[2].id, of_another_topic, *nowhere)
    assert broker.position() == 1
    client.ack(arrivals[1].id)
    assert broker.position() == 3
    assert client.commands() == []


def test_an_acknowledgement_is_answered_once_it_lasts(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0")
    client.subscribe()
    client.flow()
    (arrival,) = client.arrivals()
    broker.runtime.hold("metadata")
    client.ack(arrival.id, request_id=77)
    assert client.commands() == []
    broker.runtime.release("metadata")
    (answer,) = client.commands()
    assert isinstance(answer, CommandAckResponse)
    assert (answer.consumer_id, answer.request_id, answer.HasField("error")) == (1, 77, False)
    client.ack(arrival.id, request_id=78)
    assert [one.request_id for one in client.commands()] == [78]


def test_an_acknowledgement_that_cannot_be_stored_is_refused(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0")
    client.subscribe()
    client.flow()
    (arrival,) = client.arrivals()
    broker.store.failing = True
    client.ack(arrival.id, request_id=77)
    (answer,) = client.commands()
    assert answer.error == ServerError.MetadataError
    broker.store.failing = False


def test_a_transaction_that_is_not_there_acknowledges_nothing(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0")
    client.subscribe()
    client.ack(broker.id(0), request_id=77, txnid_least_bits=1, txnid_most_bits=0)
    (answer,) = client.commands()
    assert (answer.error, answer.txnid_least_bits) == (ServerError.TransactionNotFound, 1)
    assert broker.position() == 0


def test_an_unknown_consumer_is_passed_over_silently(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    client.ack(broker.id(0), consumer_id=9, request_id=77)
    client.flow(consumer_id=9)
    client.tell(CommandRedeliverUnacknowledgedMessages(consumer_id=9))
    assert client.commands() == []


def test_a_message_that_the_client_could_not_read_counts_as_acknowledged(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0")
    client.subscribe()
    client.ack(broker.id(0), validation_error=CommandAck.ChecksumMismatch)
    assert broker.position() == 1


def test_everything_up_to_an_entry(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0")
    broker.publish_batch(b"1", b"2", b"3")
    broker.publish_batch(b"4", b"5", b"6")
    client.subscribe()
    client.ack(broker.id(BEFORE_THE_FIRST), cumulative=True)
    assert broker.position() == 0, "before the first entry"
    client.ack(broker.id(1), cumulative=True)
    assert broker.position() == 4
    client.ack(broker.id(4, ack_set=[0b100]), cumulative=True)
    assert broker.position() == 6
    client.ack(broker.id(0), cumulative=True)
    client.ack(broker.id(1000), cumulative=True)
    client.ack(broker.id(4), broker.id(4), cumulative=True)
    assert broker.position() == 6
    client.ack(broker.id(4), cumulative=True)
    assert broker.position() == 7


def test_the_entry_before_a_batch_is_named_by_its_last_message(broker: ConsumingConversation) -> None:
    """A client that acknowledges up to the middle of the batch at 4 names the entry before: 3."""
    client = broker.consumer()
    broker.publish(b"0")
    broker.publish_batch(b"1", b"2", b"3")
    broker.publish_batch(b"4", b"5", b"6")
    client.subscribe()
    client.ack(broker.id(4 - 1), cumulative=True)
    assert broker.position() == 4


def test_cumulative_acknowledgements_of_shared_subscriptions_are_passed_over(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0", b"1")
    client.subscribe(subType=CommandSubscribe.Shared)
    client.flow()
    client.ack(client.arrivals()[-1].id, cumulative=True)
    assert broker.position() == 0


def test_bits_of_several_acknowledgements_are_joined(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish_batch(*(b"%d" % number for number in range(100)))
    client.subscribe(subType=CommandSubscribe.Shared)
    client.flow()
    client.arrivals()
    everything = 2**100 - 1
    for done in (1, 70, 99):
        wanted = everything ^ 1 << done
        words = [wanted & 2**64 - 1, wanted >> 64]
        client.ack(broker.id(0, ack_set=[word - 2**64 if word >> 63 else word for word in words]))
    client.request(CommandCloseConsumer(consumer_id=1, request_id=1))
    client.subscribe(subType=CommandSubscribe.Shared)
    client.flow()
    (arrival,) = client.arrivals()
    assert arrival.values == [b"%d" % number for number in range(100) if number not in (1, 70, 99)]
    client.ack(arrival.id)
    assert broker.position() == 100


def test_holes_outlive_a_restart(broker: ConsumingConversation, tmp_path: object) -> None:
    broker = ConsumingConversation(f"{tmp_path}/metadata.db")
    broker.create()
    client = broker.consumer()
    broker.publish(b"0", b"1", b"2", b"3")
    client.subscribe()
    client.flow()
    arrivals = client.arrivals()
    client.ack(arrivals[1].id, arrivals[3].id, request_id=1)
    assert len(client.commands()) == 1
    broker.kill()
    broker.start()
    client = broker.consumer()
    client.subscribe()
    client.flow()
    assert client.values() == [[b"0"], [b"2"]]


def test_redelivery_counts_on_shared_subscriptions(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0", b"1", b"2")
    client.subscribe(subType=CommandSubscribe.Shared)
    client.flow()
    arrivals = client.arrivals()
    assert {one.command.redelivery_count for one in arrivals} == {0}
    client.tell(CommandRedeliverUnacknowledgedMessages(consumer_id=1, message_ids=[arrivals[1].id]))
    (repeated,) = client.arrivals()
    assert (repeated.values, repeated.command.redelivery_count) == ([b"1"], 1)
    client.ack(arrivals[0].id)
    client.tell(CommandRedeliverUnacknowledgedMessages(consumer_id=1))
    left = client.arrivals()
    assert [(one.values, one.command.redelivery_count) for one in left] == [([b"1"], 2), ([b"2"], 1)]


def test_redelivery_rewinds_exclusive_subscriptions_and_gives_the_epoch_back(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0", b"1", b"2")
    client.subscribe(consumer_epoch=3)
    client.flow()
    arrivals = client.arrivals()
    assert {one.command.consumer_epoch for one in arrivals} == {3}
    client.ack(arrivals[0].id)
    client.tell(CommandRedeliverUnacknowledgedMessages(consumer_id=1, message_ids=[arrivals[2].id], consumer_epoch=4))
    left = client.arrivals()
    assert [one.values for one in left] == [[b"1"], [b"2"]]
    assert {one.command.consumer_epoch for one in left} == {4}


def test_no_epoch_is_told_to_those_that_gave_none(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0")
    client.subscribe()
    client.flow()
    assert not client.arrivals()[0].command.HasField("consumer_epoch")
