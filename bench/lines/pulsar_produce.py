"""Writing through Pulsar's protocol."""

from collections.abc import Mapping, Sequence
from typing import Final

from bench.bed import Bed
from bench.lines.latency import percentile
from bench.lines.line import Line, Metric
from bench.lines.loads import THROUGHPUT
from bench.load import Budget

__all__ = ["PulsarProduce", "PulsarRawProduce", "PulsarSend"]

_BYTES_LIMIT: Final = 256_000_000
_BATCHES: Final = {"1 message": 1, "100 messages": 100, "1000 messages": 1000}
_BATCHED: Final = "batched"


def _size(record_bytes: int) -> str:
    return f"{record_bytes} B" if record_bytes < 1000 else f"{record_bytes // 1000} KB"


class PulsarProduce(Line):
    """`send_async`, with and without batching in the client."""

    name = "pulsar-produce"
    title = "Pulsar, produce: pulsar-client, 1000 messages unanswered"
    metrics = THROUGHPUT
    family = "pulsar"

    def cases(self) -> Sequence[str]:
        """Return each size, with and without batches."""
        return [
            f"{_size(size)}, {how}" for size in sorted(self.sizes.record_bytes) for how in (_BATCHED, "unbatched")
        ]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Write to a topic of its own."""
        size = next(size for size in self.sizes.record_bytes if case.startswith(_size(size)))
        budget = Budget(self.sizes.seconds, _BYTES_LIMIT)
        batched = case.endswith(f", {_BATCHED}")
        return bed.pulsar_client().produce(bed.topic(), size, budget, batched=batched).metrics()


class PulsarRawProduce(Line):
    """Pre-encoded SENDs: what the server can take."""

    name = "pulsar-raw-produce"
    title = "Pulsar, produce: pre-encoded SENDs, one connection"
    metrics = THROUGHPUT
    family = "pulsar"

    def cases(self) -> Sequence[str]:
        """Return each size in each batch."""
        return [f"{_size(size)}, {batch}" for size in sorted(self.sizes.record_bytes) for batch in _BATCHES]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Write to a topic of its own."""
        size = next(size for size in self.sizes.record_bytes if case.startswith(_size(size)))
        budget = Budget(self.sizes.seconds, _BYTES_LIMIT)
        return bed.pulsar_raw().produce(bed.topic(), size, _BATCHES[case.split(", ")[1]], budget).metrics()


class PulsarSend(Line):
    """One synchronous send after the other."""

    name = "pulsar-send"
    title = "Pulsar, synchronous send: pulsar-client, no batching"
    metrics = (
        Metric("p50_us", "us, p50", higher_is_better=False),
        Metric("p99_us", "us, p99", higher_is_better=False),
    )
    family = "pulsar"

    def cases(self) -> Sequence[str]:
        """Return the sizes."""
        return [_size(size) for size in sorted(self.sizes.record_bytes)]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Send to a topic of its own."""
        size = next(size for size in self.sizes.record_bytes if _size(size) == case)
        took = sorted(bed.pulsar_client().send_seconds(bed.topic(), size, Budget(self.sizes.seconds)))
        return {"p50_us": percentile(took, 50) * 1e6, "p99_us": percentile(took, 99) * 1e6}
