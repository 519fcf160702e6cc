"""kafka-python writes records of every shape with every codec, and reads them back byte for byte."""

from collections.abc import Callable
from typing import Any

import pytest
from kafka.errors import MessageSizeTooLargeError

from tests.conformance.kafka_python.conftest import TIMEOUT_S, consuming, place, producing, read
from tests.support.sample_records import Sample, samples
from tests.support.server_process import ServerProcess

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


def as_sample(record: Any) -> Sample:
    return Sample(record.key, record.value, tuple(tuple(header) for header in record.headers), record.timestamp)


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(broker: ServerProcess, new_topic: Callable[..., str], codec: str | None) -> None:
    topic = new_topic(3)
    # This client sends no record that has neither key nor value.
    written = [one for one in samples() if (one.key, one.value) != (None, None)]
    with producing(broker, compression_type=codec, acks="all", linger_ms=20) as producer:
        sent = [
            producer.send(
                topic, one.value, one.key, list(one.headers), partition=partition, timestamp_ms=one.timestamp_ms
            )
            for partition in range(3)
            for one in written
        ]
        offsets = [future.get(TIMEOUT_S).offset for future in sent]
    assert offsets == list(range(len(written))) * 3
    with consuming(broker) as consumer:
        consumer.assign([place(topic, partition) for partition in range(3)])
        found = read(consumer, 3 * len(written))
    for partition in range(3):
        own = [record for record in found if record.partition == partition]
        assert [record.offset for record in own] == list(range(len(written)))
        assert [as_sample(record) for record in own] == written


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(broker: ServerProcess, new_topic: Callable[..., str], acks: int | str) -> None:
    topic = new_topic()
    values = [b"%d" % n for n in range(1000)]
    with producing(broker, acks=acks, enable_idempotence=False) as producer:
        for value in values:
            producer.send(topic, value)
    with consuming(broker, topic) as consumer:
        assert [record.value for record in read(consumer, 1000)] == values


def test_idempotent_producer(broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    values = [b"%d" % n for n in range(2000)]
    with producing(broker, enable_idempotence=True, batch_size=200, compression_type="gzip") as producer:
        sent = [producer.send(topic, value) for value in values]
        assert [future.get(TIMEOUT_S).offset for future in sent] == list(range(len(values)))
    with consuming(broker, topic) as consumer:
        assert [record.value for record in read(consumer, len(values))] == values


def test_a_record_that_is_too_large(broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic(max_message_bytes="2000")
    # An idempotent producer of this client gives up for good after such an error.
    with producing(broker, enable_idempotence=False) as producer:
        with pytest.raises(MessageSizeTooLargeError):
            producer.send(topic, bytes(3000)).get(TIMEOUT_S)
        assert producer.send(topic, b"small").get(TIMEOUT_S).offset == 0


def test_append_time(broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    with producing(broker) as producer:
        told = producer.send(topic, b"x", timestamp_ms=5).get(TIMEOUT_S)
    with consuming(broker, topic) as consumer:
        [record] = read(consumer, 1)
    assert (record.timestamp_type, record.timestamp) == (1, told.timestamp)
    assert record.timestamp > 1_700_000_000_000
