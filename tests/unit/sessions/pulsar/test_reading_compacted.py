"""Readers of what compaction has left, beside others that read everything."""

import pytest

from millstream.model.record import Record
from millstream.sessions.pulsar.compaction import PulsarFrameRecords
from millstream.wire.kafka.records import build_batch
from millstream.wire.pulsar.pulsar_pb2 import CommandGetLastMessageId, MessageIdData
from tests.unit.sessions.pulsar.conversation import ConsumingClient, ConsumingConversation, append_batch

EARLIEST = MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)


@pytest.fixture
def broker() -> ConsumingConversation:
    return ConsumingConversation.with_topic()


def compact(broker: ConsumingConversation) -> None:
    """Run a compaction to its end."""
    run = broker.broker.compaction.compact(broker.topic(), 0, PulsarFrameRecords())
    broker.pass_ms(1000)
    broker.wait(run)


def reader(broker: ConsumingConversation, *, compacted: bool) -> ConsumingClient:
    """A reader from the beginning on."""
    client = broker.consumer()
    client.subscribe(
        subscription=f"reader-{id(client)}", durable=False, start_message_id=EARLIEST, read_compacted=compacted
    )
    client.flow()
    return client


def last(client: ConsumingClient) -> tuple[int, int]:
    """Entry id and batch index of the last message that the reader can get."""
    answer = client.request(CommandGetLastMessageId(consumer_id=1, request_id=9))
    return answer.last_message_id.entryId, answer.last_message_id.batch_index


def test_the_last_message_of_each_key_and_then_the_log(broker: ConsumingConversation) -> None:
    for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3")):
        broker.publish(value, key=key)
    compact(broker)
    broker.publish(b"4", key=b"b")
    whole, compacted = reader(broker, compacted=False), reader(broker, compacted=True)
    assert whole.values() == [[b"1"], [b"2"], [b"3"], [b"4"]]
    assert compacted.values() == [[b"2"], [b"3"], [b"4"]]
    assert last(compacted) == (3, -1)


def test_the_last_message_is_one_that_the_reader_gets(broker: ConsumingConversation) -> None:
    broker.publish(b"1", key=b"a")
    broker.publish(b"2", key=b"b")
    broker.publish(b"", key=b"b")  # which deletes it
    compact(broker)
    whole, compacted = reader(broker, compacted=False), reader(broker, compacted=True)
    assert compacted.values() == [[b"1"]]
    assert last(compacted) == (0, -1)
    assert len(whole.values()) == 3
    assert last(whole) == (2, -1)


def test_a_batch_of_another_protocol_is_read_whole_and_compacted_side_by_side(broker: ConsumingConversation) -> None:
    keyed = [(b"a", b"0"), (b"b", b"1"), (b"a", b"2"), (b"b", None)]
    records = [Record(offset=n, timestamp_ms=1000, key=key, value=value) for n, (key, value) in enumerate(keyed)]
    append_batch(broker.partition(), build_batch(records))
    compact(broker)
    for _ in range(2):
        assert reader(broker, compacted=False).values() == [[b"0", b"1", b"2", b""]]
        client = reader(broker, compacted=True)
        assert client.values() == [[b"2"]]
        assert last(client) == (0, 2)
