"""Compacted topics as clients written in Python meet them: kafka-python, and aiokafka."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.conformance.aiokafka import conftest as aiokafka_client
from tests.conformance.confluent.test_compaction import COMPACTED, SETTINGS, pairs, read_topic
from tests.conformance.kafka_python.conftest import consuming, place, producing, read
from tests.support.kafka_load import create_topic
from tests.support.server_process import ServerProcess, serving
from tests.support.waiting import eventually

COUNT = 600


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, list[bytes]]]:
    """A server with a compacted topic, and the values that are left in it; one of them is a tombstone."""
    with serving(str(tmp_path_factory.mktemp("cleaning") / "data"), settings=SETTINGS) as server:
        configs = {name.replace("_", "."): value for name, value in COMPACTED.items()}
        create_topic(server.kafka, "table", 1, configs)
        written = pairs("table", 0, COUNT)
        with producing(server, compression_type="gzip", linger_ms=5) as producer:
            for message in written:
                producer.send("table", message["value"], message["key"])
            producer.send("table", None, written[-1]["key"]).get(30)
        eventually(lambda: len(read_topic(server, "table")) == 20)
        yield server, [message["value"] for message in written[-20:-1]]


def test_kafka_python(compacted: tuple[ServerProcess, list[bytes]]) -> None:
    server, expected = compacted
    with consuming(server, max_partition_fetch_bytes=500) as consumer:
        consumer.assign([place("table")])
        consumer.seek_to_beginning()
        found = read(consumer, 20)
    assert [record.offset for record in found] == [*range(COUNT - 20, COUNT - 1), COUNT]
    assert [record.value for record in found] == [*expected, None]


def test_aiokafka(compacted: tuple[ServerProcess, list[bytes]]) -> None:
    server, expected = compacted

    async def consume() -> None:
        async with aiokafka_client.consuming(server, max_partition_fetch_bytes=500) as consumer:
            consumer.assign([aiokafka_client.place("table")])
            await consumer.seek_to_beginning()
            found = await aiokafka_client.read(consumer, 20)
        assert [record.offset for record in found] == [*range(COUNT - 20, COUNT - 1), COUNT]
        assert [record.value for record in found] == [*expected, None]

    asyncio.run(consume())
