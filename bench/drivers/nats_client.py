"""nats-py: a batch is as many asynchronous publishes as it has records, and the next one waits for their answers."""

import asyncio
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from bench.drivers.driver import Endpoint
from bench.drivers.nats_raw import NatsRaw
from bench.drivers.pacing import PacedSender
from bench.load import Budget, Load, Work

__all__ = ["NatsClient"]

_TIMEOUT_SECONDS: Final = 20.0
# Beyond this nats-py makes the publisher wait; a batch may be larger.
_PENDING_PUBLISHES: Final = 20_000


class NatsClient:
    """A `ClientDriver` over nats-py.

    Args:
        library: the module `nats`.
        endpoint: the server.
    """

    def __init__(self, library: ModuleType, endpoint: Endpoint) -> None:
        self._library = library
        self._endpoint = endpoint
        self._raw = NatsRaw(endpoint)

    def create(self, topic: str) -> None:
        """Create a stream on files, with one subject of the same name."""
        self._raw.create(topic)

    def drop(self, topic: str) -> None:
        """Delete a stream."""
        self._raw.drop(topic)

    def produce(self, topics: Sequence[str], load: Load, budget: Budget) -> Work:
        """See `Driver`; takes one stream."""
        (topic,) = topics
        return asyncio.run(self._produce(topic, load, budget))

    def consume(self, topic: str, load: Load, records: int, budget: Budget) -> Work:
        """See `Driver`; an ordered consumer for each pass."""
        return asyncio.run(self._consume(topic, load, records, budget))

    def round_trip(self, topic: str) -> None:
        """Connect, create the stream, write one record and read it back."""
        asyncio.run(self._round_trip(topic))

    def deliveries(self, topic: str, sender: PacedSender) -> list[float]:
        """See `ClientDriver`; both ends run on one event loop, over a connection each."""
        return asyncio.run(self._deliveries(topic, sender))

    async def _connection(self) -> Any:
        return await self._library.connect(f"nats://{self._endpoint.host}:{self._endpoint.port}")

    async def _produce(self, topic: str, load: Load, budget: Budget) -> Work:
        client = await self._connection()
        stream = client.jetstream(publish_async_max_pending=_PENDING_PUBLISHES)
        limit = budget.batches(load) * load.batch_records
        sent = 0
        started = time.perf_counter()
        deadline = started + budget.seconds
        while sent < limit and time.perf_counter() < deadline:
            if load.batch_records == 1:
                await stream.publish(topic, load.value)
            else:
                await asyncio.gather(
                    *[await stream.publish_async(topic, load.value) for _ in range(load.batch_records)]
                )
            sent += load.batch_records
        seconds = time.perf_counter() - started
        await client.close()
        return Work(records=sent, size_bytes=sent * load.record_bytes, seconds=seconds)

    async def _consume(self, topic: str, load: Load, records: int, budget: Budget) -> Work:
        client = await self._connection()
        stream = client.jetstream()
        read = 0
        started = time.perf_counter()
        seconds = 0.0
        while seconds < budget.seconds and read * load.record_bytes < budget.size_bytes:
            subscription = await stream.subscribe(topic, ordered_consumer=True)
            for _ in range(records):
                await subscription.next_msg(_TIMEOUT_SECONDS)
                read += 1
                seconds = time.perf_counter() - started
                if seconds >= budget.seconds:
                    break
            await subscription.unsubscribe()
        await client.close()
        return Work(records=read, size_bytes=read * load.record_bytes, seconds=seconds)

    async def _round_trip(self, topic: str) -> None:
        client = await self._connection()
        stream = client.jetstream()
        await stream.add_stream(name=topic, subjects=[topic])
        await stream.publish(topic, b"first")
        subscription = await stream.subscribe(topic, ordered_consumer=True)
        await subscription.next_msg(_TIMEOUT_SECONDS)
        await client.close()

    async def _deliveries(self, topic: str, sender: PacedSender) -> list[float]:
        latencies: list[float] = []
        producer = await self._connection()
        consumer = await self._connection()
        stream = producer.jetstream()
        await stream.publish(topic, sender.warm_up)
        subscription = await consumer.jetstream().subscribe(topic, ordered_consumer=True)
        await subscription.next_msg(_TIMEOUT_SECONDS)

        async def receive() -> None:
            while len(latencies) < sender.count:
                message = await subscription.next_msg(_TIMEOUT_SECONDS)
                latencies.append(sender.age(message.data))

        async def send(value: bytes) -> None:
            await stream.publish_async(topic, value)

        receiver = asyncio.create_task(receive())
        await sender.run_async(send, asyncio.sleep)
        await receiver
        await producer.close()
        await consumer.close()
        return latencies
