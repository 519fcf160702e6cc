"""From when a record is due to be sent until a waiting consumer has it."""

from collections.abc import Mapping, Sequence
from typing import Final

from bench.bed import Bed, NotApplicable
from bench.drivers.kafka_client import KafkaClient
from bench.drivers.pacing import PacedSender
from bench.lines.line import Line, Metric

__all__ = ["Latency"]

_RECORD_BYTES: Final = 100
_SHORT_WAIT_MS: Final = 10
_SHORT_WAIT: Final = f"fetch.wait.max.ms={_SHORT_WAIT_MS}"
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
        """Return the rate with the clients' defaults, and with a short wait for those brokers that sit it out."""
        rate = f"{self.sizes.rate} records/s"
        return [rate, f"{rate}, {_SHORT_WAIT}"]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Run for the length given and return the percentiles."""
        self.require_reading(bed)
        client = bed.client()
        short_wait = _SHORT_WAIT in case
        if short_wait and not isinstance(client, KafkaClient):
            raise NotApplicable("no such setting")
        topic = bed.topic()
        client.create(topic)
        sender = PacedSender(_RECORD_BYTES, self.sizes.rate, self.sizes.rate_seconds)
        if isinstance(client, KafkaClient) and short_wait:
            latencies = sorted(client.deliveries(topic, sender, _SHORT_WAIT_MS))
        else:
            latencies = sorted(client.deliveries(topic, sender))
        client.drop(topic)
        return {key: percentile(latencies, percent) * 1e3 for percent, key in _PERCENTILES}


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the ordered values do not exceed."""
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]
