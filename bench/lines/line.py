"""What every measured line has."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from bench.bed import Bed, NotApplicable

__all__ = ["Line", "Metric", "Sizes"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number that a line gives.

    Args:
        key: in the results.
        unit: as printed.
        higher_is_better: the direction in which a ratio counts.
    """

    key: str
    unit: str
    higher_is_better: bool


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Args:
        seconds: length of one throughput measurement.
        fill_bytes: values written before they are read back.
        record_bytes: sizes of the records.
        shape_names: names of the batch shapes, from `bench.load.SHAPES`.
        rate: records per second of the latency line.
        rate_seconds: its length.
    """

    seconds: float
    fill_bytes: int
    record_bytes: Sequence[int]
    shape_names: Sequence[str]
    rate: int
    rate_seconds: float


class Line(ABC):
    """One row of `bench.lines.LINES`: some cases, each measured several times on each system.

    Args of the class:
        name: as given to --only.
        title: as printed.
        metrics: what it gives; the first is charted.
        family: of the systems that it is for, see `bench.systems.System`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    metrics: ClassVar[Sequence[Metric]]
    family: ClassVar[str] = "log"

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes

    @abstractmethod
    def cases(self) -> Sequence[str]:
        """Return the names of the cases in the order in which they are measured."""

    def prepare(self, bed: Bed, case: str) -> None:
        """Do what a case needs once for a system, outside the clock; nothing, for most lines."""
        return

    @abstractmethod
    def measure(self, bed: Bed, case: str) -> Mapping[str, float]:
        """Measure once and return a number for each metric.

        Raises:
            NotApplicable: this system does not do that.
            DriverError: it failed.
        """

    def finish(self, bed: Bed, case: str) -> None:
        """Undo `prepare`."""
        return

    @staticmethod
    def require_reading(bed: Bed) -> None:
        """Raise `NotApplicable` for a system that keeps nothing."""
        if not bed.system.can_read:
            raise NotApplicable("keeps nothing")
