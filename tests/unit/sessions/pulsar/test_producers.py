"""Producers: connecting, sending, receipts in order, refusals, and leaving."""

import pytest

from millstream.broker.namespaces import AutoTopicCreation
from millstream.storage.flusher import FLUSH_LANE
from millstream.wire.pulsar.errors import MalformedFrame
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseProducer,
    CommandError,
    CommandPing,
    CommandPong,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
    CommandSendError,
    CommandSendReceipt,
    CommandSuccess,
    ProducerAccessMode,
    ServerError,
)
from tests.unit.sessions.pulsar.spoken import Conversation, entry

NOWHERE = 2**64 - 1


@pytest.fixture
def there() -> Conversation:
    return Conversation()


def test_a_message_is_stored_as_it_was_sent_and_answered_once_it_is_safe(there: Conversation) -> None:
    client = there.client()
    client.produce()
    there.runtime.hold(FLUSH_LANE)
    assert client.publish(7, b"hello") == []
    there.runtime.release(FLUSH_LANE)
    there.runtime.run()
    (receipt,) = client.taken()
    assert isinstance(receipt, CommandSendReceipt)
    assert (receipt.producer_id, receipt.sequence_id, receipt.message_id.entryId) == (1, 7, 0)
    assert receipt.message_id.partition == -1
    log = there.topic().partitions[0].log
    assert bytes(log.read(0, 1000)[0][61:]) == entry(b"hello", 7)
    assert [record.value for record in there.records()] == [b"hello"]


def test_receipts_keep_the_order_of_the_messages(there: Conversation) -> None:
    client = there.client()
    client.produce("a", 1)
    client.produce("b", 2)
    there.runtime.hold(FLUSH_LANE)
    for n in range(50):
        client.publish(n, number=1 + n % 2)
    client.tell(CommandCloseProducer(producer_id=1, request_id=9))
    assert client.taken() == []
    there.runtime.release(FLUSH_LANE)
    there.runtime.run()
    *receipts, closed = client.taken()
    assert [one.sequence_id for one in receipts if isinstance(one, CommandSendReceipt)] == list(range(50))
    assert isinstance(closed, CommandSuccess)


def test_a_peer_that_sends_faster_than_the_disk_takes_is_held(there: Conversation) -> None:
    client = there.client()
    client.produce()
    there.runtime.hold(FLUSH_LANE)
    for n in range(1000):
        client.publish(n)
    assert client.holds == 1
    there.runtime.release(FLUSH_LANE)
    there.runtime.run()
    assert (client.holds, len(client.taken())) == (0, 1000)


def test_a_batch_takes_as_many_offsets_as_it_has_messages(there: Conversation) -> None:
    client = there.client()
    client.produce()
    batch = b"".join(b"\x00\x00\x00\x02\x18\x01" + value for value in (b"a", b"b", b"c"))
    command = CommandSend(producer_id=1, sequence_id=0, num_messages=3, highest_sequence_id=2)
    receipt = client.ask(command, CommandSendReceipt, entry(batch, 0, count=3))
    assert (receipt.message_id.entryId, receipt.highest_sequence_id) == (0, 2)
    assert [(record.offset, record.value) for record in there.records()] == [(0, b"a"), (1, b"b"), (2, b"c")]
    (second,) = client.publish(3)
    assert isinstance(second, CommandSendReceipt)
    assert second.message_id.entryId == 3


def test_a_wrong_checksum_is_told_and_nothing_is_stored(there: Conversation) -> None:
    client = there.client()
    client.produce()
    client.publish(0)
    damaged = bytearray(entry(b"hello", 1))
    damaged[-1] ^= 1
    answer = client.ask(CommandSend(producer_id=1, sequence_id=1), CommandSendError, bytes(damaged))
    assert (answer.sequence_id, answer.error) == (1, ServerError.ChecksumError)
    assert len(there.records()) == 1


def test_an_entry_that_makes_no_sense_is_refused(there: Conversation) -> None:
    client = there.client()
    client.produce()
    for payload in (b"", b"\x00\x00\x00\x09abc", entry(count=1000)):
        answer = client.ask(CommandSend(producer_id=1, sequence_id=0), CommandSendError, payload)
        assert answer.error == ServerError.NotAllowedError
    assert there.records() == []


def test_a_message_without_a_producer_costs_the_connection(there: Conversation) -> None:
    client = there.client()
    with pytest.raises(MalformedFrame, match="not connected"):
        client.publish()
    client.produce()
    client.tell(CommandCloseProducer(producer_id=1, request_id=2))
    with pytest.raises(MalformedFrame, match="not connected"):
        client.publish()


def test_closing_what_is_not_there_succeeds(there: Conversation) -> None:
    there.client().ask(CommandCloseProducer(producer_id=5, request_id=2), CommandSuccess)


def test_names_are_given_and_used_once(there: Conversation) -> None:
    client, other = there.client(), there.client()
    assert client.produce().producer_name
    assert client.produce(number=2, producer_name="mine").producer_name == "mine"
    assert client.refused(
        CommandProducer(topic="orders", producer_id=3, request_id=3, producer_name="mine")
    ).error == (ServerError.ProducerBusy)
    wanted = CommandProducer(topic="orders", producer_id=3, request_id=3, producer_name="mine")
    other.tell(wanted)
    assert [type(one) for one in client.taken()] == [CommandPing]  # is it there?
    client.tell(CommandPong())
    (refusal,) = other.taken()
    assert isinstance(refusal, CommandError)
    assert refusal.error == ServerError.ProducerBusy
    other.tell(wanted)
    there.pass_ms(5_000)  # it is not
    assert client.ended
    assert [type(one) for one in other.taken()] == [CommandProducerSuccess]


def test_the_same_request_again_has_the_same_answer(there: Conversation) -> None:
    client = there.client()
    assert client.produce().producer_name == client.produce().producer_name
    assert client.produce(epoch=1, producer_name="x").producer_name == "x"
    assert [producer.name for producer in there.broker.producers.of(there.topic().id, 0)] == ["x"]


def test_who_waits_to_be_alone_is_told_twice(there: Conversation) -> None:
    client, other = there.client(), there.client()
    client.produce()
    waiting = other.produce(number=4, producer_access_mode=ProducerAccessMode.WaitForExclusive)
    assert (waiting.request_id, waiting.producer_ready) == (4, False)
    client.tell(CommandCloseProducer(producer_id=1, request_id=2))
    (ready,) = other.taken()
    assert isinstance(ready, CommandProducerSuccess)
    assert (ready.request_id, ready.producer_ready, ready.topic_epoch) == (4, True, 0)
    assert (
        client.refused(CommandProducer(topic="orders", producer_id=7, request_id=7)).error == ServerError.ProducerBusy
    )


def test_who_is_fenced_off_is_told_to_close_and_its_messages_are_passed_over(there: Conversation) -> None:
    client, other = there.client(), there.client()
    client.produce(producer_access_mode=ProducerAccessMode.Exclusive)
    other.produce(producer_access_mode=ProducerAccessMode.ExclusiveWithFencing)
    (closed,) = client.taken()
    assert isinstance(closed, CommandCloseProducer)
    assert client.publish() == []
    assert there.records() == []
    fenced = CommandProducer(topic="orders", producer_id=1, request_id=2, topic_epoch=0)
    fenced.producer_access_mode = ProducerAccessMode.Exclusive
    assert client.refused(fenced).error == ServerError.ProducerFenced


def test_nothing_is_written_to_what_was_terminated(there: Conversation) -> None:
    client = there.client()
    client.produce()
    client.publish()
    there.wait(there.broker.topics.terminate(there.topic(), 0))
    (refusal,) = client.publish(1)
    assert isinstance(refusal, CommandSendError)
    assert refusal.error == ServerError.TopicTerminatedError
    refused = client.refused(CommandProducer(topic="orders", producer_id=2, request_id=2))
    assert refused.error == ServerError.TopicTerminatedError


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ("persistent://nobody/default/orders", ServerError.TopicNotFound),
        ("persistent://public/nothing/orders", ServerError.TopicNotFound),
        ("a/b", ServerError.InvalidTopicName),
    ],
)
def test_topics_that_cannot_be(there: Conversation, topic: str, error: ServerError) -> None:
    assert there.client().refused(CommandProducer(topic=topic, producer_id=1, request_id=1)).error == error


def test_a_namespace_may_make_no_topics_or_partitioned_ones(there: Conversation) -> None:
    namespaces = there.broker.namespaces
    namespace = namespaces.get("public", "default")
    there.wait(namespaces.set_policies(namespace, auto_topic_creation=AutoTopicCreation(allowed=False)))
    refused = there.client().refused(CommandProducer(topic="orders", producer_id=1, request_id=1))
    assert refused.error == ServerError.TopicNotFound
    there.wait(namespaces.set_policies(namespace, auto_topic_creation=AutoTopicCreation(allowed=True, partitions=2)))
    refused = there.client().refused(CommandProducer(topic="orders", producer_id=1, request_id=1))
    assert refused.error == ServerError.TopicNotFound  # partitioned: its partitions have names of their own
    there.client().produce("orders-partition-1")
    assert len(there.topic().partitions) == 2


def test_a_namespace_limits_producers(there: Conversation) -> None:
    namespaces = there.broker.namespaces
    there.wait(namespaces.set_policies(namespaces.get("public", "default"), producers_per_topic_max=2))
    client = there.client()
    client.produce(number=1)
    client.produce(number=2)
    refused = client.refused(CommandProducer(topic="orders", producer_id=3, request_id=3))
    assert refused.error == ServerError.NotAllowedError


def deduplicated(there: Conversation) -> None:
    namespaces = there.broker.namespaces
    there.wait(namespaces.set_policies(namespaces.get("public", "default"), deduplication=True))


def test_a_message_that_comes_again_is_stored_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    there = Conversation(str(tmp_path_factory.mktemp("d") / "metadata.sqlite"))
    deduplicated(there)
    client = there.client()
    assert client.produce(producer_name="p").last_sequence_id == -1
    for sequence_id in (0, 1, 1):
        client.publish(sequence_id)
    (receipt,) = client.publish(0)
    assert isinstance(receipt, CommandSendReceipt)
    assert (receipt.message_id.ledgerId, receipt.message_id.entryId) == (NOWHERE, NOWHERE)
    assert len(there.records()) == 2
    there.kill()
    there.start()
    client = there.client()
    assert client.produce(producer_name="p").last_sequence_id == 1
    client.publish(1)
    client.publish(2)
    assert len(there.records()) == 3


def test_a_message_that_comes_again_before_it_is_safe_is_not_answered_with_a_receipt(there: Conversation) -> None:
    deduplicated(there)
    client = there.client()
    client.produce(producer_name="p")
    there.runtime.hold(FLUSH_LANE)
    client.publish(0)
    client.publish(0)
    there.runtime.release(FLUSH_LANE)
    there.runtime.run()
    receipt, refusal = client.taken()
    assert isinstance(receipt, CommandSendReceipt)
    assert isinstance(refusal, CommandSendError)
    assert len(there.records()) == 1
