"""Many of everything on one connection, and peers that do not read: bounded, and nobody else waits."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from millstream.wire.pulsar.pulsar_pb2 import (
    CommandError,
    CommandFlow,
    CommandGetTopicsOfNamespace,
    CommandGetTopicsOfNamespaceResponse,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
    CommandSubscribe,
    CommandSuccess,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
    CommandWatchTopicListSuccess,
    CommandWatchTopicUpdate,
    ProducerAccessMode,
    ServerError,
)
from tests.conformance.pulsar_raw.conftest import Connect
from tests.conformance.pulsar_raw.connection import Connection, entry, frame
from tests.conformance.raw.server_memory import growth_below
from tests.support.server_process import ServerProcess

Unique = Callable[[str], str]
PRODUCERS_MAX = 10_000
WATCHERS_MAX = 1000
PAUSE_S_MAX = 2.0
"""Seconds that somebody else may have to wait on a busy machine."""


@pytest.fixture
def witness(connect: Connect, topic: str) -> Iterator[Connection]:
    """Somebody else, who is served all the time."""
    one = connect()
    one.produce(f"{topic}-witness")
    yield one
    assert one.send(entry()).HasField("message_id")


def test_thousands_of_producers(connect: Connect, topic: str, witness: Connection, raw_server: ServerProcess) -> None:
    client = connect()
    client.produce(topic, 0)
    with growth_below(raw_server.process.pid, 100):
        asked = [CommandProducer(topic=topic, producer_id=n, request_id=n) for n in range(1, PRODUCERS_MAX + 1)]
        client.write(b"".join(map(frame, asked)))
        names = {client.receive(CommandProducerSuccess).producer_name for _ in range(PRODUCERS_MAX - 1)}
        assert client.receive(CommandError).error == ServerError.NotAllowedError
    assert len(names) == PRODUCERS_MAX - 1
    assert client.send(entry(), number=PRODUCERS_MAX - 1).producer_id == PRODUCERS_MAX - 1
    assert witness.alive()
    client.close()
    # All of them leave with their connection, so that an exclusive one may come.
    other = connect()
    deadline_s = time.monotonic() + 10
    for request in itertools.count(1):
        exclusive = ProducerAccessMode.Exclusive
        other.tell(CommandProducer(topic=topic, producer_id=1, request_id=request, producer_access_mode=exclusive))
        if isinstance(other.take()[0], CommandProducerSuccess):
            return
        assert time.monotonic() < deadline_s


def test_thousands_of_consumers(connect: Connect, topic: str, witness: Connection) -> None:
    client, count = connect(), 3000
    client.produce(topic)
    asked = [
        CommandSubscribe(topic=topic, subscription="s", subType=CommandSubscribe.Shared, consumer_id=n, request_id=n)
        for n in range(count)
    ]
    client.write(b"".join(map(frame, asked)))
    for _ in range(count):
        client.receive(CommandSuccess)
    client.write(b"".join(frame(CommandFlow(consumer_id=n, messagePermits=1)) for n in range(count)))
    stream = b"".join(frame(CommandSend(producer_id=1, sequence_id=n), entry(b"", n)) for n in range(count))
    client.write(stream)
    kinds = [type(client.take()[0]).__name__ for _ in range(2 * count)]
    assert kinds.count("CommandMessage") == kinds.count("CommandSendReceipt") == count
    began_s = time.monotonic()
    assert witness.alive()
    assert time.monotonic() - began_s < PAUSE_S_MAX


def test_thousands_of_watchers(connect: Connect, topic: str, witness: Connection, unique: Unique) -> None:
    client = connect()
    asked = [
        CommandWatchTopicList(
            request_id=n, watcher_id=n, namespace="public/default", topics_pattern=f".*{topic}-watched.*"
        )
        for n in range(WATCHERS_MAX + 1)
    ]
    client.write(b"".join(map(frame, asked)))
    for _ in range(WATCHERS_MAX):
        client.receive(CommandWatchTopicListSuccess)
    assert client.receive(CommandError).error == ServerError.NotAllowedError
    began_s = time.monotonic()
    witness.produce(f"{topic}-watched", 2)
    assert time.monotonic() - began_s < PAUSE_S_MAX
    for _ in range(WATCHERS_MAX):
        update = client.receive(CommandWatchTopicUpdate)
        assert list(update.new_topics) == [f"persistent://public/default/{topic}-watched"]
    client.write(b"".join(frame(CommandWatchTopicListClose(request_id=n, watcher_id=n)) for n in range(WATCHERS_MAX)))
    for _ in range(WATCHERS_MAX):
        client.receive(CommandSuccess)
    witness.produce(f"{topic}-watched-too", 3)
    assert client.alive()


def test_receipts_that_nobody_reads(
    connect: Connect, topic: str, witness: Connection, raw_server: ServerProcess
) -> None:
    """The server stops taking messages from who does not take its receipts."""
    slow = connect(receive_buffer_bytes=4096)
    slow.produce(topic)
    burst = b"".join(frame(CommandSend(producer_id=1, sequence_id=n), entry(b"", n)) for n in range(1000))
    slow.set_timeout(1.0)
    with growth_below(raw_server.process.pid, 60):
        with pytest.raises(TimeoutError):
            slow.write(burst * 2000)
        assert witness.alive()
    slow.set_timeout(30)
    for _ in range(1000):
        slow.take()


def test_answers_that_nobody_reads(
    connect: Connect, topic: str, witness: Connection, raw_server: ServerProcess
) -> None:
    """A request of a few bytes has an answer of many."""
    for n in range(300):
        witness.produce(f"{topic}-{'x' * 200}-{n}", n + 2)
    slow = connect(receive_buffer_bytes=4096)
    slow.set_timeout(1.0)
    ask = CommandGetTopicsOfNamespace(request_id=1, namespace="public/default", mode=CommandGetTopicsOfNamespace.ALL)
    with growth_below(raw_server.process.pid, 60):
        with contextlib.suppress(TimeoutError):
            slow.write(frame(ask) * 20_000)
        began_s = time.monotonic()
        assert witness.alive()
        assert time.monotonic() - began_s < PAUSE_S_MAX
    slow.set_timeout(30)
    assert len(slow.receive(CommandGetTopicsOfNamespaceResponse).topics) >= 300


def test_watchers_that_nobody_reads(
    connect: Connect, topic: str, witness: Connection, raw_server: ServerProcess
) -> None:
    """What is pushed unasked is bounded too, and is not missing in the end."""
    slow = connect(receive_buffer_bytes=4096)
    stem = f"{topic}-{'y' * 900}"
    for n in range(WATCHERS_MAX):
        slow.tell(CommandWatchTopicList(request_id=n, watcher_id=n, namespace="public/default", topics_pattern=".*"))
        slow.receive(CommandWatchTopicListSuccess)
    with growth_below(raw_server.process.pid, 150):
        for n in range(300):  # with 1000 watchers, 1 KB each: 300 MB
            witness.produce(f"{stem}-{n}", n + 2)
    seen: set[str] = set()
    while len(seen) < 300:
        update = slow.receive(CommandWatchTopicUpdate)
        if update.watcher_id == 0:
            seen |= {name for name in update.new_topics if stem in name}
