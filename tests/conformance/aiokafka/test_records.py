"""aiokafka writes records of every shape with every codec, and reads them back byte for byte."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.errors import MessageSizeTooLargeError

from tests.conformance.aiokafka.conftest import Run, consuming, place, producing, read
from tests.support.sample_records import Sample, samples
from tests.support.server_process import ServerProcess

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


def as_sample(record: Any) -> Sample:
    return Sample(record.key, record.value, tuple(record.headers), record.timestamp)


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(broker: ServerProcess, new_topic: Callable[..., str], run: Run, codec: str | None) -> None:
    topic = new_topic(3)
    # This client sends no record that has neither key nor value.
    written = [one for one in samples() if (one.key, one.value) != (None, None)]

    async def write_and_read() -> None:
        async with producing(broker, compression_type=codec, acks="all", linger_ms=20) as producer:
            sent = [
                await producer.send(
                    topic,
                    one.value,
                    one.key,
                    partition=partition,
                    timestamp_ms=one.timestamp_ms,
                    headers=list(one.headers),
                )
                for partition in range(3)
                for one in written
            ]
            offsets = [told.offset for told in await asyncio.gather(*sent)]
        assert offsets == list(range(len(written))) * 3
        async with consuming(broker) as consumer:
            consumer.assign([place(topic, partition) for partition in range(3)])
            found = await read(consumer, 3 * len(written))
        for partition in range(3):
            own = [record for record in found if record.partition == partition]
            assert [record.offset for record in own] == list(range(len(written)))
            assert [as_sample(record) for record in own] == written

    run(write_and_read())


@pytest.mark.parametrize("config", [{"acks": 0}, {"acks": 1}, {"acks": "all"}, {"enable_idempotence": True}], ids=str)
def test_acks_and_idempotence(
    broker: ServerProcess, new_topic: Callable[..., str], run: Run, config: dict[str, Any]
) -> None:
    topic = new_topic()
    values = [b"%d" % n for n in range(1000)]

    async def write_and_read() -> None:
        async with producing(broker, max_batch_size=500, **config) as producer:
            for value in values:
                await producer.send(topic, value)
        async with consuming(broker, topic) as consumer:
            assert [record.value for record in await read(consumer, len(values))] == values

    run(write_and_read())


def test_a_record_that_is_too_large(broker: ServerProcess, new_topic: Callable[..., str], run: Run) -> None:
    topic = new_topic(max_message_bytes="2000")

    async def write() -> None:
        async with producing(broker) as producer:
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(topic, bytes(3000))
            assert (await producer.send_and_wait(topic, b"small")).offset == 0

    run(write())


def test_append_time(broker: ServerProcess, new_topic: Callable[..., str], run: Run) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")

    async def write_and_read() -> None:
        async with producing(broker) as producer:
            told = await producer.send_and_wait(topic, b"x", timestamp_ms=5)
        async with consuming(broker, topic) as consumer:
            [record] = await read(consumer, 1)
        assert (record.timestamp_type, record.timestamp) == (1, told.timestamp)

    run(write_and_read())
