"""Idempotent producing: each batch is stored once and in order, whatever is sent again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream.wire.kafka.error_codes import ErrorCode
from tests.conformance.raw.conftest import Connect
from tests.conformance.raw.log_client import LogClient, batch_of
from tests.support.server_process import start

SEQUENCE_MAX = 2**31 - 1


def send(client: LogClient, topic: str, producer_id: int, epoch: int, sequence: int, *values: bytes) -> Any:
    batch = batch_of(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return client.produce(topic, batch)


def three_of(number: int) -> list[bytes]:
    return [b"%d-%d" % (number, n) for n in range(3)]


def send_numbered(client: LogClient, topic: str, producer_id: int, number: int) -> Any:
    """The `number`-th batch of three records of a producer in epoch 0."""
    return send(client, topic, producer_id, 0, 3 * number, *three_of(number))


def test_producer_ids_are_never_given_twice(client: LogClient, connect: Connect) -> None:
    other = connect()
    given = [one.new_producer_id() for _ in range(50) for one in (client, other)]
    assert len(set(given)) == 100


def test_the_last_five_batches_are_known_again(client: LogClient, topic: str) -> None:
    producer_id = client.new_producer_id()
    for number in range(7):
        assert send_numbered(client, topic, producer_id, number).base_offset == 3 * number
    for number in (2, 3, 4, 5, 6, 6, 2):
        again = send_numbered(client, topic, producer_id, number)
        assert (again.error_code, again.base_offset) == (0, 3 * number)
    for number in (0, 1):
        forgotten = send_numbered(client, topic, producer_id, number)
        assert forgotten.error_code in {
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        }
    assert client.values(topic) == [value for number in range(7) for value in three_of(number)]


def test_gaps_and_overlaps_are_refused(client: LogClient, topic: str) -> None:
    producer_id = client.new_producer_id()
    assert send(client, topic, producer_id, 0, 0, b"a", b"b").error_code == 0
    for sequence in (1, 3, 100, SEQUENCE_MAX):
        assert send(client, topic, producer_id, 0, sequence, b"x", b"y").error_code == (
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        ), sequence
    assert send(client, topic, producer_id, 0, 2, b"c").error_code == 0
    assert client.values(topic) == [b"a", b"b", b"c"]


def test_epochs(client: LogClient, topic: str) -> None:
    producer_id = client.new_producer_id()
    assert send(client, topic, producer_id, 1, 0, b"a").error_code == 0
    assert send(client, topic, producer_id, 0, 1, b"x").error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(client, topic, producer_id, 2, 1, b"x").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, topic, producer_id, 2, 0, b"b").error_code == 0
    assert send(client, topic, producer_id, 1, 1, b"x").error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.values(topic) == [b"a", b"b"]


def test_producers_and_partitions_do_not_mix(client: LogClient, unique: Callable[[str], str]) -> None:
    topic = unique("raw")
    client.create_topic(topic, 2)
    one, two = client.new_producer_id(), client.new_producer_id()
    for producer_id in (one, two):
        for partition in (0, 1):
            batch = batch_of(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0)
            assert client.produce(topic, batch, partition).error_code == 0
    assert [len(client.values(topic, partition)) for partition in (0, 1)] == [2, 2]


def test_sequences_wrap(client: LogClient, topic: str) -> None:
    producer_id = client.new_producer_id()
    assert send(client, topic, producer_id, 0, SEQUENCE_MAX - 1, b"a", b"b", b"c").error_code == 0
    assert send(client, topic, producer_id, 0, 2, b"x").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, topic, producer_id, 0, 1, b"d").error_code == 0
    again = send(client, topic, producer_id, 0, SEQUENCE_MAX - 1, b"a", b"b", b"c")
    assert (again.error_code, again.base_offset) == (0, 0)
    assert client.values(topic) == [b"a", b"b", b"c", b"d"]


def test_a_refused_batch_leaves_no_trace_in_the_sequence(client: LogClient, topic: str) -> None:
    producer_id = client.new_producer_id()
    damaged = batch_of(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    damaged[-1] ^= 1
    assert client.produce(topic, damaged).error_code == ErrorCode.CORRUPT_MESSAGE
    assert send(client, topic, producer_id, 0, 0, b"a").error_code == 0
    assert client.values(topic) == [b"a"]


def test_it_survives_kill_9(tmp_path: Path, connect: Connect) -> None:
    data_dir = str(tmp_path / "data")
    server = start(data_dir)
    client = connect(server)
    # Several segments, so that what is known comes from an index file and from the log behind it.
    client.create_topic("orders", configs={"segment.bytes": "400"})
    producer_id = client.new_producer_id()
    try:
        for number in range(8):
            assert send_numbered(client, "orders", producer_id, number).base_offset == 3 * number
        for round_number in range(2):
            server.kill()
            server = start(data_dir)
            client = connect(server)
            assert client.new_producer_id() > producer_id
            for number in (3, 5, 7):
                again = send_numbered(client, "orders", producer_id, number + round_number)
                assert (again.error_code, again.base_offset) == (0, 3 * (number + round_number))
            gap = send_numbered(client, "orders", producer_id, 10 + round_number)
            assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            follows = send_numbered(client, "orders", producer_id, 8 + round_number)
            assert follows.base_offset == 3 * (8 + round_number)
        assert client.values("orders") == [value for number in range(10) for value in three_of(number)]
        assert server.stop() == 0
    finally:
        if server.process.poll() is None:
            server.kill()
