"""What a run found, and how it is kept as JSON."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.lines import Metric

__all__ = ["Cell", "LineResult", "Results", "Spread", "SystemResult"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of several measurements."""

    median: float
    low: float
    high: float


@dataclass(slots=True)
class Cell:
    """One case on one system.

    Args:
        samples: the metrics of each repetition.
        note: why there is none, or why there are fewer.
        failures: repetitions that failed.
    """

    samples: list[Mapping[str, float]] = field(default_factory=list)
    note: str = ""
    failures: int = 0

    def spread(self, key: str) -> Spread | None:
        """Summarise one metric, or return None if it was never measured."""
        values = [sample[key] for sample in self.samples]
        if not values:
            return None
        return Spread(median=statistics.median(values), low=min(values), high=max(values))


@dataclass(slots=True)
class LineResult:
    """One line: `cells[case][system]`."""

    name: str
    title: str
    metrics: Sequence[Metric]
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)

    def measured(self) -> list[str]:
        """Return the names of the systems that it was measured on."""
        return list(next(iter(self.cells.values()), {}))

    def ratio(self, case: str, metric: Metric, ours: str, peer: str) -> float | None:
        """Return how many times better `ours` is than `peer`, by their medians; None if one is missing."""
        ours_spread = self.cells[case][ours].spread(metric.key) if ours in self.cells[case] else None
        peer_spread = self.cells[case][peer].spread(metric.key) if peer in self.cells[case] else None
        if not ours_spread or not peer_spread or not ours_spread.median or not peer_spread.median:
            return None
        quotient = ours_spread.median / peer_spread.median
        return quotient if metric.higher_is_better else 1 / quotient


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system that was asked for.

    Args:
        name: from the table of systems.
        version: as it reports it, or "" if it was not found.
        promise: when it acknowledged a record.
        missing: why it was not measured, or "".
    """

    name: str
    version: str
    promise: str
    missing: str


@dataclass(slots=True)
class Results:
    """A whole run.

    Args:
        started: ISO 8601.
        machine: facts that bear on the numbers.
        settings: how the run was asked for.
        systems: all that were asked for.
        lines: what was measured.
    """

    started: str
    machine: Mapping[str, str]
    settings: Mapping[str, Any]
    systems: Sequence[SystemResult]
    lines: list[LineResult] = field(default_factory=list)

    def measured(self) -> list[str]:
        """Return the names of the systems that ran."""
        return [system.name for system in self.systems if not system.missing]

    def as_json(self) -> dict[str, Any]:
        """Return the run as plain values, every sample included."""
        return asdict(self)
