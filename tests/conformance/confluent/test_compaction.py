"""Compacted topics as librdkafka's clients meet them, on a server that always looks for something to compact."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.conformance.confluent.conftest import TIMEOUT_S, send
from tests.conformance.confluent.test_transactions import open_producer
from tests.support.server_process import ServerProcess, lasting_listener, serving, start
from tests.support.waiting import eventually

SETTINGS = ["log.cleaner.backoff.ms=50", "flush.interval.ms=50"]
COMPACTED = {
    "cleanup_policy": "compact",
    "segment_bytes": "4000",
    "segment_ms": "200",
    "min_cleanable_dirty_ratio": "0.01",
}
KEYS = 20
Found = list[tuple[int, bytes, bytes | None]]


@pytest.fixture(scope="module")
def cleaning_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data_dir = str(tmp_path_factory.mktemp("cleaning") / "data")
    with serving(data_dir, lasting_listener(), SETTINGS) as server:
        yield server


def topic_on(server: ServerProcess, new_topic: Callable[..., str], **configs: str) -> str:
    return new_topic(client=AdminClient({"bootstrap.servers": server.kafka}), **(COMPACTED | configs))


def pairs(topic: str, first: int, stop: int, size: int = 100) -> list[dict[str, Any]]:
    """Messages whose values are their numbers, and whose keys come again and again."""
    return [
        {"topic": topic, "key": b"key %d" % (n % KEYS), "value": b"%06d" % n + bytes(size)}
        for n in range(first, stop)
    ]


def read_topic(server: ServerProcess, topic: str, **config: Any) -> Found:
    """All that is left of a topic, by a consumer that goes to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.kafka,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            **config,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: Found = []
    while True:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, "the end is reached"
        if message.error():
            assert message.error().name() == "_PARTITION_EOF", message.error()
            consumer.close()
            return found
        found.append((message.offset(), message.key(), message.value()))


def end_offset(server: ServerProcess, topic: str, spec: Any = None) -> int:
    admin = AdminClient({"bootstrap.servers": server.kafka})
    place = TopicPartition(topic, 0)
    futures = admin.list_offsets(
        {place: spec or OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_UNCOMMITTED
    )
    return int(futures[place].result(TIMEOUT_S).offset)


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd", "snappy"])
def test_the_latest_of_each_key_stays(
    cleaning_broker: ServerProcess, new_topic: Callable[..., str], codec: str
) -> None:
    topic = topic_on(cleaning_broker, new_topic)
    count = 1000
    written = pairs(topic, 0, count)
    for at in range(0, count, 50):
        sent = send(cleaning_broker, written[at : at + 50], **{"compression.type": codec})
        assert [message.offset() for message in sent] == list(range(at, at + 50))
    expected = [(n, written[n]["key"], written[n]["value"]) for n in range(count - KEYS, count)]
    eventually(lambda: read_topic(cleaning_broker, topic) == expected)
    assert end_offset(cleaning_broker, topic) == count
    # Small fetches meet runs of frames without records.
    small = {"fetch.message.max.bytes": 1000, "max.partition.fetch.bytes": 1000, "fetch.min.bytes": 1}
    assert read_topic(cleaning_broker, topic, **small) == expected
    assert read_topic(cleaning_broker, topic, **{"isolation.level": "read_uncommitted"}) == expected


def test_thousands_of_batches_of_one_record_each(
    cleaning_broker: ServerProcess, new_topic: Callable[..., str]
) -> None:
    topic = topic_on(cleaning_broker, new_topic, segment_bytes="1000000", segment_ms="1000")
    count, keys = 4000, 2500
    written = [{"topic": topic, "key": b"%d" % (n % keys), "value": b"%d" % n} for n in range(count)]
    send(cleaning_broker, written, **{"batch.num.messages": 1})
    expected = [(n, written[n]["key"], written[n]["value"]) for n in range(count - keys, count)]
    eventually(lambda: read_topic(cleaning_broker, topic) == expected)
    assert "not cleaned" not in cleaning_broker.log()


def test_an_offset_is_found_by_time_where_records_are_gone(
    cleaning_broker: ServerProcess, new_topic: Callable[..., str]
) -> None:
    topic = topic_on(cleaning_broker, new_topic)
    start_ms = 1_700_000_000_000
    for n, message in enumerate(pairs(topic, 0, 100)):
        send(cleaning_broker, [{**message, "timestamp": start_ms + n}], **{"linger.ms": 0})
    eventually(lambda: len(read_topic(cleaning_broker, topic)) == KEYS)
    left = [offset for offset, _, _ in read_topic(cleaning_broker, topic)]
    assert left == list(range(80, 100))
    for time_ms, offset in ((start_ms, 80), (start_ms + 79, 80), (start_ms + 85, 85)):
        assert end_offset(cleaning_broker, topic, OffsetSpec.for_timestamp(time_ms)) == offset
    assert end_offset(cleaning_broker, topic, OffsetSpec.max_timestamp()) == 99


def test_tombstones_go_after_a_while(cleaning_broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = topic_on(cleaning_broker, new_topic, delete_retention_ms="1000")
    send(cleaning_broker, pairs(topic, 0, 100))
    gone = [{"topic": topic, "key": b"key %d" % n, "value": None} for n in range(KEYS // 2)]
    send(cleaning_broker, gone)
    kept = {b"key %d" % n for n in range(KEYS // 2, KEYS)}
    eventually(lambda: {key for _, key, _ in read_topic(cleaning_broker, topic)} == kept)
    assert [value for _, _, value in read_topic(cleaning_broker, topic) if value is None] == []
    assert end_offset(cleaning_broker, topic) == 110


def test_tombstones_stay_as_long_as_the_topic_says(
    cleaning_broker: ServerProcess, new_topic: Callable[..., str]
) -> None:
    topic = topic_on(cleaning_broker, new_topic)
    send(cleaning_broker, pairs(topic, 0, 100))
    send(cleaning_broker, [{"topic": topic, "key": b"key 7", "value": None}])
    eventually(lambda: len(read_topic(cleaning_broker, topic)) == KEYS)
    assert (100, b"key 7", None) in read_topic(cleaning_broker, topic)


def test_both_policies(cleaning_broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = topic_on(cleaning_broker, new_topic, cleanup_policy="compact,delete", retention_bytes="1000000")
    send(cleaning_broker, pairs(topic, 0, 500))
    eventually(lambda: len(read_topic(cleaning_broker, topic)) == KEYS)
    assert end_offset(cleaning_broker, topic) == 500


def test_an_open_transaction_holds_compaction_back(
    cleaning_broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic = topic_on(cleaning_broker, new_topic)
    send(cleaning_broker, pairs(topic, 0, 100))
    eventually(lambda: len(read_topic(cleaning_broker, topic)) == KEYS)
    producer = open_producer(cleaning_broker, unique("txn"))
    producer.begin_transaction()
    producer.produce(topic, b"open", b"key 0")
    assert producer.flush(TIMEOUT_S) == 0
    other = topic_on(cleaning_broker, new_topic)
    send(cleaning_broker, pairs(topic, 100, 200))
    send(cleaning_broker, pairs(other, 0, 200))
    eventually(lambda: len(read_topic(cleaning_broker, other)) == KEYS)
    everything = {"isolation.level": "read_uncommitted"}
    assert len(read_topic(cleaning_broker, topic, **everything)) == KEYS + 1 + 100, "nothing behind it is touched"
    producer.commit_transaction()
    eventually(lambda: len(read_topic(cleaning_broker, topic, **everything)) == KEYS)


def test_producers_go_on_after_compaction_and_a_restart(
    tmp_path: Path, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    data_dir, listen = str(tmp_path / "data"), lasting_listener()
    server = start(data_dir, listen, SETTINGS)
    try:
        topic = topic_on(server, new_topic)
        producer = open_producer(server, unique("txn"))
        idempotent = open_idempotent(server)
        for turn in range(8):
            for is_kept in (True, False):
                producer.begin_transaction()
                for message in pairs(topic, turn * 100, turn * 100 + 50):
                    producer.produce(**message)
                assert producer.flush(TIMEOUT_S) == 0
                producer.commit_transaction() if is_kept else producer.abort_transaction()
            for message in pairs(topic, turn * 100 + 50, turn * 100 + 100):
                idempotent.produce(**message)
            assert idempotent.flush(TIMEOUT_S) == 0
            expected = [b"%06d" % n for n in range(turn * 100 + 80, turn * 100 + 100)]
            eventually(partial(has_numbers, server, topic, expected))
            if turn == 3:
                assert server.stop() == 0
                server = start(data_dir, listen, SETTINGS)
            if turn == 5:
                server.kill()
                # Without indexes all is read from the log again, what is known of producers too.
                for index in Path(data_dir).rglob("*.index"):
                    os.remove(index)
                server = start(data_dir, listen, SETTINGS)
        assert "error" not in server.log().lower()
    finally:
        server.kill()


def open_idempotent(server: ServerProcess) -> Any:
    return Producer({"bootstrap.servers": server.kafka, "enable.idempotence": True, "linger.ms": 5})


def has_numbers(server: ServerProcess, topic: str, expected: list[bytes]) -> bool:
    return [value[:6] for _, _, value in read_topic(server, topic) if value is not None] == expected
