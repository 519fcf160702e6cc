"""Reading from the middle of a batch, and from a time, whoever wrote the batch."""

import time
from collections.abc import Callable
from typing import Final

import pulsar
import pytest

from tests.matrix.conftest import Clients
from tests.matrix.message import Message
from tests.matrix.pulsar import message_of
from tests.matrix.spark import SparkReader

WRITERS: Final = ("kafka", "kafka07", "pulsar", "iggy")
COUNT: Final = 20
MIDDLE: Final = 7
_TIME_US: Final = 1_600_000_000_000_000
_MAGIC_0_HEAD_BYTES: Final = 9
Unique = Callable[[str], str]


def _write(clients: Clients, writer: str, topic: str, first: int = 0) -> None:
    """One batch of numbered messages, a second apart where the writer sets the time."""
    messages = [Message(value=b"%d" % n, time_us=_TIME_US + 1_000_000 * n) for n in range(first, first + COUNT)]
    match writer:
        case "kafka":
            clients.kafka.write(topic, messages)
        case "kafka07":
            clients.kafka07.write(topic, messages)
        case "pulsar":
            clients.pulsar.write(topic, messages, batch=COUNT)
        case _:
            clients.iggy.write(topic, messages)


def _numbers(messages: list[Message]) -> list[int]:
    return [int(one.value or b"") for one in messages]


@pytest.fixture(scope="module", params=WRITERS)
def topic(request: pytest.FixtureRequest, clients: Clients) -> str:
    """A topic with one batch, named for its writer."""
    name = f"places-{request.param}"
    clients.kafka.create(name)
    _write(clients, request.param, name)
    return name


def test_from_the_middle_of_a_batch(clients: Clients, spark_reader: SparkReader, topic: str) -> None:
    rest = list(range(MIDDLE, COUNT))
    assert _numbers(clients.kafka.read_from(topic, MIDDLE, len(rest))) == rest
    assert _numbers(clients.iggy.poll(topic, ("Offset", MIDDLE))) == rest
    assert _numbers(clients.iggy.poll(topic, ("Offset", MIDDLE), count=3)) == rest[:3]
    assert _numbers(clients.iggy.poll(topic, ("Last",), count=3)) == rest[-3:]
    address = sum(_MAGIC_0_HEAD_BYTES + len(b"%d" % number) for number in range(MIDDLE))
    assert [int(value) for value in clients.kafka07.values(topic, address=address)] == rest
    starting = f'{{"{topic}": {{"0": {MIDDLE}}}}}'
    assert _numbers(spark_reader.read_some(topic, startingOffsets=starting)) == rest


def test_pulsar_from_the_middle_of_a_batch(clients: Clients, topic: str) -> None:
    client = clients.pulsar.client
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    ids = [reader.read_next(10_000).message_id() for _ in range(COUNT)]
    reader.close()
    assert len({(one.ledger_id(), one.entry_id()) for one in ids}) == 1
    assert [one.batch_index() for one in ids] == list(range(COUNT))
    reader = client.create_reader(topic, ids[MIDDLE], start_message_id_inclusive=True)
    found = [message_of(reader.read_next(10_000)) for _ in range(COUNT - MIDDLE)]
    assert _numbers(found) == list(range(MIDDLE, COUNT))
    reader.seek(ids[2])
    assert int(reader.read_next(10_000).data()) in (2, 3)  # the reader is exclusive in some releases
    reader.close()


@pytest.mark.parametrize("writer", ["kafka", "pulsar"])
def test_from_a_time_that_the_producer_set(clients: Clients, unique: Unique, writer: str) -> None:
    topic = unique(f"times-{writer}")
    clients.kafka.create(topic)
    _write(clients, writer, topic)
    middle_ms = _TIME_US // 1000 + 1000 * MIDDLE
    for time_ms in (middle_ms, middle_ms - 500):
        assert clients.kafka.offset_for_time(topic, time_ms) == MIDDLE
        assert _numbers(clients.iggy.poll(topic, ("Timestamp", time_ms * 1000)))[0] == MIDDLE


def test_nothing_is_passed_over_where_events_are_older_than_their_publication(
    clients: Clients, unique: Unique
) -> None:
    """Each message is a batch of its own, whose time is that of its publication: later than any of the events."""
    topic = unique("times-single")
    clients.kafka.create(topic)
    clients.pulsar.write(topic, [Message(value=b"%d" % n, time_us=_TIME_US + 1_000_000 * n) for n in range(5)])
    middle_ms = _TIME_US // 1000 + 2500
    assert clients.kafka.offset_for_time(topic, middle_ms) == 0
    assert _numbers(clients.iggy.poll(topic, ("Timestamp", middle_ms * 1000))) == list(range(5))


@pytest.mark.parametrize("writer", WRITERS)
def test_from_a_time_between_two_batches(clients: Clients, unique: Unique, writer: str) -> None:
    """By the time at which things were published or appended, which all but Kafka's producers leave to the server."""
    topic = unique(f"between-{writer}")
    clients.kafka.create(topic)
    _write(clients, writer, topic)
    time.sleep(0.02)
    between_ms = time.time_ns() // 1_000_000
    time.sleep(0.02)
    _write(clients, writer, topic, first=COUNT)
    if writer == "kafka":
        between_ms = _TIME_US // 1000 + 1000 * COUNT - 500
    assert clients.kafka.offset_for_time(topic, between_ms) == COUNT
    assert clients.kafka.offset_for_time(topic, between_ms + 3_600_000) == -1
    assert _numbers(clients.iggy.poll(topic, ("Timestamp", between_ms * 1000)))[0] == COUNT
    reader = clients.pulsar.client.create_reader(topic, pulsar.MessageId.earliest)
    reader.seek(between_ms)
    assert int(reader.read_next(10_000).data()) == COUNT
    reader.close()
    # An address of 0.7 is that of a segment: the first one is older than everything.
    assert clients.kafka07.before(topic, between_ms) in ([], [0])
