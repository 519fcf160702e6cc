"""kafka-python 1.4.7 as a client of Kafka 0.8, 0.9 and 0.10, and beside a client of today."""

import base64
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.kafka_python_1.conftest import Scenario
from tests.support.sample_records import Sample, samples
from tests.support.server_process import ServerProcess, serving

Unique = Callable[[str], str]

V0_8_1, V0_8_2, V0_9, V0_10_0, V0_10_1 = (0, 8, 1), (0, 8, 2), (0, 9), (0, 10, 0), (0, 10, 1)
MAGIC_0 = (V0_8_1, V0_8_2, V0_9)
ALL_VERSIONS = pytest.mark.parametrize("version", [*MAGIC_0, V0_10_0, V0_10_1], ids=str)
CODECS = pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4"], ids=str)
TIMEOUT_S = 30.0


def sendable() -> list[Sample]:
    """The records that this client sends: it wants a key or a value."""
    return [one for one in samples() if one.key is not None or one.value is not None]


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def records_as_json(records: list[Sample]) -> list[list[Any]]:
    return [[text(one.key), text(one.value), one.timestamp_ms] for one in records]


def expected(records: list[Sample], version: tuple[int, ...], first: int = 0) -> list[list[Any]]:
    """What a client of a version reads of records: offset, time, kind of time, key and value."""
    timeless = version in MAGIC_0
    return [
        [
            first + n,
            None if timeless else one.timestamp_ms,
            None if timeless else 0,
            text(one.key),
            text(one.value),
        ]
        for n, one in enumerate(records)
    ]


def read_today(server: ServerProcess, topic: str, count: int) -> list[Any]:
    """Read partition 0 with a client of today."""
    consumer = Consumer({"bootstrap.servers": server.kafka, "group.id": "unused"})
    with contextlib.closing(consumer):
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Any] = consumer.consume(count, TIMEOUT_S)
    assert all(one.error() is None for one in found)
    return found


def produce_today(server: ServerProcess, topic: str, records: list[Sample], codec: str) -> None:
    """Write to partition 0 with a client of today."""
    producer = Producer({"bootstrap.servers": server.kafka, "compression.type": codec, "linger.ms": 50})
    for one in records:
        producer.produce(topic, one.value, one.key, 0, timestamp=one.timestamp_ms, headers=list(one.headers))
    assert producer.flush(TIMEOUT_S) == 0


@pytest.mark.parametrize("version", [V0_8_2, V0_9, V0_10_0, V0_10_1], ids=str)
@CODECS
def test_round_trip(
    scenario: Scenario, broker: ServerProcess, unique: Unique, version: tuple[int, ...], codec: str | None
) -> None:
    topic, records = unique("kp1"), sendable()
    more = {"broker": broker.kafka, "topic": topic, "version": version}
    told = scenario("produce", codec=codec, records=records_as_json(records), **more)
    assert [offset for offset, _ in told] == list(range(len(records)))
    assert scenario("read", count=len(records), **more) == expected(records, version)
    # From the middle of a batch, with little room in each answer.
    rest = scenario("read", count=len(records) - 7, offset=7, max_bytes=1000, **more)
    assert rest == expected(records[7:], version, first=7)


@pytest.mark.parametrize("version", [V0_8_2, V0_10_0], ids=str)
@CODECS
def test_a_client_of_today_reads_the_same(
    scenario: Scenario, broker: ServerProcess, unique: Unique, version: tuple[int, ...], codec: str | None
) -> None:
    topic, records = unique("kp1"), sendable()
    more = {"broker": broker.kafka, "topic": topic, "version": version}
    scenario("produce", codec=codec, records=records_as_json(records), **more)
    found = read_today(broker, topic, len(records))
    assert [(one.key(), one.value()) for one in found] == [(one.key, one.value) for one in records]
    assert [one.offset() for one in found] == list(range(len(records)))
    if version not in MAGIC_0:
        assert [one.timestamp()[1] for one in found] == [one.timestamp_ms for one in records]


@pytest.mark.parametrize("version", [V0_8_1, V0_10_0], ids=str)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_a_client_of_today_writes(
    scenario: Scenario, broker: ServerProcess, unique: Unique, version: tuple[int, ...], codec: str
) -> None:
    topic, records = unique("kp1"), samples()
    produce_today(broker, topic, records, codec)
    found = scenario("read", broker=broker.kafka, topic=topic, version=version, count=len(records))
    assert found == expected(records, version)


@ALL_VERSIONS
def test_offsets(scenario: Scenario, broker: ServerProcess, unique: Unique, version: tuple[int, ...]) -> None:
    more = {"broker": broker.kafka, "topic": unique("kp1"), "version": version}
    records = records_as_json(sendable()[:20])
    scenario("produce", codec=None, records=records, **more)
    assert scenario("bounds", **more) == [0, 20]
    assert scenario("committed", group=unique("kp1-group"), offset=12, **more) == [None, 12, 12]


@pytest.mark.parametrize("version", [V0_9, V0_10_0, V0_10_1], ids=str)
def test_groups(scenario: Scenario, broker: ServerProcess, unique: Unique, version: tuple[int, ...]) -> None:
    more = {"broker": broker.kafka, "topic": unique("kp1"), "version": version}
    scenario("produce", codec="gzip", records=records_as_json(sendable()), **more)
    group = unique("kp1-group")
    assert scenario("group", group=group, count=100, **more) == list(range(100))
    assert scenario("group", group=group, count=50, **more) == list(range(100, 150))


@pytest.mark.parametrize("codec", [0, 1, 2], ids=["none", "gzip", "snappy"])
def test_the_client_of_0_8(scenario: Scenario, broker: ServerProcess, unique: Unique, codec: int) -> None:
    more = {"broker": broker.kafka, "topic": unique("kp1"), "group": unique("kp1-group")}
    half, rest, pending = scenario("simple", codec=codec, count=40, **more)
    assert half == list(range(20))
    assert rest == [[offset, str(offset)] for offset in range(20, 40)]
    assert pending == 0


@pytest.mark.parametrize("version", [V0_8_1, V0_10_0], ids=str)
def test_a_message_that_is_too_large(
    scenario: Scenario, broker: ServerProcess, unique: Unique, version: tuple[int, ...]
) -> None:
    records = [[None, text(bytes(1_100_000)), 0]]
    more = {"broker": broker.kafka, "topic": unique("kp1"), "version": version}
    assert scenario("refused", codec=None, records=records, max_request_bytes=2_000_000, **more) == (
        "MessageSizeTooLargeError"
    )


def test_it_takes_the_server_for_a_later_one(scenario: Scenario, broker: ServerProcess) -> None:
    """Asked without a version, it goes by what is advertised, and sends record batches."""
    assert tuple(scenario("probe", broker=broker.kafka)) >= (1, 0, 0)


@pytest.mark.parametrize("version", [V0_10_0, V0_10_1], ids=str)
def test_a_client_shows_who_it_is_in_bare_tokens(
    scenario: Scenario, tmp_path: Path, version: tuple[int, ...]
) -> None:
    users = tmp_path / "users"
    users.write_text("ada:secret\n")
    settings = ["sasl.enabled.mechanisms=PLAIN", f"sasl.users.file={users}"]
    with serving(str(tmp_path / "data"), settings=settings) as server:
        login = {"broker": server.kafka, "version": version, "topic": "bare", "user": "ada"}
        assert scenario("plain", **login, password="secret") == 0
        with pytest.raises(AssertionError, match=r"NoBrokersAvailable|Authentication|KafkaTimeout"):
            scenario("plain", **login, password="wrong")
