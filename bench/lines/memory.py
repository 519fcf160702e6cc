"""Resident memory of the server process."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from bench.bed import Bed
from bench.lines.line import Line, Metric
from bench.load import SHAPES, Budget, Load

__all__ = ["Memory"]

_SETTLE_SECONDS: Final = 0.3
_LOAD_SECONDS_LIMIT: Final = 3.0


class Memory(Line):
    """Before and after the same load."""

    name = "memory"
    title = "Resident memory (a peer that stores in memory holds the load as well)"
    metrics = (
        Metric("idle_mb", "MB idle", higher_is_better=False),
        Metric("loaded_mb", "MB after the load", higher_is_better=False),
    )

    def cases(self) -> Sequence[str]:
        """Return the one load."""
        return [f"{self.sizes.fill_bytes * 2 // 1_000_000} MB written and read once"]

    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Start a server, look, write and read, look again."""
        self.require_reading(bed)
        server = bed.fresh()
        time.sleep(_SETTLE_SECONDS)
        idle = server.resident_bytes()
        load = Load(1_000, SHAPES[3])
        topic = bed.topic()
        bed.raw().create(topic)
        work = bed.raw().produce([topic], load, Budget(_LOAD_SECONDS_LIMIT, self.sizes.fill_bytes * 2))
        bed.raw().consume(topic, load, work.records, Budget(_LOAD_SECONDS_LIMIT, work.size_bytes))
        return {"idle_mb": idle / 1e6, "loaded_mb": server.resident_bytes() / 1e6}
