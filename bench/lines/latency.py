"""From when a record is due to be sent until a waiting consumer has it."""

from collections.abc import Mapping, Sequence
from typing import Final

from bench.bed import Bed
from bench.lines.line import Line, Metric

__all__ = ["Latency"]

_RECORD_BYTES: Final = 100
_PERCENTILES: Final = ((50.0, "p50_ms"), (99.0, "p99_ms"), (99.9, "p999_ms"))


class Latency(Line):
    """One producer at a fixed rate, one consumer, both through a client library."""

    name = "latency"
    title = "End-to-end latency at a fixed rate (client library, 100 B)"
    metrics = (
        Metric("p50_ms", "ms, p50", higher_is_better=False),
        Metric("p99_ms", "ms, p99", higher_is_better=False),
        Metric("p999_ms", "ms, p99.9", higher_is_better=False),
    )

    def cases(self) -> Sequence[str]:
        """Return the one rate."""
        return [f"{self.sizes.rate} records/s"]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Run for the length given and return the percentiles."""
        self.require_reading(bed)
        client = bed.client()
        topic = bed.topic()
        client.create(topic)
        latencies = sorted(client.deliveries(topic, _RECORD_BYTES, self.sizes.rate, self.sizes.rate_seconds))
        client.drop(topic)
        return {key: percentile(latencies, percent) * 1e3 for percent, key in _PERCENTILES}


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the ordered values do not exceed."""
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]
