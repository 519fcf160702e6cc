"""Producers that are replaced, called off, displaced or parted from: nothing of them stays behind."""

import pytest

from millstream.broker.deduplication import DEDUPLICATION_DOCUMENT
from millstream.storage.flusher import FLUSH_LANE
from millstream.storage.metadata import METADATA_LANE
from millstream.wire.pulsar.entry import encode_entry
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseProducer,
    CommandError,
    CommandPong,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
    CommandSendReceipt,
    CommandSuccess,
    MessageMetadata,
    ProducerAccessMode,
    Schema,
    ServerError,
)
from tests.unit.sessions.pulsar.spoken import Client, Conversation

VOLATILE = "non-persistent://public/default/orders"
NOWHERE = 2**64 - 1


@pytest.fixture
def there() -> Conversation:
    return Conversation()


def names(there: Conversation, topic: str = "orders") -> list[str]:
    """Who is connected."""
    return [producer.name for producer in there.broker.producers.of(there.topic(topic).id, 0)]


def test_a_producer_that_is_refused_when_it_comes_again_is_gone(there: Conversation) -> None:
    client, other = there.client(), there.client()
    other.produce("elsewhere", producer_name="taken", producer_access_mode=ProducerAccessMode.Exclusive)
    client.produce("orders", producer_name="mine")
    again = CommandProducer(topic="elsewhere", producer_id=1, request_id=2, epoch=1)
    assert client.refused(again).error == ServerError.ProducerBusy
    assert names(there) == []


def test_a_producer_that_is_closed_while_its_topic_is_made_does_not_come(there: Conversation) -> None:
    client = there.client()
    session, runtime = client.session, there.runtime
    runtime.hold(METADATA_LANE)
    client.tell(CommandProducer(topic="orders", producer_id=1, request_id=1, producer_name="mine"))
    client.tell(CommandCloseProducer(producer_id=1, request_id=2))
    runtime.release(METADATA_LANE)
    runtime.run()
    closed, refused = client.taken()
    assert isinstance(closed, CommandSuccess)
    assert isinstance(refused, CommandError)
    assert (refused.request_id, refused.error) == (1, ServerError.ServiceNotReady)
    assert names(there) == []
    assert session._link.connecting == {}


def test_the_last_of_two_requests_counts(there: Conversation) -> None:
    client = there.client()
    there.runtime.hold(METADATA_LANE)
    for request_id in (1, 2):
        client.tell(
            CommandProducer(topic="orders", producer_id=1, request_id=request_id, producer_name=f"p{request_id}")
        )
    there.runtime.release(METADATA_LANE)
    there.runtime.run()
    answers = {type(one): one for one in client.taken()}
    assert answers[CommandProducerSuccess].request_id == 2  # type: ignore[attr-defined]  # that message has one
    assert names(there) == ["p2"]


def test_who_waits_to_be_alone_and_asks_again_waits_once(there: Conversation) -> None:
    client, other = there.client(), there.client()
    other.produce()
    for request_id in (1, 2):
        client.tell(
            CommandProducer(
                topic="orders",
                producer_id=1,
                request_id=request_id,
                producer_access_mode=ProducerAccessMode.WaitForExclusive,
            )
        )
    client.taken()
    other.tell(CommandCloseProducer(producer_id=1, request_id=2))
    (ready,) = client.taken()
    assert isinstance(ready, CommandProducerSuccess)
    assert (ready.request_id, ready.producer_ready) == (2, True)


def test_every_question_whether_somebody_is_there_has_its_own_time(there: Conversation) -> None:
    client, other = there.client(), there.client()
    client.produce(producer_name="mine")
    wanted = CommandProducer(topic="orders", producer_id=1, request_id=1, producer_name="mine")
    other.tell(wanted)
    client.tell(CommandPong())
    there.pass_ms(4_900)
    other.tell(wanted)
    there.pass_ms(4_900)
    assert not client.ended
    client.tell(CommandPong())
    assert [one.error for one in other.taken() if isinstance(one, CommandError)] == [ServerError.ProducerBusy] * 2
    there.pass_ms(10_000)
    assert not client.ended


@pytest.mark.parametrize("topic", ["orders", VOLATILE])
def test_whoever_displaces_others_is_alone(there: Conversation, topic: str) -> None:
    clients = [there.client() for _ in range(3)]
    clients[0].produce(topic)
    clients[1].produce(topic, producer_access_mode=ProducerAccessMode.ExclusiveWithFencing)
    assert [type(one) for one in clients[0].taken()] == [CommandCloseProducer]
    refused = clients[2].refused(CommandProducer(topic=topic, producer_id=1, request_id=1))
    assert refused.error == ServerError.ProducerBusy


def test_the_same_request_again_tells_the_same_schema_version(there: Conversation) -> None:
    client = there.client()
    command = CommandProducer(topic="orders", producer_id=1, request_id=1)
    command.schema.CopyFrom(Schema(name="s", type=Schema.String, schema_data=b""))
    for _ in range(2):
        assert client.ask(command, CommandProducerSuccess).schema_version == bytes(8)


def test_receipts_come_before_the_parting(there: Conversation) -> None:
    """What a client has no receipt for it sends again: it is told of all that is stored before it connects again."""
    client, other = there.client(), there.client()
    client.produce()
    there.runtime.hold(FLUSH_LANE)
    for sequence_id in range(3):
        client.publish(sequence_id)
    other.produce(producer_access_mode=ProducerAccessMode.ExclusiveWithFencing)
    assert client.taken() == []
    there.runtime.release(FLUSH_LANE)
    there.runtime.run()
    assert [type(one) for one in client.taken()] == [*[CommandSendReceipt] * 3, CommandCloseProducer]


def test_a_topic_that_is_deleted_parts_from_its_producers(there: Conversation) -> None:
    client = there.client()
    client.produce()
    client.publish(0)
    there.wait(there.broker.delete_topic(there.topic()))
    assert CommandCloseProducer in [type(one) for one in client.taken()]
    assert client.publish(1) == []


def test_evictions_are_not_remembered_for_ever(there: Conversation) -> None:
    link = there.client().session._link
    for number in range(100):
        link.evicted(number)
        there.pass_ms(10)
    there.pass_ms(31_000)
    link.evicted(5)
    assert list(link._evicted) == [5]


# Deduplication


def chunk(chunk_id: int, content: bytes) -> bytes:
    metadata = MessageMetadata(
        producer_name="p", sequence_id=5, publish_time=1, uuid="u", num_chunks_from_msg=2, chunk_id=chunk_id
    )
    metadata.total_chunk_msg_size = 2
    return bytes(encode_entry(metadata, content))


def send_chunk(client: Client, chunk_id: int) -> int:
    """Send one of two chunks; gives the entry id of the receipt."""
    command = CommandSend(producer_id=1, sequence_id=5, is_chunk=True)
    return client.ask(command, CommandSendReceipt, chunk(chunk_id, b"%d" % chunk_id)).message_id.entryId


def test_a_crash_between_chunks_does_not_make_the_rest_a_duplicate(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    database = str(tmp_path_factory.mktemp("d") / "metadata.sqlite")
    there = Conversation(database, pulsar__deduplication__enable="true")
    client = there.client()
    client.produce(producer_name="p")
    assert send_chunk(client, 0) == 0
    there.kill()
    there.start()
    client = there.client()
    assert client.produce(producer_name="p").last_sequence_id == -1
    assert (send_chunk(client, 1), send_chunk(client, 1)) == (1, NOWHERE)


def test_a_producer_is_told_to_begin_when_a_crash_would_not_forget_its_messages() -> None:
    there = Conversation(pulsar__deduplication__enable="true")
    there.create()
    client = there.client()
    there.runtime.hold(METADATA_LANE)
    client.tell(CommandProducer(topic="orders", producer_id=1, request_id=1))
    assert client.taken() == []
    there.runtime.release(METADATA_LANE)
    there.runtime.run()
    assert [type(one) for one in client.taken()] == [CommandProducerSuccess]
    assert len(there.broker.documents.of_kind(DEDUPLICATION_DOCUMENT)) == 1


def test_where_that_cannot_be_stored_the_producer_comes_again() -> None:
    there = Conversation(pulsar__deduplication__enable="true")
    there.create()
    client = there.client()
    there.store.failing = True
    wanted = CommandProducer(topic="orders", producer_id=1, request_id=1)
    assert client.refused(wanted).error == ServerError.MetadataError
    there.store.failing = False
    assert client.ask(wanted, CommandProducerSuccess).last_sequence_id == -1
