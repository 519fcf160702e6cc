"""What is sent: records of one size, in batches of one shape, and how much of it was moved.

Sizes are decimal (1 KB = 1000 bytes, 1 MB = 1,000,000 bytes) and count record values only, not framing.
"""

import os
from dataclasses import dataclass
from typing import Final

__all__ = ["MARK", "SHAPES", "Budget", "Load", "Shape", "Work"]

# Every value begins with it, so that a reader of a raw byte stream can count values without parsing.
MARK: Final = b"\x01ms\x02"
_FILLER: Final = b"abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True)
class Shape:
    """How records are grouped into batches.

    Args:
        name: as printed, such as "100 records" or "16 KB".
        records: records in a batch, or 0 if the batch is defined by its bytes.
        size_bytes: upper bound of the encoded batch, or 0 if it is defined by its records.
        in_flight: batches a raw driver has unanswered on one connection at most.
    """

    name: str
    records: int
    size_bytes: int
    in_flight: int


SHAPES: Final = (
    Shape("1 record", 1, 0, 64),
    Shape("100 records", 100, 0, 32),
    Shape("16 KB", 0, 16_000, 64),
    Shape("128 KB", 0, 128_000, 8),
    Shape("1 MB", 0, 1_000_000, 4),
)

# Upper bound of what Kafka's format adds: per record (length, attributes, deltas, key, headers), per batch.
_RECORD_OVERHEAD_BYTES: Final = 12
_BATCH_OVERHEAD_BYTES: Final = 61


@dataclass(frozen=True, slots=True)
class Load:
    """Records of one size in batches of one shape.

    Args:
        record_bytes: size of each value, at least 16.
        shape: how they are grouped.
        varied: whether each record has bytes of its own, for readers that would gain from values that repeat; a
            driver that takes it sends as many different batches as it has in flight, round and round.
    """

    record_bytes: int
    shape: Shape
    varied: bool = False

    @property
    def batch_records(self) -> int:
        """Records in each batch, at least 1."""
        if self.shape.records:
            return self.shape.records
        room = self.shape.size_bytes - _BATCH_OVERHEAD_BYTES
        return max(1, room // (self.record_bytes + _RECORD_OVERHEAD_BYTES))

    @property
    def value(self) -> bytes:
        """The value of every record that is not varied."""
        repeats = self.record_bytes // len(_FILLER) + 1
        return (MARK + _FILLER * repeats)[: self.record_bytes]

    def values(self) -> list[bytes]:
        """The values of a batch."""
        if not self.varied:
            return [self.value] * self.batch_records
        return [MARK + os.urandom(self.record_bytes - len(MARK)) for _ in range(self.batch_records)]

    def __str__(self) -> str:
        size = f"{self.record_bytes} B" if self.record_bytes < 1000 else f"{self.record_bytes // 1000} KB"
        return f"{size}, {self.shape.name}"


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a measurement ends: at whichever bound comes first.

    Args:
        seconds: no batch is started after this time.
        size_bytes: no batch is started once this many bytes of values were.
    """

    seconds: float
    size_bytes: int = 1 << 40

    def batches(self, load: Load) -> int:
        """Number of batches that the bound in bytes allows, at least 1."""
        return max(1, self.size_bytes // (load.record_bytes * load.batch_records))


@dataclass(frozen=True, slots=True)
class Work:
    """What a measurement moved.

    Args:
        records: records acknowledged, or read.
        size_bytes: bytes of their values.
        seconds: from the first byte sent to the last answer received.
    """

    records: int
    size_bytes: int
    seconds: float

    def metrics(self) -> dict[str, float]:
        """MB/s and records/s."""
        return {
            "mb_s": self.size_bytes / self.seconds / 1e6,
            "records_s": self.records / self.seconds,
        }
