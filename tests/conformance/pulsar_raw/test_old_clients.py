"""Clients of every protocol version, from before checksums, batches and lookups on."""

import re
import time
import zlib
from collections.abc import Callable

import pytest

from millstream.wire.pulsar.entry import check_entry, split_broker_entry_metadata
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAck,
    CommandCloseConsumer,
    CommandFlow,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandMessage,
    CommandProducer,
    CommandProducerSuccess,
    CommandRedeliverUnacknowledgedMessages,
    CommandSend,
    CommandSendReceipt,
    CommandSuccess,
    CommandUnsubscribe,
    Property,
    SingleMessageMetadata,
)
from tests.conformance.pulsar_raw.conftest import Connect
from tests.conformance.pulsar_raw.connection import Connection, entry
from tests.support.server_process import ServerProcess, serving

Unique = Callable[[str], str]
WITHOUT_CHECKSUMS = range(6)
GIVEN_CHECKSUMS_FROM = 11
"""Clients of the versions before this compute checksums, some of them wrongly, and are sent none."""
BROKER_METADATA_FROM = 18


@pytest.mark.parametrize("version", [*range(-1, 23), 2**31 - 1])
def test_every_version_writes_and_reads(connect: Connect, topic: str, version: int) -> None:
    client = connect(version)
    agreed = client.connected.protocol_version
    assert agreed == min(max(version, 0), 21)
    client.produce(topic)
    sent = entry(b"hello", 3, checksum=agreed not in WITHOUT_CHECKSUMS)
    receipt = client.send(sent, 3)
    assert (receipt.producer_id, receipt.sequence_id, receipt.message_id.entryId) == (1, 3, 0)
    ((message, received),) = client.entries(topic, 1)
    assert received == (sent if agreed >= GIVEN_CHECKSUMS_FROM else entry(b"hello", 3, checksum=False))
    client.tell(CommandAck(consumer_id=1, ack_type=CommandAck.Individual, message_id=[message.message_id]))
    client.ask(CommandCloseConsumer(consumer_id=1, request_id=7), CommandSuccess)


@pytest.mark.parametrize("version", WITHOUT_CHECKSUMS)
def test_clients_with_and_without_checksums_share_a_topic(connect: Connect, topic: str, version: int) -> None:
    """Who knows no checksum gets none; who knows them gets what was sent, which says itself that it has none."""
    old, new = connect(version), connect()
    old.produce(topic)
    new.produce(topic, 2)
    old.send(entry(b"old", checksum=False))
    new.send(entry(b"new"), number=2)
    assert [payload for _, payload in old.entries(topic, 2, 3)] == [
        entry(b"old", checksum=False),
        entry(b"new", checksum=False),
    ]
    assert [payload for _, payload in new.entries(topic, 2, 4)] == [entry(b"old", checksum=False), entry(b"new")]


def test_the_conversation_of_version_1(connect: Connect, topic: str) -> None:
    """What a client of 2016 says, in its order: there is no lookup, and a name has four parts."""
    client = connect(1)
    name = f"persistent://public/cluster/default/{topic}"
    produced = client.ask(CommandProducer(topic=name, producer_id=0, request_id=0), CommandProducerSuccess)
    assert produced.producer_name
    for sequence_id in range(3):
        client.tell(CommandSend(producer_id=0, sequence_id=sequence_id), entry(b"%d" % sequence_id, checksum=False))
    assert [client.receive(CommandSendReceipt).sequence_id for _ in range(3)] == [0, 1, 2]
    client.subscribe(name, number=0)
    client.tell(CommandFlow(consumer_id=0, messagePermits=2))
    first, second = client.receive(CommandMessage), client.receive(CommandMessage)
    assert [first.message_id.entryId, second.message_id.entryId] == [0, 1]
    client.tell(CommandAck(consumer_id=0, ack_type=CommandAck.Individual, message_id=[first.message_id]))
    client.tell(CommandRedeliverUnacknowledgedMessages(consumer_id=0))
    client.tell(CommandFlow(consumer_id=0, messagePermits=10))
    assert [client.receive(CommandMessage).message_id.entryId for _ in range(2)] == [1, 2]
    client.ask(CommandUnsubscribe(consumer_id=0, request_id=5), CommandSuccess)
    # The same topic by the names of today.
    assert connect().values(topic, 3) == [b"0", b"1", b"2"]
    assert connect().values(f"persistent://public/default/{topic}", 3, 2) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("version", range(4))
def test_who_knows_no_batches_gets_their_messages_one_by_one(connect: Connect, topic: str, version: int) -> None:
    new, old = connect(), connect(version)
    new.produce(topic)
    singles = [
        SingleMessageMetadata(payload_size=1, partition_key=b"k", properties=[Property(key=b"a", value=b"b")]),
        SingleMessageMetadata(payload_size=0, null_value=True, event_time=7),
        SingleMessageMetadata(payload_size=1, sequence_id=12),
    ]
    contents = [b"x", b"", b"z"]
    payload = b""
    for single, content in zip(singles, contents, strict=True):
        head = single.SerializeToString()
        payload += len(head).to_bytes(4) + head + content
    packed = zlib.compress(payload)
    new.send(entry(packed, 5, num_messages_in_batch=3, compression=2, uncompressed_size=len(payload)), 5)
    new.send(entry(b"alone", 13), 13)
    expected = [
        entry(b"x", 5, checksum=False, partition_key=b"k", properties=[Property(key=b"a", value=b"b")]),
        entry(b"", 6, checksum=False, null_value=True, event_time=7),
        entry(b"z", 12, checksum=False),
        entry(b"alone", 13, checksum=False),
    ]
    old.subscribe(topic)
    old.tell(CommandFlow(consumer_id=1, messagePermits=10))
    messages = [old.take() for _ in range(4)]
    assert [received for _, received in messages] == expected
    ids = [message.message_id for message, _ in messages if isinstance(message, CommandMessage)]
    assert [one.entryId for one in ids] == [0, 1, 2, 3]
    old.tell(CommandAck(consumer_id=1, ack_type=CommandAck.Individual, message_id=[ids[0]]))
    old.tell(CommandAck(consumer_id=1, ack_type=CommandAck.Individual, message_id=[ids[2]]))
    if version >= 2:
        old.tell(CommandRedeliverUnacknowledgedMessages(consumer_id=1))
        old.tell(CommandFlow(consumer_id=1, messagePermits=10))
        assert [old.receive(CommandMessage).message_id.entryId for _ in range(2)] == [1, 3]
    old.tell(CommandAck(consumer_id=1, ack_type=CommandAck.Cumulative, message_id=[ids[3]]))
    old.ask(CommandCloseConsumer(consumer_id=1, request_id=7), CommandSuccess)
    old.subscribe(topic)
    old.tell(CommandFlow(consumer_id=1, messagePermits=10))
    new.send(entry(b"next", 14), 14)
    assert old.receive(CommandMessage).message_id.entryId == 4


def test_four_part_names_are_looked_up(connect: Connect, topic: str) -> None:
    name = f"persistent://public/standalone/default/{topic}"
    found = connect().ask(CommandLookupTopic(topic=name, request_id=1), CommandLookupTopicResponse)
    assert found.response == CommandLookupTopicResponse.Connect
    assert re.fullmatch(r"pulsar://127\.0\.0\.1:\d+", found.brokerServiceUrl)


def test_what_the_broker_adds_to_entries(tmp_path_factory: pytest.TempPathFactory, unique: Unique) -> None:
    """Where it is switched on: when an entry came and the index of its last message, for who can take it."""
    settings = ["pulsar.broker.entry.metadata.enable=true"]
    folder = str(tmp_path_factory.mktemp("entry-metadata") / "data")
    with serving(folder, "pulsar=127.0.0.1:0", settings) as server:
        check_broker_entry_metadata(server, unique("indexed"))


def check_broker_entry_metadata(server: ServerProcess, topic: str) -> None:
    new, old = (Connection(server.addresses["pulsar"], version) for version in (21, BROKER_METADATA_FROM - 1))
    new.produce(topic)
    batch = b"\0\0\0\x02\x18\x01a" * 3
    now_ms = round(time.time() * 1000)
    sent = [
        entry(b"one", publish_time=now_ms),
        entry(batch, 1, num_messages_in_batch=3, publish_time=now_ms),
        entry(b"two", 4, publish_time=now_ms),
    ]
    for sequence_id, payload in enumerate(sent):
        new.send(payload, sequence_id)
    indexes: list[int] = []
    for _, payload in new.entries(topic, 3):
        metadata, rest = split_broker_entry_metadata(memoryview(payload))
        assert metadata is not None
        assert abs(metadata.broker_timestamp - now_ms) < 60_000
        assert bytes(rest) == sent[len(indexes)]
        check_entry(rest)
        indexes.append(metadata.index)
    assert indexes == [0, 3, 4]
    assert [payload for _, payload in old.entries(topic, 3, 2)] == sent
    new.close()
    old.close()
