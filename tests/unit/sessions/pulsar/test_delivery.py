"""What stands in MESSAGE: entries as they were stored, the frames of other protocols, and parts of batches."""

import pytest

from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import frame_crc, read_frame_header
from millstream.sessions.pulsar.entry_tail import entry_tail
from millstream.sessions.pulsar.inspector import EntryInspector
from millstream.sessions.pulsar.translations import Translations
from millstream.wire.pulsar.compression import compress
from millstream.wire.pulsar.entry import encode_entry, read_entry, read_messages, split_broker_entry_metadata
from millstream.wire.pulsar.pulsar_pb2 import (
    LZ4,
    ZSTD,
    CommandCloseConsumer,
    CommandRedeliverUnacknowledgedMessages,
    CommandSubscribe,
    EncryptionKeys,
    MessageMetadata,
)
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.pulsar.conversation import (
    ConsumingClient,
    ConsumingConversation,
    append_batch,
    append_entry,
    batch_entry,
    kafka_batch,
    single_entry,
)


@pytest.fixture
def broker() -> ConsumingConversation:
    return ConsumingConversation.with_topic()


def kafka(broker: ConsumingConversation, *values: bytes) -> int:
    """Store a Kafka batch; gives the offset of its first record."""
    return append_batch(broker.partition(), kafka_batch(values, broker.runtime.now_ms()))


def again(client: ConsumingClient) -> None:
    """Close the consumer, and subscribe once more."""
    client.request(CommandCloseConsumer(consumer_id=1, request_id=1))
    client.subscribe()
    client.flow()


def test_an_entry_goes_out_as_it_came_in_and_a_turn_in_one_write(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    now_ms = broker.runtime.now_ms()
    entries = [single_entry(b"a", now_ms), batch_entry([b"b", b"c"], now_ms), single_entry(b"d", now_ms)]
    for one in entries:
        append_entry(broker.partition(), one)
    client.subscribe()
    writes = len(client.writes)
    client.flow()
    assert [one.entry for one in client.arrivals()] == entries
    assert len(client.writes) == writes + 1
    assert len(client.writes[-1]) == 2 * len(entries)


def test_permits_count_messages_and_a_batch_is_not_divided(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    for _ in range(3):
        broker.publish_batch(b"0", b"1", b"2", b"3", b"4")
    client.subscribe()
    client.flow(4)
    assert len(client.arrivals()) == 1
    client.flow(1)
    assert client.arrivals() == []
    client.flow(1)
    assert len(client.arrivals()) == 1


def test_a_client_that_knows_no_checksum_is_sent_none(broker: ConsumingConversation) -> None:
    client = broker.consumer(version=5)
    entry = single_entry(b"a", broker.runtime.now_ms())
    append_entry(broker.partition(), entry)
    client.subscribe()
    client.flow()
    (arrival,) = client.arrivals()
    assert arrival.entry == entry[6:]
    assert arrival.values == [b"a"]


@pytest.mark.parametrize("version", [17, 18])
def test_broker_entry_metadata_for_those_who_know_it(broker: ConsumingConversation, version: int) -> None:
    broker.shared.broker_entry_metadata = True
    client = broker.consumer(version)
    broker.publish(b"0")
    broker.publish_batch(b"1", b"2", b"3")
    client.subscribe()
    client.flow()
    found = [split_broker_entry_metadata(memoryview(one.entry)) for one in client.arrivals()]
    assert [bytes(entry[:2]) for _, entry in found] == [b"\x0e\x01"] * 2
    if version < 18:
        assert [metadata for metadata, _ in found] == [None, None]
    else:
        assert [metadata.index for metadata, _ in found if metadata is not None] == [0, 3]
        assert {metadata.broker_timestamp for metadata, _ in found if metadata} == {broker.runtime.now_ms()}


def test_a_batch_of_kafka_is_one_entry(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    first = kafka(broker, b"0", b"1", b"2")
    alone = kafka(broker, b"3")
    client.subscribe()
    client.flow()
    batch_, single = client.arrivals()
    assert (batch_.entry_id, batch_.values) == (first, [b"0", b"1", b"2"])
    assert read_entry(memoryview(batch_.entry)).is_batch
    assert (single.entry_id, single.values) == (alone, [b"3"])
    assert not read_entry(memoryview(single.entry)).is_batch
    client.ack(batch_.id)
    client.ack(single.id)
    assert broker.position() == 4


def test_single_records_of_kafka_are_an_entry_each(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    for number in range(600):
        kafka(broker, b"%d" % number)
    client.subscribe()
    client.flow()
    arrivals = client.arrivals()
    assert [one.entry_id for one in arrivals] == list(range(600))
    assert [one.values for one in arrivals] == [[b"%d" % number] for number in range(600)]
    assert not any(read_entry(memoryview(one.entry)).is_batch for one in arrivals)
    client.ack(*(broker.id(number) for number in range(600) if number % 100))
    again(client)
    left = client.arrivals()
    assert [(one.entry_id, one.values) for one in left] == [(n, [b"%d" % n]) for n in range(0, 600, 100)]
    whole = {one.entry_id: one.entry for one in arrivals}
    assert [one.entry for one in left] == [whole[one.entry_id] for one in left], "one by one they are the same"


def test_what_comes_again_does_not_disturb_what_comes_with_it(broker: ConsumingConversation) -> None:
    """On a shared subscription, where frames that were delivered before stand among those that were not."""
    client = broker.consumer()
    client.subscribe(subType=CommandSubscribe.Shared)
    for number in range(20):
        kafka(broker, *(b"%d" % number for _ in range(1 + number % 3)))
    broker.publish(b"20", b"21")
    for number in range(22, 40):
        kafka(broker, b"%d" % number)
    got: list[tuple[int, list[bytes]]] = []
    for permits in (5, 9, 1, 1000):
        client.flow(permits)
        arrivals = client.arrivals()
        got += [(one.entry_id, one.values) for one in arrivals]
        again_ids = [one.id for one in arrivals[::2]]
        if permits < 1000:
            client.tell(CommandRedeliverUnacknowledgedMessages(consumer_id=1, message_ids=again_ids))
    assert {values[0] for _, values in got} == {b"%d" % number for number in range(40)}
    entries = dict(got)
    assert all(entries[entry_id] == values for entry_id, values in got)
    assert len(got) > 40


def test_entries_of_small_frames_for_clients_that_want_more_of_them(broker: ConsumingConversation) -> None:
    for number in range(5):
        kafka(broker, b"%d" % number)
    client = broker.consumer(version=5)
    client.subscribe()
    client.flow()
    assert [one.entry[:2] == b"\x0e\x01" for one in client.arrivals()] == [False] * 5


def test_a_large_batch_of_kafka_is_several_entries_that_are_acknowledged_one_by_one(
    broker: ConsumingConversation,
) -> None:
    contents = [bytes([number]) * 1_000_000 for number in range(6)]
    append_batch(broker.partition(), kafka_batch(contents))
    client = broker.consumer()
    client.subscribe()
    client.flow()
    parts = client.arrivals()
    assert len(parts) > 1
    assert [value for part in parts for value in part.values] == contents
    assert [part.entry_id for part in parts][:2] == [0, len(parts[0].values)]
    client.ack(parts[1].id)
    again(client)
    left = client.arrivals()
    assert [one.entry_id for one in left] == [one.entry_id for one in parts if one is not parts[1]]
    for part in left[:-1]:
        client.ack(part.id)
    assert broker.position() == left[-1].entry_id
    client.ack(left[-1].id)
    assert broker.position() == 6


def test_a_large_batch_is_acknowledged_up_to_a_part(broker: ConsumingConversation) -> None:
    contents = [bytes([number]) * 1_000_000 for number in range(6)]
    append_batch(broker.partition(), kafka_batch(contents))
    client = broker.consumer()
    client.subscribe()
    client.flow()
    parts = client.arrivals()
    client.ack(parts[-2].id, cumulative=True)
    assert broker.position() == parts[-1].entry_id
    client.ack(parts[-1].id, cumulative=True)
    assert broker.position() == 6


def test_what_cannot_be_read_is_passed_over_and_costs_no_permits(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    damaged = kafka_batch([b"x"])
    damaged[22] |= 1  # it says that it is compressed: the log does not look into bodies
    damaged[17:21] = frame_crc(memoryview(damaged)).to_bytes(4, "big")
    append_batch(broker.partition(), damaged)
    kafka(broker, b"good")
    client.subscribe()
    client.flow(1)
    assert client.values() == [[b"good"]]
    assert broker.position() == 1


@pytest.mark.parametrize("written_by", ["kafka", "pulsar"])
def test_the_rest_of_a_batch_is_an_entry_that_any_client_can_be_done_with(
    broker: ConsumingConversation, written_by: str
) -> None:
    """A consumer of another protocol has left off in the middle of a batch."""
    client = broker.consumer()
    if written_by == "kafka":
        kafka(broker, *(b"%d" % number for number in range(6)))
    else:
        broker.publish_batch(*(b"%d" % number for number in range(6)))
    client.subscribe()
    client.ack(broker.id(2), cumulative=True)  # which is no entry's id: everything up to that offset
    client.flow()
    (rest,) = client.arrivals()
    assert (rest.entry_id, rest.values) == (3, [b"3", b"4", b"5"])
    assert list(rest.command.ack_set) == []
    client.ack(rest.id)
    assert broker.position() == 6


def test_holes_in_a_batch_are_told_by_bits(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish_batch(b"0", b"1", b"2", b"3", b"4")
    client.subscribe()
    client.flow()
    assert len(client.arrivals()) == 1
    client.ack(broker.id(0, ack_set=[0b10101]))
    again(client)
    (arrival,) = client.arrivals()
    assert list(arrival.command.ack_set) == [0b10101]
    assert arrival.values == [b"0", b"2", b"4"]


def test_a_client_that_counts_messages_keeps_their_ids(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish_batch(b"0", b"1", b"2", b"3")
    client.subscribe()
    client.flow()
    assert len(client.arrivals()) == 1
    client.ack(broker.id(0, ack_set=[0b1100]))
    again(client)
    (arrival,) = client.arrivals()
    assert (arrival.entry_id, list(arrival.command.ack_set)) == (0, [0b1100])


def test_keys_that_choose_consumers(broker: ConsumingConversation) -> None:
    """One key, one consumer, whoever wrote it; without keys all have a share."""
    one, other = broker.consumer(), broker.consumer()
    for client in (one, other):
        client.subscribe(subType=CommandSubscribe.Key_Shared, consumer_name=f"c{id(client)}")
        client.flow()
    got: dict[bytes, set[int]] = {}
    for round_ in range(3):
        for number in range(20):
            broker.publish(b"%d" % number, key=b"key-%d" % number)
        for index, client in enumerate((one, other)):
            for arrival in client.arrivals():
                got.setdefault(arrival.values[0], set()).add(index)
                client.ack(arrival.id)
        assert len(got) == 20, round_
    assert all(len(owners) == 1 for owners in got.values())
    for number in range(40):
        broker.publish(b"%d" % number, key=None, partition_key_b64_encoded=False)
        broker.publish_batch(b"x", properties=[])
    shares = len(one.arrivals()), len(other.arrivals())
    assert sum(shares) == 80


def test_ordering_keys_come_before_keys_and_base64_is_undone(broker: ConsumingConversation) -> None:
    inspector = EntryInspector((broker.topic().id, 0), Translations(TranslatedFrames(1 << 20)))
    broker.publish(b"", key=b"k")
    broker.publish(b"", key=b"aw==", partition_key_b64_encoded=True)
    broker.publish(b"", key=b"k", ordering_key=b"o")
    broker.publish(b"")
    kafka(broker, b"")
    keys = []
    for offset in range(5):
        data, _ = broker.partition().log.read(offset, 1)
        keys.append(inspector.sticky_key(read_frame_header(data), data))
    assert keys == [b"k", b"k", b"o", b"p-0", b"offset-4"]


def test_delays_are_for_shared_subscriptions_only(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    client.subscribe(subscription="shared", consumer_id=1, subType=CommandSubscribe.Shared)
    client.subscribe(subscription="single", consumer_id=2)
    broker.publish(b"later", deliver_at_time=broker.runtime.now_ms() + 5000)
    broker.publish(b"now")
    client.flow(consumer_id=1)
    assert client.values() == [[b"now"]]
    client.flow(consumer_id=2)
    assert client.values() == [[b"later"], [b"now"]]
    broker.pass_ms(4900)
    assert client.values() == []
    broker.pass_ms(1200)
    assert client.values() == [[b"later"]]


def test_a_peer_without_room_is_sent_nothing_until_it_has_some(broker: ConsumingConversation) -> None:
    client = broker.consumer()
    broker.publish(b"0")
    client.subscribe()
    client.room = 0
    client.flow()
    assert client.values() == []
    client.room = 1000
    client.session.resume()
    assert client.values() == [[b"0"]]


@pytest.mark.parametrize("compression", [LZ4, ZSTD])
def test_the_tail_of_a_compressed_batch(compression: int) -> None:
    whole = read_entry(memoryview(batch_entry([b"0", b"1", b"2"], 5)))
    metadata = MessageMetadata()
    metadata.CopyFrom(whole.metadata)
    metadata.compression = compression
    metadata.uncompressed_size = len(whole.payload)
    metadata.partition_key = b"key"
    packed = read_entry(memoryview(encode_entry(metadata, compress(compression, whole.payload))))
    tail = entry_tail(packed, 1)
    assert tail is not None
    entry = read_entry(memoryview(tail))
    assert (entry.message_count, entry.metadata.partition_key, entry.metadata.sequence_id) == (2, b"key", 1)
    assert [bytes(one.content) for one in read_messages(entry)] == [b"1", b"2"]


def test_an_encrypted_batch_has_no_tail() -> None:
    whole = read_entry(memoryview(batch_entry([b"0", b"1"], 5)))
    metadata = MessageMetadata()
    metadata.CopyFrom(whole.metadata)
    metadata.encryption_keys.append(EncryptionKeys(key="k", value=b"v"))
    assert entry_tail(read_entry(memoryview(encode_entry(metadata, whole.payload))), 1) is None


def test_a_batch_of_another_protocol_for_a_client_that_knows_none(broker: ConsumingConversation) -> None:
    append(broker.topic().partitions[0], batch(b"value", 3))
    client = broker.consumer(version=3)
    client.subscribe()
    client.flow()
    arrivals = client.arrivals()
    assert [(one.entry_id, one.values) for one in arrivals] == [(n, [b"value"]) for n in range(3)]
    assert not any(read_entry(memoryview(one.entry)).is_batch for one in arrivals)
    client.ack(arrivals[1].id)
    client.ack(arrivals[0].id)
    assert broker.position() == 2
