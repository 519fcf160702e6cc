"""What transactions wrote is read when they are committed, and not before; by either way of reading."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from millstream.model.frame import Attributes, FrameHeader
from millstream.spark.client import LATEST, Client
from millstream.spark.read.committed import without_aborted
from millstream.spark.read.frames import Frame
from tests.spark.conftest import Topics
from tests.spark.read.pulsar_transactions import Transactor
from tests.spark.read.readers_bed import batch_rows, stream_reader, stream_rows
from tests.support.server_process import ServerProcess, serving

_EARLIEST = {"startingOffsets": "earliest"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that knows transactions, on one port for all protocols."""
    data_dir = str(tmp_path_factory.mktemp("transactions") / "data")
    settings = ["pulsar.transactions.enable=true", "durability=os"]
    with serving(data_dir, listen="any=127.0.0.1:0", settings=settings) as running:
        running.addresses["kafka"] = running.addresses["any"]
        yield running
        assert "Traceback" not in running.log()


def _values(server: ServerProcess, topic: str, direct: str, **options: str) -> list[tuple[int, str]]:
    rows = batch_rows(server.kafka, subscribe=topic, direct=direct, columns="offset,value", **options)
    return [(row["offset"], row["value"].decode()) for row in rows]


@pytest.mark.parametrize("direct", ["always", "auto", "never"])
def test_pulsar_transactions(server: ServerProcess, direct: str) -> None:
    topic = Topics(server.kafka).create("pulsar-txn")
    with Transactor(server.addresses["any"], topic) as pulsar:
        committed, aborted, late = pulsar.begin(), pulsar.begin(), pulsar.begin()
        for number in range(4):
            pulsar.send(b"c%d" % number, committed)
            pulsar.send(b"a%d" % number, aborted)
            pulsar.send(b"p%d" % number)
        assert _values(server, topic, direct) == [], "the first transaction is not decided"
        pulsar.end(committed, commit=True)
        pulsar.end(aborted, commit=False)
        expected = [(at, f"{'cap'[at % 3]}{at // 3}") for at in range(12) if at % 3 != 1]
        assert _values(server, topic, direct) == expected
        pulsar.send(b"late", late)
        pulsar.send(b"plain")
        assert _values(server, topic, direct) == expected, "nothing behind what is not decided"
        pulsar.end(late, commit=True)
        assert _values(server, topic, direct) == [*expected, (12, "late"), (13, "plain")]


@pytest.mark.parametrize("direct", ["always", "auto", "never"])
def test_kafka_transactions(server: ServerProcess, direct: str) -> None:
    topic = Topics(server.kafka).create("kafka-txn")
    producer = Producer({"bootstrap.servers": server.kafka, "transactional.id": f"reader-{direct}", "log_level": 0})
    producer.init_transactions(30)

    def write(*values: str) -> None:
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(30)

    write("c1", "c2")
    producer.commit_transaction(30)
    write("a1", "a2")
    producer.abort_transaction(30)
    Topics(server.kafka).write_numbers(topic, range(2))
    write("c3")
    decided = ["c1", "c2", "0", "1"]
    assert [value for _, value in _values(server, topic, direct)] == decided
    producer.commit_transaction(30)
    assert [value for _, value in _values(server, topic, direct)] == [*decided, "c3"]


def test_a_stream_waits_for_the_decision(server: ServerProcess) -> None:
    topic = Topics(server.kafka).create("stream-txn")
    reader = stream_reader(server.kafka, subscribe=topic, columns="value", **_EARLIEST)
    start = reader.initialOffset()
    with Transactor(server.addresses["any"], topic) as pulsar:
        transaction = pulsar.begin()
        pulsar.send(b"plain")
        pulsar.send(b"undecided", transaction)
        pulsar.send(b"behind")
        first = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert first == {topic: {"0": 1}}
        assert stream_rows(reader, start, first) == [{"value": b"plain"}]
        pulsar.end(transaction, commit=False)
    second = reader.latestOffset(first, reader.getDefaultReadLimit())
    assert second == {topic: {"0": 3}}
    assert stream_rows(reader, first, second) == [{"value": b"behind"}]
    reader.stop()


def test_a_stretch_of_a_transaction_is_fetched_at_once(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = Topics(server.kafka).create("stretch")
    with Transactor(server.addresses["any"], topic) as pulsar:
        transaction = pulsar.begin()
        for number in range(50):
            pulsar.send(b"%d" % number, transaction)
        pulsar.end(transaction, commit=True)
    fetches = []
    fetch = Client.fetch

    def count(self: Client, *arguments: object) -> object:
        fetches.append(arguments)
        return fetch(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "fetch", count)
    assert len(_values(server, topic, "always")) == 50
    assert len(fetches) == 1


def test_the_latest_offset_is_that_of_what_is_decided(server: ServerProcess) -> None:
    topic = Topics(server.kafka).create("latest-txn")
    with Transactor(server.addresses["any"], topic) as pulsar, Client(server.kafka) as client:
        pulsar.send(b"plain")
        pulsar.send(b"undecided", pulsar.begin())
        assert client.offsets(client.topics([topic]), LATEST) == {topic: {0: 1}}


def _frame(base: int, producer_id: int, attributes: int, count: int = 2) -> Frame:
    fields = (base, 100, 0, 2, 0, attributes, count - 1, 0, 0, producer_id, 0, 0, count)
    return Frame(base * 100, FrameHeader(*fields))


def test_aborted_frames_that_a_broker_sends() -> None:
    in_transaction, marker = Attributes.TRANSACTIONAL, Attributes.TRANSACTIONAL | Attributes.CONTROL
    frames = [
        _frame(0, 1, in_transaction),  # committed below
        _frame(2, 2, in_transaction),  # aborted
        _frame(4, -1, 0),
        _frame(6, 2, in_transaction),  # aborted
        _frame(8, 1, marker, 1),
        _frame(9, 2, marker, 1),
        _frame(10, 2, in_transaction),  # another transaction of the same producer
        _frame(12, 1, in_transaction),  # aborted, without its marker in this answer
    ]
    kept = without_aborted(frames, [(1, 12), (2, 2)])
    assert [frame.header.base_offset for frame in kept] == [frame.header.base_offset for frame in frames]
    assert [frame.header.base_offset for frame in kept if not frame.header.record_count] == [2, 6, 12]
    assert without_aborted(frames, []) == frames
