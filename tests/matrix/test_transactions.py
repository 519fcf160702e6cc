"""What Kafka's transactions write is for readers of other protocols once it is committed, or never."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from tests.matrix.conftest import Clients
from tests.matrix.message import Message
from tests.support.server_process import ServerProcess

TIMEOUT_S: Final = 30.0
OPEN: Final = "transactions-open"
ENDED: Final = "transactions-ended"
SEEN: Final = [b"before", b"kept 0", b"kept 1", b"kept 2", b"between"]
READERS: Final = ("kafka", "kafka07", "pulsar", "iggy")
Found = dict[str, dict[str, list[Message]]]


def _write(producer: Any, topic: str, *values: bytes) -> None:
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def _fill(address: str, topic: str, name: str) -> Any:
    """Write inside and outside of transactions, and leave one open; gives its producer."""
    plain = Producer({"bootstrap.servers": address})
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": name, "compression.type": "zstd", "linger.ms": 50}
    )
    producer.init_transactions(TIMEOUT_S)
    _write(plain, topic, SEEN[0])
    producer.begin_transaction()
    _write(producer, topic, *SEEN[1:4])
    producer.commit_transaction(TIMEOUT_S)
    producer.begin_transaction()
    _write(producer, topic, b"gone 0", b"gone 1")
    producer.abort_transaction(TIMEOUT_S)
    _write(plain, topic, SEEN[4])
    producer.begin_transaction()
    _write(producer, topic, b"late 0", b"late 1")
    _write(plain, topic, b"behind")
    return producer


@pytest.fixture(scope="module")
def found(clients: Clients, matrix_server: ServerProcess) -> Iterator[Found]:
    """Two topics as every reader sees them; in one of them a transaction is open."""
    clients.kafka.create(OPEN, ENDED)
    address = matrix_server.addresses["any"]
    held = _fill(address, OPEN, "matrix-open")
    _fill(address, ENDED, "matrix-ended").commit_transaction(TIMEOUT_S)
    topics = {OPEN: len(SEEN), ENDED: len(SEEN) + 3}
    yield {
        "kafka": clients.kafka.read(topics),
        "kafka07": clients.kafka07.read(topics, 1),
        "pulsar": clients.pulsar.read(topics, 1),
        "iggy": clients.iggy.read(topics, 1),
    }
    held.abort_transaction(TIMEOUT_S)


@pytest.mark.parametrize("reader", READERS)
def test_committed_records_are_read_and_aborted_ones_are_not(found: Found, reader: str) -> None:
    assert [one.value for one in found[reader][ENDED]] == [*SEEN, b"late 0", b"late 1", b"behind"]
    if reader != "kafka07":
        assert [one.offset for one in found[reader][ENDED]] == [0, 1, 2, 3, 6, 7, 8, 9]


@pytest.mark.parametrize("reader", READERS)
def test_what_is_open_is_waited_for(clients: Clients, found: Found, reader: str) -> None:
    assert [one.value for one in found[reader][OPEN]] == SEEN
    assert clients.kafka07.values(OPEN) == SEEN
