"""The loads of the throughput lines."""

from collections.abc import Sequence
from typing import Final

from bench.lines.line import Metric, Sizes
from bench.load import SHAPES, Load

__all__ = ["THROUGHPUT", "by_name", "loads"]

THROUGHPUT: Final = (
    Metric("mb_s", "MB/s", higher_is_better=True),
    Metric("records_s", "records/s", higher_is_better=True),
)


def loads(sizes: Sizes) -> Sequence[Load]:
    """Return every record size in every batch shape."""
    shapes = [shape for shape in SHAPES if shape.name in sizes.shape_names]
    return [Load(record_bytes, shape) for record_bytes in sizes.record_bytes for shape in shapes]


def by_name(sizes: Sizes, case: str) -> Load:
    """Return the load that is printed like this."""
    return next(load for load in loads(sizes) if str(load) == case)
