"""pulsar-client, the C++ client of Apache Pulsar with its Python interface: what applications in Python use."""

import time
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from bench.drivers.driver import Endpoint
from bench.drivers.pipeline import DriverError
from bench.load import Budget, Work

__all__ = ["PulsarClient"]

_TIMEOUT_MS: Final = 10_000
_CALL_RECORDS: Final = 100
_PENDING: Final = 1_000
_QUEUE: Final = 5_000
_BATCHED: Final[Mapping[str, Any]] = {
    "batching_enabled": True,
    "batching_max_messages": 1_000,
    "batching_max_allowed_size_in_bytes": 128_000,
    "batching_max_publish_delay_ms": 1,
}
_KINDS: Final = {
    "exclusive": "Exclusive",
    "shared": "Shared",
    "failover": "Failover",
    "key_shared": "KeyShared",
}


class PulsarClient:
    """Applications of one broker.

    Args:
        library: the module `pulsar`.
        endpoint: the broker.
    """

    def __init__(self, library: ModuleType, endpoint: Endpoint) -> None:
        self._library = library
        self._client = library.Client(
            f"pulsar://{endpoint.host}:{endpoint.port}", logger=library.ConsoleLogger(library.LoggerLevel.Error)
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def produce(self, topic: str, record_bytes: int, budget: Budget, *, batched: bool) -> Work:
        """Write with `send_async`, up to 1000 messages unanswered; every one counted was acknowledged."""
        batching = _BATCHED if batched else {"batching_enabled": False}
        producer = self._client.create_producer(
            topic, block_if_queue_full=True, max_pending_messages=_PENDING, **batching
        )
        value = b"x" * record_bytes
        results: list[Any] = []

        def report(result: Any, _: Any) -> None:
            results.append(result)

        sent = 0
        limit = budget.size_bytes // record_bytes
        started = time.perf_counter()
        deadline = started + budget.seconds
        while sent < limit and time.perf_counter() < deadline:
            for _ in range(_CALL_RECORDS):
                producer.send_async(value, report)
            sent += _CALL_RECORDS
        producer.flush()
        seconds = time.perf_counter() - started
        # The last callbacks may still be on their way though all was acknowledged.
        while len(results) < sent and time.perf_counter() < deadline + _TIMEOUT_MS / 1000:
            time.sleep(0.001)
        producer.close()
        acknowledged = results.count(self._library.Result.Ok)
        if acknowledged < sent:
            raise DriverError(f"{sent - acknowledged} of {sent} messages were not acknowledged")
        return Work(records=sent, size_bytes=sent * record_bytes, seconds=seconds)

    def consume(self, topic: str, subscription: str, kind: str, record_bytes: int, records: int) -> Work:
        """Receive and acknowledge so many messages, one by one, with a new subscription."""
        consumer = self._client.subscribe(
            topic,
            subscription,
            consumer_type=getattr(self._library.ConsumerType, _KINDS[kind]),
            initial_position=self._library.InitialPosition.Earliest,
            receiver_queue_size=_QUEUE,
        )
        started = time.perf_counter()
        try:
            for _ in range(records):
                consumer.acknowledge(consumer.receive(_TIMEOUT_MS))
        except self._library.Timeout as error:
            raise DriverError(f"not all of {records} messages came") from error
        seconds = time.perf_counter() - started
        consumer.unsubscribe()
        return Work(records=records, size_bytes=records * record_bytes, seconds=seconds)

    def send_seconds(self, topic: str, record_bytes: int, budget: Budget) -> list[float]:
        """How long each synchronous send of one message took."""
        producer = self._client.create_producer(topic, batching_enabled=False)
        value = b"x" * record_bytes
        took: list[float] = []
        deadline = time.perf_counter() + budget.seconds
        while (before := time.perf_counter()) < deadline:
            producer.send(value)
            took.append(time.perf_counter() - before)
        producer.close()
        return took
