"""Writing as fast as the server acknowledges."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from bench.bed import Bed
from bench.lines.line import Line, Metric
from bench.lines.loads import THROUGHPUT, by_name, loads
from bench.load import SHAPES, Budget, Load

__all__ = ["Acknowledgement", "ClientProduce", "ConnectionsProduce", "RawProduce"]

_BYTES_LIMIT: Final = 256_000_000
_CONNECTIONS: Final = 4


class RawProduce(Line):
    """Pre-encoded requests over one connection, many of them unanswered."""

    name = "raw-produce"
    title = "Produce: pre-encoded requests, one connection"
    metrics = THROUGHPUT

    def cases(self) -> Sequence[str]:
        """Return each record size in each batch shape."""
        return [str(load) for load in loads(self.sizes)]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Write to a topic of its own."""
        return _produce(bed, by_name(self.sizes, case), self.sizes.seconds, connections=1)


class ConnectionsProduce(Line):
    """The same over several connections, each to a topic of its own."""

    name = "raw-produce-4"
    title = f"Produce: pre-encoded requests, {_CONNECTIONS} connections to a topic each"
    metrics = THROUGHPUT

    def cases(self) -> Sequence[str]:
        """Return the smallest records in the batches that cost a server most."""
        return [str(load) for load in loads(self.sizes) if load.shape.name in {"1 record", "100 records"}]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Write to all topics at once."""
        return _produce(bed, by_name(self.sizes, case), self.sizes.seconds, connections=_CONNECTIONS)


class Acknowledgement(Line):
    """One request of one record at a time."""

    name = "ack"
    title = "Time to the acknowledgement, one request of one record at a time"
    metrics = (Metric("mean_us", "us, mean", higher_is_better=False),)

    def cases(self) -> Sequence[str]:
        """Return the record sizes."""
        return [f"{size} B" for size in self.sizes.record_bytes]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Write one record after the other."""
        load = Load(int(case.split()[0]), replace(SHAPES[0], in_flight=1))
        return {"mean_us": 1e6 / _produce(bed, load, self.sizes.seconds, connections=1)["records_s"]}


class ClientProduce(Line):
    """The same with a client library."""

    name = "client-produce"
    title = "Produce: client library (librdkafka, nats-py, redis-py)"
    metrics = THROUGHPUT

    def cases(self) -> Sequence[str]:
        """Return each record size in each batch shape."""
        return [str(load) for load in loads(self.sizes)]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Write to a topic of its own."""
        self.require_reading(bed)
        client = bed.client()
        topic = bed.topic()
        client.create(topic)
        work = client.produce([topic], by_name(self.sizes, case), Budget(self.sizes.seconds, _BYTES_LIMIT))
        client.drop(topic)
        return work.metrics()


def _produce(bed: Bed, load: Load, seconds: float, *, connections: int) -> dict[str, float]:
    driver = bed.raw()
    topics = [bed.topic() for _ in range(connections)]
    for topic in topics:
        driver.create(topic)
    work = driver.produce(topics, load, Budget(seconds, _BYTES_LIMIT // connections))
    for topic in topics:
        driver.drop(topic)
    return work.metrics()
