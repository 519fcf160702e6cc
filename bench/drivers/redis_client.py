"""redis-py: a batch is one pipeline of XADD commands, and the next one waits for its answers."""

import threading
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from bench.drivers.driver import Endpoint
from bench.drivers.pacing import PacedSender
from bench.drivers.pipeline import DriverError
from bench.load import Budget, Load, Work

__all__ = ["RedisClient"]

_FIELD: Final = b"v"
_READ_BYTES: Final = 1 << 20
_BLOCK_MS: Final = 1_000
_TIMEOUT_SECONDS: Final = 20.0


class RedisClient:
    """A `ClientDriver` over redis-py.

    Args:
        library: the module `redis`.
        endpoint: the server.
    """

    def __init__(self, library: ModuleType, endpoint: Endpoint) -> None:
        self._library = library
        self._endpoint = endpoint

    def create(self, topic: str) -> None:
        """Do nothing: the first XADD creates a stream."""

    def drop(self, topic: str) -> None:
        """Delete a stream."""
        with self._connection() as redis:
            redis.delete(topic)

    def produce(self, topics: Sequence[str], load: Load, budget: Budget) -> Work:
        """See `Driver`; takes one stream."""
        (topic,) = topics
        fields = {_FIELD: load.value}
        sent = 0
        limit = budget.batches(load) * load.batch_records
        with self._connection() as redis:
            redis.ping()
            started = time.perf_counter()
            deadline = started + budget.seconds
            while sent < limit and time.perf_counter() < deadline:
                if load.batch_records == 1:
                    redis.xadd(topic, fields)
                else:
                    pipeline = redis.pipeline(transaction=False)
                    for _ in range(load.batch_records):
                        pipeline.xadd(topic, fields)
                    pipeline.execute()
                sent += load.batch_records
            seconds = time.perf_counter() - started
        return Work(records=sent, size_bytes=sent * load.record_bytes, seconds=seconds)

    def consume(self, topic: str, load: Load, records: int, budget: Budget) -> Work:
        """See `Driver`."""
        count = max(1, _READ_BYTES // load.record_bytes)
        read = passed = 0
        start: Any = "-"
        with self._connection() as redis:
            redis.ping()
            started = time.perf_counter()
            while True:
                entries = redis.xrange(topic, min=start, count=count)
                read += len(entries)
                passed += len(entries)
                seconds = time.perf_counter() - started
                if seconds >= budget.seconds or read * load.record_bytes >= budget.size_bytes:
                    return Work(records=read, size_bytes=read * load.record_bytes, seconds=seconds)
                if passed >= records or not entries:
                    start, passed = "-", 0
                else:
                    start = b"(" + entries[-1][0]

    def round_trip(self, topic: str) -> None:
        """Connect, write one record and read it back."""
        with self._connection() as redis:
            redis.xadd(topic, {_FIELD: b"first"})
            if len(redis.xrange(topic)) != 1:
                raise DriverError("the first record is not there")

    def deliveries(self, topic: str, sender: PacedSender) -> list[float]:
        """See `ClientDriver`; the producer waits for each answer, the consumer blocks in XREAD."""
        latencies: list[float] = []
        give_up = threading.Event()
        with self._connection() as producer, self._connection() as consumer:
            position = producer.xadd(topic, {_FIELD: sender.warm_up})

            def receive() -> None:
                last = position
                while len(latencies) < sender.count and not give_up.is_set():
                    for _, entries in consumer.xread({topic: last}, block=_BLOCK_MS):
                        latencies.extend(sender.age(fields[_FIELD]) for _, fields in entries)
                        last = entries[-1][0]

            receiver = threading.Thread(target=receive)
            receiver.start()
            sender.run(lambda value: producer.xadd(topic, {_FIELD: value}))
            receiver.join(_TIMEOUT_SECONDS)
            give_up.set()
            receiver.join()
        if len(latencies) < sender.count:
            raise DriverError(f"{len(latencies)} of {sender.count} records arrived")
        return latencies

    def _connection(self) -> Any:
        return self._library.Redis(host=self._endpoint.host, port=self._endpoint.port)
