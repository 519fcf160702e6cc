"""Segments and retention, on a server that looks for old segments all the time."""

import os
from collections.abc import Callable
from uuid import UUID

import pytest

from millstream.model.record import Record
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.records import build_batch
from tests.conformance.raw.conftest import Connect
from tests.conformance.raw.log_client import EARLIEST, LATEST, LogClient, now_ms, records_of
from tests.support.server_process import ServerProcess
from tests.support.waiting import eventually

VALUE = bytes(1000)
SEGMENT_BYTES = 5000
APPENDS = 40


@pytest.fixture
def client(impatient_broker: ServerProcess, connect: Connect) -> LogClient:
    return connect(impatient_broker)


def segments(server: ServerProcess, topic_id: UUID) -> list[int]:
    """Base offsets of the segments on the disk of a topic with one partition."""
    found = []
    for directory, _, files in os.walk(server.data_dir):
        if str(topic_id) in directory or topic_id.hex in directory:
            found += [int(name.removesuffix(".log")) for name in files if name.endswith(".log")]
    return sorted(found)


def test_segment_bytes(client: LogClient, impatient_broker: ServerProcess, unique: Callable[[str], str]) -> None:
    topic = unique("raw")
    topic_id = client.create_topic(topic, configs={"segment.bytes": str(SEGMENT_BYTES)})
    for _ in range(APPENDS):
        client.append(topic, VALUE)
    assert segments(impatient_broker, topic_id) == list(range(0, APPENDS, 4)), "four batches of 1 KB in each"
    assert len(client.values(topic)) == APPENDS


def test_retention_by_size(client: LogClient, impatient_broker: ServerProcess, unique: Callable[[str], str]) -> None:
    topic = unique("raw")
    configs = {"segment.bytes": str(SEGMENT_BYTES), "retention.bytes": "10000"}
    topic_id = client.create_topic(topic, configs=configs)
    for _ in range(APPENDS):
        client.append(topic, VALUE)
    # Whole segments go as long as what is left is no less than was asked for.
    eventually(lambda: len(segments(impatient_broker, topic_id)) == 3)
    start = client.offset(topic, EARLIEST)
    assert start == segments(impatient_broker, topic_id)[0] == APPENDS - 12
    assert client.offset(topic, LATEST) == APPENDS
    assert [record.offset for record in client.records(topic)] == list(range(start, APPENDS))
    assert client.fetch(topic, start - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_retention_by_time(client: LogClient, impatient_broker: ServerProcess, unique: Callable[[str], str]) -> None:
    topic = unique("raw")
    hour_ms = 3600 * 1000
    size = {"segment.bytes": str(SEGMENT_BYTES)}
    topic_id = client.create_topic(topic, configs=size)
    for _ in range(8):
        client.append(topic, VALUE, timestamp_ms=now_ms() - 2 * hour_ms)
    for _ in range(4):
        client.append(topic, VALUE)
    # Only now: a segment whose records are all too old is sealed, however small it is.
    client.configure(topic, {**size, "retention.ms": str(hour_ms)})
    eventually(lambda: client.offset(topic, EARLIEST) == 8)
    eventually(lambda: segments(impatient_broker, topic_id) == [8])
    assert len(client.values(topic)) == 4


def test_an_idle_log_becomes_empty(
    client: LogClient, impatient_broker: ServerProcess, unique: Callable[[str], str]
) -> None:
    topic = unique("raw")
    topic_id = client.create_topic(topic, configs={"retention.ms": "300"})
    client.append(topic, b"a", b"b", b"c")
    eventually(lambda: client.offset(topic, EARLIEST) == 3)
    eventually(lambda: segments(impatient_broker, topic_id) == [3])
    assert client.append(topic, b"d", timestamp_ms=now_ms() + 1000_000) == 3, "offsets are not used again"
    assert [record.offset for record in records_of(client.fetch(topic, 3).records)] == [3]


def test_segment_ms(client: LogClient, impatient_broker: ServerProcess, unique: Callable[[str], str]) -> None:
    topic = unique("raw")
    topic_id = client.create_topic(topic, configs={"segment.ms": "1"})

    def rolled() -> bool:
        client.append(topic, b"x")
        return len(segments(impatient_broker, topic_id)) >= 3

    eventually(rolled)


def test_what_is_compacted_is_not_deleted(client: LogClient, unique: Callable[[str], str]) -> None:
    hour_ms = 3600 * 1000
    kept, gone = unique("raw"), unique("raw")
    for topic, policy in ((kept, "compact"), (gone, "compact,delete")):
        client.create_topic(topic, configs={"cleanup.policy": policy, "retention.ms": str(hour_ms)})
        old = Record(offset=0, timestamp_ms=now_ms() - 2 * hour_ms, key=b"k", value=b"v")
        client.produce(topic, build_batch([old]))
    eventually(lambda: client.offset(gone, EARLIEST) == 1)
    assert client.offset(kept, EARLIEST) == 0
