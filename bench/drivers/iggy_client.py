"""The Python package of Iggy's current release, apache-iggy, where it is installed: one call at a time."""

import asyncio
import time
from types import ModuleType
from typing import Any

from bench.drivers.driver import Endpoint
from bench.drivers.optional import installed
from bench.drivers.pipeline import DriverError

__all__ = ["IggyClient"]

_STREAM = "client"


class IggyClient:
    """Sends and polls batches, and times each call.

    Args:
        endpoint: the server.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        package = installed("apache_iggy")
        if package is None:
            raise ModuleNotFoundError("pip install apache-iggy==0.9.0")
        self._package: ModuleType = package
        self._loop = asyncio.new_event_loop()
        self._client: Any = self._loop.run_until_complete(self._connect(f"{endpoint.host}:{endpoint.port}"))

    async def _connect(self, address: str) -> Any:
        client = self._package.IggyClient(address)
        await client.connect()
        await client.login_user("iggy", "iggy")
        await client.create_stream(_STREAM)
        return client

    def create(self, topic: str) -> None:
        """Create a topic with one partition."""
        self._loop.run_until_complete(self._create(topic))

    async def _create(self, topic: str) -> None:
        await self._client.create_topic(_STREAM, topic, 1)

    def send(self, topic: str, value: bytes, count: int, seconds: float) -> list[float]:
        """Send batches of `count` messages for some time; gives the seconds that each took, its objects included."""
        return self._loop.run_until_complete(self._send(topic, value, count, seconds))

    async def _send(self, topic: str, value: bytes, count: int, seconds: float) -> list[float]:
        times = []
        deadline = time.perf_counter() + seconds
        while (began := time.perf_counter()) < deadline:
            messages = [self._package.SendMessage(value) for _ in range(count)]
            await self._client.send_messages(stream=_STREAM, topic=topic, partitioning=0, messages=messages)
            times.append(time.perf_counter() - began)
        return times

    def poll(self, topic: str, count: int, total: int, seconds: float) -> list[float]:
        """Poll `count` messages at a time from the beginning on, for some time; gives the seconds that each took."""
        return self._loop.run_until_complete(self._poll(topic, count, total, seconds))

    async def _poll(self, topic: str, count: int, total: int, seconds: float) -> list[float]:
        strategy, consumer = self._package.PollingStrategy.Offset, self._package.Consumer.Single(1)
        times, offset = [], 0
        deadline = time.perf_counter() + seconds
        while (began := time.perf_counter()) < deadline:
            polled = await self._client.poll_messages(
                stream=_STREAM,
                topic=topic,
                consumer=consumer,
                partition_id=0,
                polling_strategy=strategy(offset),
                count=count,
                auto_commit=False,
            )
            if len(polled) != count:
                raise DriverError(f"apache-iggy: {len(polled)} messages where {count} were due")
            times.append(time.perf_counter() - began)
            offset = (offset + count) % total
        return times
