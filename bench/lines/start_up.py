"""From exec to being ready, and to the first record."""

import time
from collections.abc import Mapping, Sequence

from bench.bed import Bed
from bench.lines.line import Line, Metric

__all__ = ["StartUp"]


class StartUp(Line):
    """A server with an empty data directory."""

    name = "start-up"
    title = "Start-up, from exec"
    metrics = (
        Metric("ready_ms", "ms to ready", higher_is_better=False),
        Metric("first_record_ms", "ms to the first record read back", higher_is_better=False),
    )

    def cases(self) -> Sequence[str]:
        """Return the one case."""
        return ["empty data directory"]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Start a server, then write and read one record with a client that connects only now."""
        self.require_reading(bed)
        server = bed.fresh()
        bed.client().round_trip(bed.topic())
        first_record_seconds = time.perf_counter() - server.started_at
        return {"ready_ms": server.ready_seconds * 1e3, "first_record_ms": first_record_seconds * 1e3}
