"""Sending and polling, in every dialect and between all of them."""

import struct
from pathlib import Path

import pytest
import xxhash

from millstream.model.frame import Magic, frame_crc
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import HeaderKind, UserHeader, read_headers
from millstream.wire.iggy.kinds import Consumer, Partitioning
from millstream.wire.iggy.messages.batches import FlushBuffer, Strategy
from millstream.wire.iggy.murmur3 import murmur3_128
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.iggy.conversation import BY_NAME, IggyBroker, Outgoing, Refusal

DIALECTS = list(Dialect)
ID = bytes(range(1, 17))


@pytest.fixture
def server() -> IggyBroker:
    return IggyBroker()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_sent_is_polled(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()
    client.put(b"one", b"two")
    client.put(b"three")
    partition, messages = client.poll()
    assert partition == 0
    assert [(one["offset"], one["payload"]) for one in messages] == [(0, b"one"), (1, b"two"), (2, b"three")]
    assert {one["timestamp"] for one in messages} == {server.runtime.now_ms() * 1000}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_way_to_begin(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()
    for number in range(5):
        client.put(b"a%d" % number, b"b%d" % number)
        server.pass_ms(10)
    all_of_them = [b"%c%d" % (letter, number) for number in range(5) for letter in b"ab"]
    start_us = 1000 * (server.runtime.now_ms() - 50)
    assert client.values(Strategy.OFFSET, 3, 4) == all_of_them[3:7]
    assert client.values(Strategy.OFFSET, 10) == []
    assert client.values(Strategy.OFFSET, 1000) == []
    assert client.values(Strategy.FIRST, count=3) == all_of_them[:3]
    assert client.values(Strategy.LAST, count=3) == all_of_them[7:]
    assert client.values(Strategy.LAST, count=30) == all_of_them
    assert client.values(Strategy.TIMESTAMP, start_us + 20_000) == all_of_them[4:]
    assert client.values(Strategy.TIMESTAMP, start_us + 20_001) == all_of_them[6:]
    assert client.values(Strategy.TIMESTAMP, start_us + 60_000) == []
    before = client.values(Strategy.TIMESTAMP, start_us - 1)
    assert before == ([] if dialect is Dialect.A else all_of_them)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_next_goes_on_behind_what_is_stored(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()
    client.put(b"1", b"2", b"3")
    assert client.values(Strategy.NEXT, count=2) == [b"1", b"2"]
    assert client.values(Strategy.NEXT, count=2, auto_commit=True) == [b"1", b"2"]
    assert client.values(Strategy.NEXT, count=2, auto_commit=True) == [b"3"]
    assert client.values(Strategy.NEXT, count=2, auto_commit=True) == []
    assert client.values(Strategy.NEXT, count=2, consumer=Consumer(False, 2)) == [b"1", b"2"]


@pytest.mark.parametrize("reader", DIALECTS)
@pytest.mark.parametrize("writer", DIALECTS)
def test_one_dialect_reads_what_another_wrote(server: IggyBroker, writer: Dialect, reader: Dialect) -> None:
    sender = server.connect(writer)
    sender.make()
    headers = tuple(
        UserHeader(b"key %d" % kind, b"12345678"[: 8 if kind != HeaderKind.BOOL else 1], kind) for kind in HeaderKind
    )
    sender.put(Outgoing(b"plain", ID), Outgoing(b"with headers", ID[::-1], headers))
    client = server.connect(reader)
    _, messages = client.poll()
    assert [one["payload"] for one in messages] == [b"plain", b"with headers"]
    assert [one["id"] for one in messages] == [ID, ID[::-1]]
    assert [one["offset"] for one in messages] == [0, 1]
    block = memoryview(messages[1]["headers"])
    assert tuple(read_headers(block, kinded_keys=reader >= Dialect.C3)) == headers
    assert messages[0]["headers"] == b""
    if writer >= Dialect.C1 and reader >= Dialect.C1:
        assert {one["origin"] for one in messages} == {1_700_000_000_000_123}
    assert client.values(Strategy.OFFSET, 1, 1) == [b"with headers"]


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one < Dialect.D0])
def test_messages_without_an_id_get_one_that_lasts(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make()
    client.put(b"one", b"two")
    first = [one["id"] for one in client.poll()[1]]
    assert len(set(first)) == 2
    assert bytes(16) not in first
    assert [one["id"] for one in client.poll()[1]] == first


@pytest.mark.parametrize("dialect", DIALECTS)
def test_partitioning(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.make(partitions=3)
    for _ in range(4):
        client.put(b"x", partitioning=Partitioning())
    assert [len(client.values(partition=index)) for index in range(3)] == [2, 1, 1]
    key = b"a key"
    client.put(b"keyed", partitioning=Partitioning(key=key))
    if dialect < Dialect.C2:
        hashed = murmur3_128(key) if dialect is Dialect.A else xxhash.xxh32_intdigest(key)
        expected = (hashed % 3 or 3) - 1
    else:
        expected = xxhash.xxh32_intdigest(key) % 3
    assert b"keyed" in client.values(partition=expected)
    assert client.refusal("SEND_MESSAGES", client.sending([Outgoing(b"x")], Partitioning(3))) == 3007


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_send_is_answered_when_it_is_on_the_disk(tmp_path: Path, dialect: Dialect) -> None:
    server = IggyBroker(str(tmp_path / "metadata"))
    client = server.connect(dialect)
    client.make()
    server.runtime.hold("flush")
    pending = client.give(client.frame(BY_NAME["SEND_MESSAGES"], client.sending([Outgoing(b"x")])))
    assert pending is not None
    server.runtime.run()
    assert not pending.done
    server.runtime.release("flush")
    server.wait(pending)
    server.kill()
    server.start()
    assert server.topic("s1.t1").partitions[0].log.end_offset == 1


def test_kafka_records_are_polled(server: IggyBroker) -> None:
    topic = server.create("orders")
    append(topic.partitions[0], batch(b"from kafka"))
    for dialect in DIALECTS:
        client = server.connect(dialect)
        _, messages = client.poll(stream="default", topic="orders")
        assert [one["payload"] for one in messages] == [b"from kafka"]
        assert messages[0]["id"] != bytes(16)


def test_what_nobody_can_read_is_passed_over_without_holding_others_up(server: IggyBroker) -> None:
    partition = server.create("orders").partitions[0]
    for _ in range(3):
        frame = batch(b"no entry")
        struct.pack_into(">b", frame, 16, Magic.PULSAR_ENTRY)
        struct.pack_into(">i", frame, 23, 10**6 - 1)
        struct.pack_into(">i", frame, 57, 10**6)
        struct.pack_into(">I", frame, 17, frame_crc(memoryview(frame)))
        append(partition, frame)
    append(partition, batch(b"readable"))
    client = server.connect(Dialect.C1)
    polls = [[one["payload"] for one in client.poll(stream="default", topic="orders")[1]] for _ in range(4)]
    assert polls == [[], [], [], [b"readable"]]


def test_a_poll_of_nothing_is_refused(server: IggyBroker) -> None:
    client = server.connect(Dialect.A)
    client.make()
    with pytest.raises(Refusal, match="4009"):
        client.poll(count=0)


def test_duplicates_are_dropped_where_the_server_is_set_to(server: IggyBroker) -> None:
    server.service.shared.deduplication = (100, 60_000)
    for dialect in (Dialect.A, Dialect.C3, Dialect.D):
        client = server.connect(dialect)
        client.make(stream=f"s{dialect}", number=dialect)
        stream = f"s{dialect}"
        client.put(Outgoing(b"1", ID), Outgoing(b"2", ID[::-1]), stream=stream)
        client.put(
            Outgoing(b"1 again", ID), Outgoing(b"3", bytes(15) + b"\x07"), Outgoing(b"2", ID[::-1]), stream=stream
        )
        client.put(Outgoing(b"1 again", ID), stream=stream)
        assert client.values(stream=stream) == [b"1", b"2", b"3"]
        server.pass_ms(60_000)
        client.put(Outgoing(b"1 much later", ID), stream=stream)
        assert client.values(stream=stream) == [b"1", b"2", b"3", b"1 much later"]


def test_flushing(server: IggyBroker) -> None:
    client = server.connect(Dialect.C3)
    client.make()
    client.ask("FLUSH_UNSAVED_BUFFER", FlushBuffer(stream="s1", topic="t1", partition=0, fsync=True))


def test_what_a_transaction_has_written_is_there_once_it_is_committed(server: IggyBroker) -> None:
    client = server.connect(Dialect.D)
    client.make()
    (topic,) = server.broker.topics
    partition, transactions = topic.partitions[0], server.broker.transactions

    def write(value: bytes) -> int:
        number = server.wait(transactions.begin(60_000))
        server.wait(transactions.add_partitions(number, [(topic, 0)]))
        base = append(partition, batch(value)).base_offset
        transactions.wrote(number, partition, base, base + 1)
        return number

    aborted, committed = write(b"aborted"), write(b"committed")
    client.put(Outgoing(b"behind", ID))
    assert client.values() == []
    server.wait(transactions.end(aborted, commit=False))
    assert client.values() == []
    server.wait(transactions.end(committed, commit=True))
    assert client.values() == [b"committed", b"behind"]


def test_a_message_that_comes_again_is_answered_when_the_first_one_is_on_the_disk(tmp_path: Path) -> None:
    server = IggyBroker(str(tmp_path / "metadata"))
    server.service.shared.deduplication = (100, 60_000)
    client = server.connect(Dialect.C1)
    client.make()
    server.runtime.hold("flush")
    frame = client.frame(BY_NAME["SEND_MESSAGES"], client.sending([Outgoing(b"x", ID)]))
    answers = [client.give(frame), client.give(frame)]
    server.runtime.run()
    assert [answer is not None and answer.done for answer in answers] == [False, False]
    server.runtime.release("flush")
    for answer in answers:
        assert answer is not None
        server.wait(answer)
    assert server.topic("s1.t1").partitions[0].log.end_offset == 1
