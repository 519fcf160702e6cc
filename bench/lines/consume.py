"""Reading back what was written a moment ago, and so is in the page cache."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from bench.bed import Bed
from bench.drivers.driver import Driver
from bench.lines.line import Line, Sizes
from bench.lines.loads import THROUGHPUT, by_name, loads
from bench.load import Budget

__all__ = ["ClientConsume", "RawConsume"]

_FILL_SECONDS: Final = 0.7


class _Consume(Line):
    metrics = THROUGHPUT

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self._filled: dict[Bed, tuple[str, int]] = {}

    def cases(self) -> Sequence[str]:
        """Return each record size in each batch shape."""
        return [str(load) for load in loads(self.sizes)]

    @abstractmethod
    def reader(self, bed: Bed) -> Driver:
        """Return the driver that is measured."""

    def prepare(self, bed: Bed, case: str) -> None:
        """Fill a topic; a slow writer gets less to read, more often."""
        self.require_reading(bed)
        self.reader(bed)
        topic = bed.topic()
        bed.raw().create(topic)
        work = bed.raw().produce([topic], by_name(self.sizes, case), Budget(_FILL_SECONDS, self.sizes.fill_bytes))
        self._filled[bed] = topic, work.records

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Read the topic."""
        topic, records = self._filled[bed]
        work = self.reader(bed).consume(topic, by_name(self.sizes, case), records, Budget(self.sizes.seconds))
        return work.metrics()

    def finish(self, bed: Bed, case: str) -> None:
        """Delete the topic."""
        topic, _ = self._filled.pop(bed)
        bed.raw().drop(topic)


class RawConsume(_Consume):
    """A bare loop of Fetch requests, or what the peer has for it."""

    name = "raw-consume"
    title = "Consume: bare fetch loop, one connection"

    def reader(self, bed: Bed) -> Driver:
        """Return the driver of pre-encoded requests."""
        return bed.raw()


class ClientConsume(_Consume):
    """The same with a client library."""

    name = "client-consume"
    title = "Consume: client library (librdkafka, nats-py, redis-py)"

    def reader(self, bed: Bed) -> Driver:
        """Return the driver over a client library."""
        return bed.client()
