"""What stands behind SEND: damaged in every way, too large, or one of many at once; stored whole or not at all."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseProducer,
    CommandFlow,
    CommandMessage,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
    CommandSendError,
    CommandSendReceipt,
    CommandSuccess,
    EncryptionKeys,
    Property,
    ServerError,
)
from tests.conformance.pulsar_raw.conftest import Connect
from tests.conformance.pulsar_raw.connection import content_of, entry, frame

Unique = Callable[[str], str]
MESSAGE_BYTES_MAX = 5 * 1024 * 1024


def test_a_wrong_checksum_is_told_and_nothing_is_stored(connect: Connect, topic: str) -> None:
    """Every byte of an entry damaged, one at a time: its magic makes it another entry, all else is noticed."""
    client = connect()
    client.produce(topic)
    good = entry(b"hello", 1)
    for position in range(2, len(good)):
        damaged = bytearray(good)
        damaged[position] ^= 1 << position % 8
        refused = client.send_refused(bytes(damaged), 1)
        assert (refused.sequence_id, refused.error) == (1, ServerError.ChecksumError)
    assert client.send(good, 1).message_id.entryId == 0


def test_entries_cut_short(connect: Connect, topic: str) -> None:
    """Without a checksum, which would notice all of it: refused, or a shorter message."""
    client = connect()
    client.produce(topic)
    good = entry(b"hello", 1, checksum=False)
    stored = 0
    for size in range(len(good)):
        client.tell(CommandSend(producer_id=1, sequence_id=size), good[:size])
        answer, _ = client.take()
        if isinstance(answer, CommandSendError):
            assert answer.error == ServerError.NotAllowedError
            assert size < len(good) - len(b"hello")
        else:
            stored += 1
    assert client.values(topic, stored) == [b"hello"[:size] for size in range(5)]


@pytest.mark.parametrize(
    ("fields", "payload"),
    [
        ({"num_messages_in_batch": 2**31 - 1}, b"x"),
        ({"num_messages_in_batch": 0}, b"x"),
        ({"num_messages_in_batch": -1}, b"x"),
        ({"compression": 1, "uncompressed_size": 2**32 - 1}, b"x"),
        ({"publish_time": 2**64 - 1}, b"x"),
    ],
    ids=["many", "none", "fewer", "a bomb", "a time"],
)
def test_what_an_entry_may_not_say_of_itself(
    connect: Connect, topic: str, fields: dict[str, Any], payload: bytes
) -> None:
    client = connect()
    client.produce(topic)
    assert client.send_refused(entry(payload, **fields)).error == ServerError.NotAllowedError
    assert client.send(entry(b"next", 1), 1).message_id.entryId == 0


def test_batches_that_fall_apart_harm_nobody(connect: Connect, topic: str) -> None:
    """Payloads are their readers' business; a reader that counts in messages goes on behind them."""
    client = connect()
    client.produce(topic)
    noise = random.Random("batches").randbytes(60)
    client.send(entry(noise, 0, num_messages_in_batch=10, compression=0), 0)
    client.send(entry(noise, 10, compression=2, uncompressed_size=1000), 10)
    assert client.send(entry(b"whole", 11), 11).message_id.entryId == 11
    *_, (message, payload) = client.entries(topic, 3)
    assert (message.message_id.entryId, content_of(payload)) == (11, [b"whole"])


def test_the_largest_message_and_one_that_is_larger(connect: Connect, topic: str) -> None:
    client = connect()
    assert client.connected.max_message_size == MESSAGE_BYTES_MAX
    client.produce(topic)
    overhead = len(entry(b""))
    content = bytes(MESSAGE_BYTES_MAX - overhead)
    client.send(entry(content))
    # A frame has some room for its command, which must not let a message in that would not fit into a MESSAGE.
    bare = len(frame(CommandSend(producer_id=1, sequence_id=1))) - 4
    larger = entry(bytes(MESSAGE_BYTES_MAX + 10 * 1024 - bare - overhead), 1)
    assert client.send_refused(larger, 1).error == ServerError.NotAllowedError
    assert client.values(topic, 1) == [content]


def test_entries_arrive_as_they_were_sent(connect: Connect, topic: str) -> None:
    """Byte for byte, whatever is in them: fields that the server has no use for, and payloads that it cannot read."""
    client = connect()
    client.produce(topic)
    key = EncryptionKeys(key="k", value=b"secret")
    sent = [
        entry(b"sealed", 0, encryption_keys=[key], encryption_algo="AES", encryption_param=bytes(12)),
        entry(b"sealed", 1, encryption_keys=[key], num_messages_in_batch=1),
        entry(b"chunk", 2, uuid="u", num_chunks_from_msg=2, total_chunk_msg_size=9, chunk_id=0),
        entry(b"part", 2, uuid="u", num_chunks_from_msg=2, total_chunk_msg_size=9, chunk_id=1),
        entry(b"", 3, null_value=True, partition_key=b"k", partition_key_b64_encoded=True, ordering_key=b"o"),
        entry(b"", 4, schema_version=bytes(8), replicated_from="x", event_time=7, deliver_at_time=8),
        entry(b"", 5, properties=[Property(key=b"k%d" % n, value=b"v" * n) for n in range(50)]),
        with_unknown_field(entry(b"unknown field", 6)),
    ]
    for sequence_id, payload in enumerate(sent):
        client.send(payload, sequence_id)
    assert [payload for _, payload in client.entries(topic, len(sent))] == sent


def with_unknown_field(data: bytes) -> bytes:
    """An entry of a later version of the protocol: its metadata have a field that is not known today."""
    from crc32c import crc32c

    size = int.from_bytes(data[6:10])
    extra = b"\xa2\x1f\x05later"
    rest = (size + len(extra)).to_bytes(4) + data[10 : 10 + size] + extra + data[10 + size :]
    return data[:2] + crc32c(rest).to_bytes(4) + rest


def test_many_producers_and_consumers_on_one_connection(connect: Connect, unique: Unique) -> None:
    """Everything interleaved: receipts in the order of the messages, and every consumer gets its own."""
    topics = [unique("many") for _ in range(20)]
    client = connect()
    for number, topic in enumerate(topics):
        client.produce(topic, number)
    for number, topic in enumerate(topics):
        client.subscribe(topic, number=number)
        client.tell(CommandFlow(consumer_id=number, messagePermits=1000))
    numbers = random.Random("interleaved")
    order = [numbers.randrange(20) for _ in range(600)]
    sent: dict[int, list[bytes]] = {number: [] for number in range(20)}
    stream = b""
    for position, number in enumerate(order):
        sent[number].append(b"%d" % position)
        command = CommandSend(producer_id=number, sequence_id=len(sent[number]) - 1)
        stream += frame(command, entry(b"%d" % position, len(sent[number]) - 1))
    client.write(stream)
    receipts: list[int] = []
    received: dict[int, list[bytes]] = {number: [] for number in range(20)}
    while len(receipts) < 600 or sum(map(len, received.values())) < 600:
        came, payload = client.take()
        if isinstance(came, CommandSendReceipt):
            receipts.append(came.producer_id)
        else:
            assert isinstance(came, CommandMessage)
            received[came.consumer_id] += content_of(payload)
    assert receipts == order
    assert received == sent


def test_receipts_come_before_the_answer_to_a_close(connect: Connect, topic: str) -> None:
    client = connect()
    client.produce(topic)
    sends = b"".join(frame(CommandSend(producer_id=1, sequence_id=n), entry(b"", n)) for n in range(50))
    client.write(sends + frame(CommandCloseProducer(producer_id=1, request_id=77)))
    assert [client.receive(CommandSendReceipt).sequence_id for _ in range(50)] == list(range(50))
    assert client.receive(CommandSuccess).request_id == 77


def test_a_refusal_keeps_its_place_among_the_receipts(connect: Connect, topic: str) -> None:
    client = connect()
    client.produce(topic)
    damaged = bytearray(entry(b"damaged", 10))
    damaged[-1] ^= 1
    stream = b""
    for n in range(20):
        stream += frame(CommandSend(producer_id=1, sequence_id=n), bytes(damaged) if n == 10 else entry(b"", n))
    client.write(stream)
    kinds = [type(client.take()[0]) for _ in range(20)]
    assert kinds == [CommandSendError if n == 10 else CommandSendReceipt for n in range(20)]


def test_a_producer_that_is_closed_before_it_is_connected(connect: Connect, topic: str) -> None:
    """The topic is made meanwhile: whichever comes first, nobody holds the name afterwards."""
    client = connect()
    wanted = CommandProducer(topic=topic, producer_id=1, request_id=1, producer_name="mine")
    client.write(frame(wanted) + frame(CommandCloseProducer(producer_id=1, request_id=2)))
    client.take()
    client.take()
    assert connect().produce(topic, producer_name="mine").producer_name == "mine"
    assert client.alive()


def test_a_producer_that_is_asked_for_twice(connect: Connect, topic: str) -> None:
    client = connect()
    wanted = CommandProducer(topic=topic, producer_id=1, request_id=1, producer_name="mine")
    client.write(frame(wanted))
    wanted.request_id = 2
    client.write(frame(wanted))
    answers = {answer.request_id: type(answer) for answer in (client.take()[0], client.take()[0])}  # type: ignore[attr-defined]  # all have one
    assert answers[2] is CommandProducerSuccess
    assert client.send(entry()).message_id.entryId == 0
