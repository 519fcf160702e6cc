"""non-persistent:// topics, as clients see them."""

from typing import Any

from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAck,
    CommandAckResponse,
    CommandCloseConsumer,
    CommandCloseProducer,
    CommandConsumerStats,
    CommandConsumerStatsResponse,
    CommandError,
    CommandFlow,
    CommandGetLastMessageId,
    CommandGetTopicsOfNamespace,
    CommandGetTopicsOfNamespaceResponse,
    CommandMessage,
    CommandProducer,
    CommandProducerSuccess,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSendError,
    CommandSendReceipt,
    CommandSubscribe,
    CommandSuccess,
    MessageIdData,
    ProducerAccessMode,
    ServerError,
)
from tests.unit.sessions.pulsar.spoken import Client, Conversation

TOPIC = "non-persistent://public/default/news"
NOWHERE = 2**64 - 1


def subscribe(client: Client, permits: int = 100, number: int = 1, **fields: Any) -> None:
    command = CommandSubscribe(
        topic=TOPIC,
        subscription="s",
        subType=CommandSubscribe.Exclusive,
        consumer_id=number,
        request_id=number,
        **fields,
    )
    client.ask(command, CommandSuccess)
    client.tell(CommandFlow(consumer_id=number, messagePermits=permits))


def names(client: Client, mode: CommandGetTopicsOfNamespace.Mode) -> list[str]:
    command = CommandGetTopicsOfNamespace(request_id=1, namespace="public/default", mode=mode)
    return list(client.ask(command, CommandGetTopicsOfNamespaceResponse).topics)


def test_messages_are_delivered_and_receipts_grow() -> None:
    broker = Conversation()
    client, reader = broker.client(), broker.client()
    assert client.produce(TOPIC).HasField("schema_version"), "the Java client fails without"
    lost = client.publish(0)
    subscribe(reader, permits=2)
    reader.taken()
    receipts = [*lost, *client.publish(1), *client.publish(2), *client.publish(3)]
    assert all(isinstance(receipt, CommandSendReceipt) for receipt in receipts)
    assert [receipt.message_id.entryId for receipt in receipts if isinstance(receipt, CommandSendReceipt)] == [
        0,
        1,
        2,
        3,
    ]
    messages = [one for one in reader.taken() if isinstance(one, CommandMessage)]
    assert [one.message_id.entryId for one in messages] == [1, 2], "there were permits for two"
    assert len(reader.entries) == 2
    assert broker.broker.topics.by_flat_name("news") is None, "nothing of it is kept"


def test_the_topic_is_listed_as_long_as_somebody_is_connected() -> None:
    broker = Conversation()
    broker.create("kept")
    client = broker.client()
    kept = "persistent://public/default/kept"
    assert names(client, CommandGetTopicsOfNamespace.ALL) == [kept]
    client.produce(TOPIC)
    assert names(client, CommandGetTopicsOfNamespace.ALL) == [TOPIC, kept]
    assert names(client, CommandGetTopicsOfNamespace.NON_PERSISTENT) == [TOPIC]
    assert names(client, CommandGetTopicsOfNamespace.PERSISTENT) == [kept]
    client.ask(CommandCloseProducer(producer_id=1, request_id=2), CommandSuccess)
    assert names(client, CommandGetTopicsOfNamespace.NON_PERSISTENT) == []
    other = broker.client()
    subscribe(other)
    assert names(client, CommandGetTopicsOfNamespace.NON_PERSISTENT) == [TOPIC]
    other.session.close()
    assert names(client, CommandGetTopicsOfNamespace.NON_PERSISTENT) == []


def test_consumers_commands() -> None:
    broker = Conversation()
    client = broker.client()
    subscribe(client)
    ack = CommandAck(
        consumer_id=1, ack_type=CommandAck.Individual, message_id=[MessageIdData(ledgerId=1, entryId=0)], request_id=5
    )
    assert not client.ask(ack, CommandAckResponse).HasField("error")
    client.taken()
    client.tell(CommandRedeliverUnacknowledgedMessages(consumer_id=1))
    assert client.taken() == []
    for command in (
        CommandSeek(consumer_id=1, request_id=6, message_publish_time=1),
        CommandGetLastMessageId(consumer_id=1, request_id=6),
    ):
        assert client.refused(command).error == ServerError.NotAllowedError
    stats = client.ask(CommandConsumerStats(consumer_id=1, request_id=7), CommandConsumerStatsResponse)
    assert (stats.availablePermits, stats.type) == (100, "Exclusive")
    client.ask(CommandCloseConsumer(consumer_id=1, request_id=8), CommandSuccess)
    assert list(broker.broker.volatile) == []


def test_what_is_refused() -> None:
    broker = Conversation()
    client, other = broker.client(), broker.client()
    subscribe(client)
    second = CommandSubscribe(
        topic=TOPIC, subscription="s", subType=CommandSubscribe.Shared, consumer_id=9, request_id=1
    )
    assert other.refused(second).error == ServerError.ConsumerBusy
    compacted = CommandSubscribe(
        topic=TOPIC,
        subscription="t",
        subType=CommandSubscribe.Exclusive,
        consumer_id=9,
        request_id=1,
        read_compacted=True,
    )
    assert other.refused(compacted).error == ServerError.NotAllowedError
    elsewhere = CommandProducer(topic="non-persistent://no/where/x", producer_id=1, request_id=1)
    assert other.refused(elsewhere).error == ServerError.TopicNotFound
    other.produce(TOPIC)
    (answer,) = other.publish(0, txnid_least_bits=1, txnid_most_bits=0)
    assert isinstance(answer, CommandSendError)
    assert answer.error == ServerError.NotAllowedError
    assert [one.users for one in broker.broker.volatile] == [2]


def test_a_consumer_whose_connection_is_dead_makes_room() -> None:
    broker = Conversation()
    dead, client = broker.client(), broker.client()
    subscribe(dead)
    command = CommandSubscribe(
        topic=TOPIC, subscription="s", subType=CommandSubscribe.Exclusive, consumer_id=1, request_id=1
    )
    client.taken()
    client.tell(command)
    assert client.taken() == [], "the other one is asked first"
    broker.pass_ms(6000)
    assert [type(one) for one in client.taken()] == [CommandSuccess]
    assert dead.ended


def test_access_modes() -> None:
    broker = Conversation()
    client, other = broker.client(), broker.client()
    client.produce(TOPIC, producer_access_mode=ProducerAccessMode.Exclusive)
    command = CommandProducer(topic=TOPIC, producer_id=1, request_id=1)
    assert other.ask(command, CommandError).error == ServerError.ProducerBusy
    waiting = CommandProducer(
        topic=TOPIC, producer_id=2, request_id=2, producer_access_mode=ProducerAccessMode.WaitForExclusive
    )
    assert other.ask(waiting, CommandProducerSuccess).producer_ready is False
    client.session.close()
    broker.runtime.run()
    ready = [one for one in other.taken() if isinstance(one, CommandProducerSuccess)]
    assert [one.producer_ready for one in ready] == [True]


def test_too_many_under_way_are_dropped() -> None:
    broker = Conversation()
    broker.create("kept")
    client, reader = broker.client(), broker.client()
    subscribe(reader, permits=5000)
    client.produce("kept", number=1)
    client.produce(TOPIC, number=2)
    broker.runtime.hold("flush")
    client.publish(0, number=1)  # its receipt waits for the disk, and those behind it as well
    for n in range(1002):
        client.publish(n, number=2)
    broker.runtime.release("flush")
    broker.runtime.run()
    receipts = [one for one in client.taken() if isinstance(one, CommandSendReceipt) and one.producer_id == 2]
    dropped = [one for one in receipts if one.message_id.entryId == NOWHERE]
    assert (len(receipts), len(dropped)) == (1002, 2)
