"""Fetch: whole batches, bounds on bytes, waiting, and what is told of a partition."""

import threading
import time
import uuid
from collections.abc import Callable

import pytest

from millstream.wire.compression import Codec
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from millstream.wire.kafka.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from millstream.wire.kafka.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from tests.conformance.raw.conftest import Connect
from tests.conformance.raw.log_client import LogClient, headers_of, records_of


def test_an_offset_inside_a_batch_gives_the_whole_batch(client: LogClient, topic: str) -> None:
    for first in (0, 10, 20):
        assert client.append(topic, *[b"%d" % (first + n) for n in range(10)], codec=Codec.SNAPPY) == first
    for offset in range(30):
        header = headers_of(client.fetch(topic, offset, partition_max_bytes=1).records)[0]
        assert header.base_offset <= offset <= header.last_offset
        assert header.record_count == 10
    everything = client.fetch(topic, 14)
    assert [header.base_offset for header in headers_of(everything.records)] == [10, 20]
    assert (everything.high_watermark, everything.last_stable_offset, everything.log_start_offset) == (30, 30, 0)


def test_offsets_out_of_range(client: LogClient, topic: str) -> None:
    client.append(topic, b"a", b"b", b"c")
    asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
    client.call(DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[asked]))
    for offset in (-1, 0, 4, 2**62):
        answer = client.fetch(topic, offset, max_wait_ms=30_000, min_bytes=1)
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert not answer.records
        assert answer.high_watermark == 3
    # The end is an offset to wait at, and the batch that holds the start is whole.
    assert client.fetch(topic, 3).error_code == 0
    assert [record.offset for record in records_of(client.fetch(topic, 1).records)] == [0, 1, 2]


def test_unknown_topics_and_ids(client: LogClient, topic: str) -> None:
    assert client.fetch("no-such-topic", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.fetch(topic, 0, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    unknown = uuid.uuid4()
    request = FetchRequest(
        max_wait_ms=30_000, min_bytes=1, topics=[FetchTopic(topic_id=unknown, partitions=[wanted])]
    )
    for version in (13, 18):
        [answered] = client.call(FETCH, version, request).responses
        assert answered.topic_id == unknown
        assert answered.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_leader_epochs(client: LogClient, topic: str) -> None:
    for epoch, code in ((-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        wanted = FetchPartition(partition=0, current_leader_epoch=epoch, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(topics=[FetchTopic(topic=topic, partitions=[wanted])])
        assert client.call(FETCH, 12, request).responses[0].partitions[0].error_code == code


def test_max_bytes(client: LogClient, unique: Callable[[str], str]) -> None:
    topic = unique("raw")
    client.create_topic(topic, 3)
    for partition in range(3):
        for _ in range(10):
            client.append_to(topic, partition, bytes(10_000))

    def sizes(max_bytes: int, partition_max_bytes: int) -> list[int]:
        wanted = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=partition_max_bytes)
            for index in range(3)
        ]
        request = FetchRequest(max_bytes=max_bytes, topics=[FetchTopic(topic=topic, partitions=wanted)])
        [answered] = client.call(FETCH, 12, request).responses
        by_index = {answer.partition_index: len(headers_of(answer.records)) for answer in answered.partitions}
        assert set(by_index) == {0, 1, 2}
        return [by_index[index] for index in range(3)]

    assert sizes(1 << 20, 1 << 20) == [10, 10, 10]
    assert sizes(1 << 20, 35_000) == [3, 3, 3]
    assert sizes(45_000, 35_000) == [3, 1, 0]
    # The first batch comes whole even if it is larger than anything that was asked for.
    assert sizes(1, 1) == [1, 0, 0]
    assert sizes(1 << 20, 1) == [1, 0, 0]


def test_it_waits_for_data_and_no_longer(client: LogClient, connect: Connect, topic: str) -> None:
    began_s = time.monotonic()
    assert not client.fetch(topic, 0, max_wait_ms=300, min_bytes=1).records
    assert time.monotonic() - began_s >= 0.29
    writer = connect()
    news = threading.Timer(0.3, writer.append, [topic, b"news"])
    news.start()
    began_s = time.monotonic()
    assert [
        record.value for record in records_of(client.fetch(topic, 0, max_wait_ms=50_000, min_bytes=1).records)
    ] == [b"news"]
    assert time.monotonic() - began_s < 40
    news.join()


def test_min_bytes(client: LogClient, connect: Connect, topic: str) -> None:
    writer = connect()
    waiting: list[list[bytes | None]] = []

    def read() -> None:
        answer = client.fetch(topic, 0, max_wait_ms=50_000, min_bytes=5_000)
        waiting.append([record.value for record in records_of(answer.records)])

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(3):
        writer.append(topic, bytes(1_500))
    time.sleep(0.3)
    assert not waiting, "5000 bytes are not there yet"
    writer.append(topic, bytes(1_500))
    reader.join(40)
    assert waiting == [[bytes(1_500)] * 4]
    # Too little within the time: what there is.
    assert len(headers_of(writer.fetch(topic, 3, max_wait_ms=100, min_bytes=1 << 20).records)) == 1


@pytest.mark.parametrize("max_wait_ms", [-1, -(2**31)])
def test_a_negative_wait_is_none(client: LogClient, topic: str, max_wait_ms: int) -> None:
    assert not client.fetch(topic, 0, max_wait_ms=max_wait_ms, min_bytes=1).records


def test_one_wait_for_many_partitions(client: LogClient, connect: Connect, unique: Callable[[str], str]) -> None:
    topic = unique("raw")
    client.create_topic(topic, 50)
    wanted = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1000) for n in range(50)]
    request = FetchRequest(max_wait_ms=50_000, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=wanted)])
    sent = client.send(FETCH, 12, request)
    connect().append_to(topic, 37, b"news")
    [answered] = client.receive(FETCH, 12, sent).responses
    assert [answer.partition_index for answer in answered.partitions if answer.records] == [37]


def test_the_end_of_a_topic_ends_the_wait(client: LogClient, connect: Connect, topic: str) -> None:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(max_wait_ms=50_000, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[wanted])])
    sent = client.send(FETCH, 12, request)
    connect().call(DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[topic]))
    [answered] = client.receive(FETCH, 12, sent).responses
    assert answered.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_there_are_no_aborted_transactions(client: LogClient, topic: str) -> None:
    client.append(topic, b"a")
    for isolation_level in (0, 1):
        answer = client.fetch(topic, 0, isolation_level=isolation_level)
        assert not answer.aborted_transactions
        assert len(records_of(answer.records)) == 1
