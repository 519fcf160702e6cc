"""Clients of aiokafka: producers, consumers, members of groups and an admin client."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.support.server_process import ServerProcess

TIMEOUT_S = 60.0
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def run() -> Run:
    """Runs a test's coroutine on a loop of its own."""

    def go(test: Coroutine[Any, Any, None]) -> None:
        asyncio.run(asyncio.wait_for(test, 1.5 * TIMEOUT_S))

    return go


@pytest.fixture
def new_topic(broker: ServerProcess, unique: Callable[[str], str]) -> Callable[..., str]:
    """Creates a topic and returns its name."""

    def create(partitions: int = 1, server: ServerProcess = broker, **configs: str) -> str:
        name = unique("aio")
        settings = {key.replace("_", "."): value for key, value in configs.items()}

        async def ask() -> None:
            async with administering(server) as admin:
                await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])

        asyncio.run(ask())
        return name

    return create


@contextlib.asynccontextmanager
async def administering(server: ServerProcess) -> AsyncIterator[Any]:
    """An admin client."""
    admin = AIOKafkaAdminClient(bootstrap_servers=server.kafka)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


@contextlib.asynccontextmanager
async def producing(server: ServerProcess, **config: Any) -> AsyncIterator[Any]:
    """A producer that is flushed and stopped at the end."""
    async with AIOKafkaProducer(bootstrap_servers=server.kafka, **config) as producer:
        yield producer


async def send_values(server: ServerProcess, topic: str, values: Iterable[bytes], partitions: int = 1) -> None:
    """Produce values to the partitions in turn."""
    async with producing(server) as producer:
        sent = [await producer.send(topic, value, partition=n % partitions) for n, value in enumerate(values)]
        await asyncio.gather(*sent)


@contextlib.asynccontextmanager
async def consuming(server: ServerProcess, *topics: str, **config: Any) -> AsyncIterator[Any]:
    """A consumer that is stopped at the end."""
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "fetch_max_wait_ms": 50, **config}
    async with AIOKafkaConsumer(*topics, bootstrap_servers=server.kafka, **settings) as consumer:
        yield consumer


async def read(consumer: Any, count: int) -> list[Any]:
    """Read so many records."""
    records: list[Any] = []
    while len(records) < count:
        found = await asyncio.wait_for(consumer.getmany(timeout_ms=500, max_records=count - len(records)), TIMEOUT_S)
        for some in found.values():
            records += some
    return records


class Member:
    """A member of a group that polls in a task, and commits what it has read."""

    def __init__(self, server: ServerProcess, topic: str, group: str, **config: Any) -> None:
        settings = {"group_id": group, "heartbeat_interval_ms": 200, "metadata_max_age_ms": 1000, **config}
        self.values: list[bytes] = []
        self.partitions: set[int] = set()
        self.generations = 0
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._run(server, topic, settings))

    async def _run(self, server: ServerProcess, topic: str, settings: dict[str, Any]) -> None:
        async with consuming(server, topic, **settings) as consumer:
            while not self._stop.is_set():
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    await consumer.commit()
                    self.values += [record.value for record in records]
                now = {one.partition for one in consumer.assignment()}
                self.generations += now != self.partitions
                self.partitions = now

    async def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        await asyncio.wait_for(self._task, TIMEOUT_S)


async def eventually_async(ask: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Wait until something is true."""
    deadline_s = time.monotonic() + timeout_s
    while not ask():
        assert time.monotonic() < deadline_s, f"still not so after {timeout_s} s"
        await asyncio.sleep(0.05)


def place(topic: str, partition: int = 0) -> Any:
    """A partition, as the client names it."""
    return TopicPartition(topic, partition)
