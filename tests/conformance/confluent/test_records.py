"""librdkafka writes records of every shape with every codec, and reads them back byte for byte."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from tests.conformance.confluent.conftest import consuming, read, send
from tests.support.sample_records import Sample, samples
from tests.support.server_process import ServerProcess

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def as_sample(message: Any) -> Sample:
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Sample(message.key(), message.value(), headers, message.timestamp()[1])


def as_message(topic: str, sample: Sample, partition: int) -> dict[str, Any]:
    fields = {"key": sample.key, "value": sample.value, "timestamp": sample.timestamp_ms}
    return {"topic": topic, "partition": partition, "headers": list(sample.headers), **fields}


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(broker: ServerProcess, new_topic: Callable[..., str], codec: str) -> None:
    topic = new_topic(3)
    written = samples()
    messages = [as_message(topic, one, partition) for partition in range(3) for one in written]
    delivered = send(broker, messages, **{"compression.type": codec, "acks": "all"})
    assert sorted((one.partition(), one.offset()) for one in delivered) == [
        (partition, offset) for partition in range(3) for offset in range(len(written))
    ]
    with consuming(broker) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
        found = read(consumer, len(messages))
    for partition in range(3):
        own = [message for message in found if message.partition() == partition]
        assert [message.offset() for message in own] == list(range(len(written)))
        assert [as_sample(message) for message in own] == written


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(broker: ServerProcess, new_topic: Callable[..., str], acks: str) -> None:
    topic = new_topic()
    send(broker, [{"topic": topic, "value": b"%d" % n} for n in range(1000)], acks=acks)
    with consuming(broker) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [message.value() for message in read(consumer, 1000)] == [b"%d" % n for n in range(1000)]


def test_large_batches(broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    config = {"linger.ms": 200, "batch.num.messages": 10_000, "batch.size": 900_000}
    values = [b"record %d" % n for n in range(20_000)]
    send(broker, [{"topic": topic, "value": value} for value in values], **config)
    with consuming(broker) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [message.value() for message in read(consumer, len(values))] == values


def test_a_message_that_is_too_large(broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic(max_message_bytes="2000")
    config = {"linger.ms": 0, "message.max.bytes": 10_000_000}
    [refused] = send(broker, [{"topic": topic, "value": bytes(3000)}], **config)
    assert refused.name() == "MSG_SIZE_TOO_LARGE"
    [kept] = send(broker, [{"topic": topic, "value": b"small"}], **config)
    assert kept.offset() == 0


def test_idempotent_producer(broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    config = {"enable.idempotence": True, "linger.ms": 1, "batch.num.messages": 10, "compression.type": "lz4"}
    values = [b"%d" % n for n in range(3000)]
    delivered = send(broker, [{"topic": topic, "value": one, "partition": 1} for one in values], **config)
    assert [one.offset() for one in delivered] == list(range(3000))
    with consuming(broker) as consumer:
        consumer.assign([TopicPartition(topic, 1, 0)])
        assert [message.value() for message in read(consumer, 3000)] == values


def test_a_topic_comes_to_be_when_it_is_written_to(broker: ServerProcess, unique: Callable[[str], str]) -> None:
    topic = unique("ck-auto")
    [delivered] = send(broker, [{"topic": topic, "value": b"first"}])
    assert (delivered.partition(), delivered.offset()) == (0, 0)
