"""The commands of transactions, as clients send them."""

from collections.abc import Callable
from typing import Any

import pytest

from millstream.model.frame import read_frame_header, transaction_of
from millstream.sessions.pulsar.message_ids import ledger_id_of
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAck,
    CommandAckResponse,
    CommandAddPartitionToTxn,
    CommandAddPartitionToTxnResponse,
    CommandAddSubscriptionToTxn,
    CommandAddSubscriptionToTxnResponse,
    CommandEndTxn,
    CommandEndTxnOnPartition,
    CommandEndTxnOnPartitionResponse,
    CommandEndTxnOnSubscription,
    CommandEndTxnOnSubscriptionResponse,
    CommandEndTxnResponse,
    CommandFlow,
    CommandGetLastMessageId,
    CommandGetLastMessageIdResponse,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandMessage,
    CommandNewTxn,
    CommandNewTxnResponse,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    CommandSendError,
    CommandSendReceipt,
    CommandSubscribe,
    CommandSuccess,
    CommandTcClientConnectRequest,
    CommandTcClientConnectResponse,
    MessageIdData,
    ServerError,
    Subscription,
    TxnAction,
)
from tests.unit.sessions.pulsar.spoken import Client, Conversation

COORDINATOR = "persistent://pulsar/system/transaction_coordinator_assign"
ORDERS = "persistent://public/default/orders"


class Speaker:
    """A client that knows the commands of transactions."""

    def __init__(self, **settings: str) -> None:
        self.broker = Conversation(**settings)
        self.broker.create("orders")
        self.client: Client = self.broker.client()

    def connect(self, tc_id: int = 0) -> CommandTcClientConnectResponse:
        command = CommandTcClientConnectRequest(request_id=1, tc_id=tc_id)
        return self.client.ask(command, CommandTcClientConnectResponse)

    def begin(self, **fields: Any) -> CommandNewTxnResponse:
        return self.client.ask(CommandNewTxn(request_id=2, **fields), CommandNewTxnResponse)

    def add_partition(self, number: int, *topics: str) -> CommandAddPartitionToTxnResponse:
        command = CommandAddPartitionToTxn(
            request_id=3, txnid_least_bits=number, txnid_most_bits=0, partitions=topics or [ORDERS]
        )
        return self.client.ask(command, CommandAddPartitionToTxnResponse)

    def add_subscription(self, number: int, name: str = "s") -> CommandAddSubscriptionToTxnResponse:
        command = CommandAddSubscriptionToTxn(
            request_id=4, txnid_least_bits=number, subscription=[Subscription(topic=ORDERS, subscription=name)]
        )
        return self.client.ask(command, CommandAddSubscriptionToTxnResponse)

    def end(self, number: int, action: TxnAction = TxnAction.COMMIT, most: int = 0) -> CommandEndTxnResponse:
        command = CommandEndTxn(request_id=5, txnid_least_bits=number, txnid_most_bits=most, txn_action=action)
        return self.client.ask(command, CommandEndTxnResponse)

    def subscribe(self) -> None:
        self.client.ask(
            CommandSubscribe(
                topic=ORDERS,
                subscription="s",
                subType=CommandSubscribe.Shared,
                consumer_id=1,
                request_id=6,
                initialPosition=CommandSubscribe.Earliest,
            ),
            CommandSuccess,
        )
        self.client.tell(CommandFlow(consumer_id=1, messagePermits=100))

    def received(self) -> list[int]:
        """Entry ids of what has come."""
        return [one.message_id.entryId for one in self.client.taken() if isinstance(one, CommandMessage)]

    def acknowledge(self, number: int, entry_id: int) -> CommandAckResponse:
        ledger_id = ledger_id_of(self.broker.topic())
        command = CommandAck(
            consumer_id=1,
            ack_type=CommandAck.Individual,
            message_id=[MessageIdData(ledgerId=ledger_id, entryId=entry_id)],
            txnid_least_bits=number,
            txnid_most_bits=0,
            request_id=7,
        )
        return self.client.ask(command, CommandAckResponse)


def test_the_coordinator_is_found_by_its_topic() -> None:
    speaker = Speaker()
    client = speaker.client
    metadata = CommandPartitionedTopicMetadata(topic=COORDINATOR, request_id=1)
    assert client.ask(metadata, CommandPartitionedTopicMetadataResponse).partitions == 1
    lookup = CommandLookupTopic(topic=f"{COORDINATOR}-partition-0", request_id=2)
    assert client.ask(lookup, CommandLookupTopicResponse).brokerServiceUrl == "pulsar://here:6650"
    assert not speaker.connect().HasField("error")
    assert speaker.connect(tc_id=3).error == ServerError.TransactionCoordinatorNotFound
    assert speaker.broker.broker.topics.by_flat_name("transaction_coordinator_assign-partition-0") is None


def test_switched_off() -> None:
    speaker = Speaker(pulsar__transactions__enable="false")
    metadata = CommandPartitionedTopicMetadata(topic=COORDINATOR, request_id=1)
    answer = speaker.client.ask(metadata, CommandPartitionedTopicMetadataResponse)
    assert answer.error == ServerError.NotAllowedError
    assert speaker.connect().error == ServerError.NotAllowedError
    assert speaker.begin().error == ServerError.NotAllowedError


def test_messages_are_hidden_until_the_commit() -> None:
    speaker = Speaker()
    speaker.client.produce(txn_enabled=True)
    speaker.subscribe()
    number = speaker.begin(txn_ttl_seconds=60_000).txnid_least_bits
    assert not speaker.add_partition(number).HasField("error")
    (receipt,) = speaker.client.publish(0, txnid_least_bits=number, txnid_most_bits=0)
    assert isinstance(receipt, CommandSendReceipt)
    assert receipt.message_id.entryId == 0
    speaker.client.publish(1)
    assert speaker.received() == []
    frame, _ = speaker.broker.topic().partitions[0].log.read(0, 1)
    assert transaction_of(read_frame_header(frame)) == number
    last = CommandGetLastMessageId(consumer_id=1, request_id=9)
    answer = speaker.client.ask(last, CommandGetLastMessageIdResponse)
    assert answer.last_message_id.entryId == 2**64 - 1, "nothing is there yet"
    end = CommandEndTxn(request_id=5, txnid_least_bits=number, txn_action=TxnAction.COMMIT)
    speaker.client.tell(end)
    answers = speaker.client.taken()
    assert [one.message_id.entryId for one in answers if isinstance(one, CommandMessage)] == [0, 1]
    assert [one.HasField("error") for one in answers if isinstance(one, CommandEndTxnResponse)] == [False]
    assert not speaker.end(number).HasField("error"), "asked again, it is the same answer"
    assert speaker.end(number, TxnAction.ABORT).error == ServerError.InvalidTxnStatus


def test_aborted_messages_are_no_last_messages() -> None:
    speaker = Speaker()
    speaker.client.produce()
    speaker.client.publish(0)
    speaker.subscribe()
    number = speaker.begin().txnid_least_bits
    speaker.add_partition(number)
    speaker.client.publish(1, txnid_least_bits=number, txnid_most_bits=0)
    speaker.end(number, TxnAction.ABORT)
    last = CommandGetLastMessageId(consumer_id=1, request_id=9)
    assert speaker.client.ask(last, CommandGetLastMessageIdResponse).last_message_id.entryId == 0


def test_a_message_outside_its_transaction_is_refused_in_a_way_that_clients_tell() -> None:
    speaker = Speaker()
    speaker.client.produce()
    number = speaker.begin().txnid_least_bits
    for least, most in ((number, 0), (number + 7, 0), (number, 1)):
        (answer,) = speaker.client.publish(0, txnid_least_bits=least, txnid_most_bits=most)
        assert isinstance(answer, CommandSendError)
        assert answer.error == ServerError.NotAllowedError
    assert speaker.broker.topic().partitions[0].log.end_offset == 0


def test_acknowledgements() -> None:
    speaker = Speaker()
    speaker.client.produce()
    for n in range(2):
        speaker.client.publish(n)
    speaker.subscribe()
    first, second = speaker.begin().txnid_least_bits, speaker.begin().txnid_least_bits
    assert speaker.acknowledge(first, 0).error == ServerError.InvalidTxnStatus, "the subscription was not added"
    for number in (first, second):
        assert not speaker.add_subscription(number).HasField("error")
    answer = speaker.acknowledge(first, 0)
    assert not answer.HasField("error")
    assert (answer.txnid_least_bits, answer.request_id) == (first, 7)
    assert speaker.acknowledge(second, 0).error == ServerError.TransactionConflict
    assert speaker.acknowledge(first + 99, 0).error == ServerError.TransactionNotFound
    speaker.end(first)
    subscription = speaker.broker.broker.subscriptions.find(speaker.broker.topic(), 0, "s")
    assert subscription is not None
    assert subscription.position == 1


def test_what_does_not_exist() -> None:
    speaker = Speaker()
    number = speaker.begin().txnid_least_bits
    assert speaker.add_partition(number, "nowhere").error == ServerError.TopicNotFound
    assert speaker.add_partition(number, "non-persistent://public/default/x").error == ServerError.NotAllowedError
    assert speaker.add_partition(number + 1).error == ServerError.TransactionNotFound
    assert speaker.add_subscription(number, "nobody").error == ServerError.SubscriptionNotFound
    assert speaker.end(number + 1).error == ServerError.TransactionNotFound
    assert speaker.end(number, most=1).error == ServerError.TransactionNotFound
    assert speaker.begin(tc_id=9).error == ServerError.TransactionCoordinatorNotFound
    assert speaker.begin(txn_ttl_seconds=10**12).error == ServerError.NotAllowedError


@pytest.mark.parametrize("on_subscription", [False, True])
def test_what_coordinators_send_to_brokers(on_subscription: bool) -> None:
    speaker = Speaker()
    number = speaker.begin().txnid_least_bits

    def ask(least: int, action: TxnAction) -> Any:
        if on_subscription:
            command = CommandEndTxnOnSubscription(
                request_id=8,
                txnid_least_bits=least,
                subscription=Subscription(topic=ORDERS, subscription="s"),
                txn_action=action,
            )
            return speaker.client.ask(command, CommandEndTxnOnSubscriptionResponse)
        other = CommandEndTxnOnPartition(request_id=8, txnid_least_bits=least, topic=ORDERS, txn_action=action)
        return speaker.client.ask(other, CommandEndTxnOnPartitionResponse)

    told: Callable[[int, TxnAction], Any] = ask
    assert told(number, TxnAction.COMMIT).error == ServerError.InvalidTxnStatus, "it is ended as a whole"
    speaker.end(number)
    assert not told(number, TxnAction.COMMIT).HasField("error")
    assert told(number, TxnAction.ABORT).error == ServerError.InvalidTxnStatus
    assert told(number + 1, TxnAction.ABORT).error == ServerError.TransactionNotFound
