"""aiokafka, which is used as apache-iggy is: with coroutines, one batch sent and waited for at a time."""

import asyncio
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from bench.drivers.driver import Endpoint
from bench.drivers.pipeline import DriverError

__all__ = ["AiokafkaClient"]

_BATCH_BYTES_MAX = 2_000_000
_POLL_MS = 5000


class AiokafkaClient:
    """Sends and polls batches, and times each call; as `IggyClient` does.

    Args:
        endpoint: the server, and what it is to wait for before it answers.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._servers = f"{endpoint.host}:{endpoint.port}"
        self._loop = asyncio.new_event_loop()
        self._producer: AIOKafkaProducer = self._loop.run_until_complete(self._start(endpoint.acks))

    async def _start(self, acks: int) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._servers,
            acks="all" if acks < 0 else acks,
            linger_ms=0,
            max_batch_size=_BATCH_BYTES_MAX,
            max_request_size=_BATCH_BYTES_MAX,
        )
        await producer.start()
        return producer

    def close(self) -> None:
        """End the connection."""
        self._loop.run_until_complete(self._producer.stop())
        self._loop.close()

    def send(self, topic: str, value: bytes, count: int, seconds: float) -> list[float]:
        """Send batches of `count` records for some time; gives the seconds that each took, its making included."""
        return self._loop.run_until_complete(self._send(topic, value, count, seconds))

    async def _send(self, topic: str, value: bytes, count: int, seconds: float) -> list[float]:
        times: list[float] = []
        await self._producer.partitions_for(topic)
        deadline = time.perf_counter() + seconds
        while (began := time.perf_counter()) < deadline:
            batch = self._producer.create_batch()
            for _ in range(count):
                if batch.append(key=None, value=value, timestamp=None) is None:
                    raise DriverError("aiokafka: the batch takes no more records")
            await (await self._producer.send_batch(batch, topic, partition=0))
            times.append(time.perf_counter() - began)
        return times

    def poll(self, topic: str, count: int, total: int, seconds: float) -> list[float]:
        """Take `count` records at a time from the beginning on, for some time; gives the seconds that each took.

        A fetch brings one batch, as a poll does: however little is asked for, the first batch comes whole.
        """
        return self._loop.run_until_complete(self._poll(topic, count, total, seconds))

    async def _poll(self, topic: str, count: int, total: int, seconds: float) -> list[float]:
        place = TopicPartition(topic, 0)
        consumer = AIOKafkaConsumer(bootstrap_servers=self._servers, max_partition_fetch_bytes=1)
        await consumer.start()
        try:
            consumer.assign([place])
            times: list[float] = []
            offset = 0
            consumer.seek(place, offset)
            deadline = time.perf_counter() + seconds
            while (began := time.perf_counter()) < deadline:
                taken = 0
                while taken < count:
                    found = await consumer.getmany(timeout_ms=_POLL_MS, max_records=count - taken)
                    if not found:
                        raise DriverError(f"aiokafka: {taken} records where {count} were due")
                    taken += sum(map(len, found.values()))
                times.append(time.perf_counter() - began)
                offset = (offset + count) % total
                if not offset:
                    consumer.seek(place, 0)
            return times
        finally:
            await consumer.stop()
