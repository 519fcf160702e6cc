"""Messages that one read brings are stored in one write: the same as one by one."""

import pytest

from millstream.sessions.pulsar.plain_runs import PlainRuns
from millstream.wire.pulsar.errors import MalformedFrame
from millstream.wire.pulsar.frames import PREFIX_BYTES, encode_command, encode_payload_command
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseProducer,
    CommandPing,
    CommandPong,
    CommandSend,
    CommandSendError,
    CommandSendReceipt,
    CommandSuccess,
    ServerError,
)
from tests.support.simulated_files import Fault
from tests.unit.sessions.pulsar.spoken import Client, Conversation, entry

WAYS = pytest.mark.parametrize("used", [True, False], ids=["runs", "one by one"])


def sending(sequence_id: int, payload: bytes, number: int = 1, count: int = 1) -> bytes:
    command = CommandSend(producer_id=number, sequence_id=sequence_id, num_messages=count)
    return b"".join(encode_payload_command(command, [payload]))


def connected(broker: Conversation, used: bool, *numbers: int) -> Client:
    """A client with producers, whose plain messages go one way or the other."""
    client = broker.client()
    for number in numbers or (1,):
        client.produce(number=number, producer_name=f"p{number}")
    client.session._plain_runs = PlainRuns(client.session._link, used=used)
    client.taken()
    return client


def read(client: Client, *frames: bytes) -> None:
    """Let one read of the socket bring several frames."""
    try:
        for frame in frames:
            client.session.handle(memoryview(bytearray(frame))[PREFIX_BYTES:])
    finally:
        client.session.served()


def receipts(client: Client) -> list[tuple[int, int, int]]:
    """Producer, sequence id and entry id of what was answered; entry id -1 for a refusal."""
    found = []
    for one in client.taken():
        assert isinstance(one, CommandSendReceipt | CommandSendError)
        entry_id = one.message_id.entryId if isinstance(one, CommandSendReceipt) else -1
        found.append((one.producer_id, one.sequence_id, entry_id))
    return found


@WAYS
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_what_is_stored_and_answered(used: bool, durability: str) -> None:
    broker = Conversation(durability=durability)
    client = connected(broker, used, 1, 2)
    batch = b"\0\0\0\x02\x18\x01a" * 3
    read(
        client,
        sending(0, entry(b"one", 0)),
        sending(1, entry(b"two", 1)),
        sending(2, entry(batch, 2, count=3), count=3),
        sending(0, entry(b"other", 0), number=2),
        sending(5, entry(b"three", 5)),
    )
    broker.runtime.run()
    assert receipts(client) == [(1, 0, 0), (1, 1, 1), (1, 2, 2), (2, 0, 5), (1, 5, 6)]
    values = [record.value for record in broker.records()]
    assert values == [b"one", b"two", b"a", b"a", b"a", b"other", b"three"]
    log = broker.topic("orders").partitions[0].log
    assert (log.end_offset, log.max_timestamp) == (7, (1000, 0))


@WAYS
def test_the_files_are_the_same(used: bool) -> None:
    broker = Conversation()
    client = connected(broker, used)
    read(client, *(sending(n, entry(bytes(n), n)) for n in range(20)))
    log = broker.topic("orders").partitions[0].log
    other = Conversation()
    alone = connected(other, False)
    for n in range(20):
        read(alone, sending(n, entry(bytes(n), n)))
    expected = other.topic("orders").partitions[0].log
    assert bytes(log.read(0, 10**6)[0]) == bytes(expected.read(0, 10**6)[0])


@WAYS
def test_a_damaged_message_is_refused_alone_and_in_order(used: bool) -> None:
    broker = Conversation()
    client = connected(broker, used)
    damaged = bytearray(entry(b"two", 1))
    damaged[-1] ^= 1
    read(client, sending(0, entry(b"one", 0)), sending(1, bytes(damaged)), sending(2, entry(b"three", 2)))
    broker.runtime.run()
    assert receipts(client) == [(1, 0, 0), (1, 1, -1), (1, 2, 1)]
    assert [record.value for record in broker.records()] == [b"one", b"three"]


@WAYS
def test_a_batch_that_cannot_hold_what_it_says_is_refused(used: bool) -> None:
    broker = Conversation()
    client = connected(broker, used)
    read(client, sending(0, entry(b"12345", 0, count=1)), sending(1, entry(b"whole", 1)))
    broker.runtime.run()
    assert receipts(client) == [(1, 0, -1), (1, 1, 0)]


@WAYS
def test_other_commands_come_behind_what_was_sent_before_them(used: bool) -> None:
    broker = Conversation()
    client = connected(broker, used)
    close = encode_command(CommandCloseProducer(producer_id=1, request_id=7))
    read(client, sending(0, entry(b"one", 0)), encode_command(CommandPing()), sending(1, entry(b"two", 1)), close)
    broker.runtime.run()
    kinds = [type(one) for one in client.taken()]
    assert kinds == [CommandPong, CommandSendReceipt, CommandSendReceipt, CommandSuccess]
    assert len(broker.records()) == 2


@WAYS
def test_a_message_for_nobody_ends_the_connection_behind_what_came_before(used: bool) -> None:
    broker = Conversation()
    client = connected(broker, used)
    with pytest.raises(MalformedFrame):
        read(client, sending(0, entry(b"one", 0)), sending(0, entry(b"two", 0), number=9))
    assert [record.value for record in broker.records()] == [b"one"]


@WAYS
def test_a_full_disk_takes_nothing_until_the_producer_connects_again(used: bool) -> None:
    """What it has sent behind what was refused, it sends again too: taken now, it would be there first, and twice."""
    broker = Conversation()
    client = connected(broker, used)
    read(client, sending(0, entry(b"zero", 0)))
    broker.files.room_bytes = broker.files.used_bytes()
    read(client, *(sending(n, entry(b"one", n)) for n in range(1, 4)))
    broker.files.room_bytes = None
    read(client, *(sending(n, entry(b"too soon", n)) for n in range(4, 6)))
    broker.runtime.run()
    receipt, refusal, closed = client.taken()
    assert isinstance(receipt, CommandSendReceipt)
    assert isinstance(refusal, CommandSendError)
    assert (refusal.sequence_id, refusal.error) == (1, ServerError.PersistenceError)
    assert isinstance(closed, CommandCloseProducer)
    client.produce(epoch=1, producer_name="p1")
    read(client, *(sending(n, entry(b"two", n)) for n in range(1, 4)))
    broker.runtime.run()
    assert receipts(client) == [(1, 1, 1), (1, 2, 2), (1, 3, 3)]


@WAYS
def test_a_flush_that_fails_refuses_all_that_waited_for_it(used: bool) -> None:
    broker = Conversation(durability="fsync")
    client = connected(broker, used)
    broker.files.inject(Fault("sync", path_ending=".log"))
    read(client, *(sending(n, entry(b"one", n)) for n in range(3)))
    assert client.taken() == []
    broker.runtime.run()
    assert receipts(client) == [(1, 0, -1), (1, 1, -1), (1, 2, -1)]


@WAYS
def test_a_topic_that_was_terminated_takes_nothing(used: bool) -> None:
    broker = Conversation()
    client = connected(broker, used)
    broker.topic("orders").partitions[0].terminate()
    read(client, sending(0, entry(b"one", 0)), sending(1, entry(b"two", 1)))
    broker.runtime.run()
    assert [type(one) for one in client.taken()] == [CommandSendError] * 2


@WAYS
def test_so_many_wait_for_the_disk_and_then_no_more_are_taken(used: bool) -> None:
    broker = Conversation(durability="fsync")
    client = connected(broker, used)
    read(client, *(sending(n, entry(b"", n)) for n in range(999)))
    assert client.holds == 0
    read(client, sending(999, entry(b"", 999)))
    assert client.holds == 1
    broker.runtime.run()
    assert client.holds == 0
    assert [one[1] for one in receipts(client)] == list(range(1000))


@WAYS
def test_duplicates_are_told_when_the_namespace_wants_that(used: bool) -> None:
    broker = Conversation(pulsar__deduplication__enable="true")
    client = connected(broker, used)
    read(client, sending(0, entry(b"one", 0)), sending(1, entry(b"two", 1)))
    broker.runtime.run()
    client.taken()
    read(client, sending(1, entry(b"two", 1)), sending(2, entry(b"three", 2)))
    broker.runtime.run()
    assert [one.sequence_id for one in client.taken() if isinstance(one, CommandSendReceipt)] == [1, 2]
    assert [record.value for record in broker.records()] == [b"one", b"two", b"three"]


@WAYS
def test_a_connection_that_is_lost_has_sent_what_it_has_sent(used: bool) -> None:
    broker = Conversation()
    client = connected(broker, used)
    client.session.handle(memoryview(bytearray(sending(0, entry(b"one", 0))))[PREFIX_BYTES:])
    client.session.close()
    assert len(broker.records()) == 1
