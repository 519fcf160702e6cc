"""What each idempotent producer wrote last to one partition: how duplicates and gaps are told.

The state follows from the frames of the log. It is written into the index file of each sealed segment, so that
a start need not read the whole log again:

    per producer, little-endian: int64 id, int16 epoch, int64 last append ms, uint8 count of batches,
    per batch: int32 first sequence, int32 last sequence, int64 base offset, int64 timestamp

Source of the rules: KIP-98 and Apache Kafka's behaviour (five batches are remembered; sequences wrap to 0).
"""

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from millstream.model.frame import FrameHeader
from millstream.storage.errors import OutOfOrderSequence, StaleProducerEpoch

__all__ = ["ProducerStates", "WrittenBatch"]

REMEMBERED_BATCHES: Final = 5
"""Batches kept for each producer: a client has at most this many in flight when it is idempotent."""
_SEQUENCES: Final = 2**31
_PRODUCER: Final = struct.Struct("<qhqB")
_BATCH: Final = struct.Struct("<iiqq")


class WrittenBatch(NamedTuple):
    """A batch that a producer wrote: its sequences, and where and when it was stored."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    last_append_ms: int = 0
    batches: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


class ProducerStates:
    """The producers of one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, header: FrameHeader) -> WrittenBatch | None:
        """Check that an idempotent batch may be appended.

        Returns:
            None if it may; the stored batch if this one is a duplicate of it.

        Raises:
            StaleProducerEpoch: the producer has used a later epoch.
            OutOfOrderSequence: the batch does not follow from the last one.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            # Nothing is left of what it wrote (or it is new): any sequence may be the first.
            return None
        first = header.base_sequence
        if header.producer_epoch < producer.epoch:
            raise StaleProducerEpoch(
                f"producer {header.producer_id} has epoch {producer.epoch}, and the batch {header.producer_epoch}"
            )
        if header.producer_epoch > producer.epoch or not producer.batches:
            if first != 0 and header.producer_epoch > producer.epoch:
                raise OutOfOrderSequence(
                    f"producer {header.producer_id} begins epoch {header.producer_epoch} with sequence {first}"
                )
            return None
        last = _last_sequence(header)
        for batch in producer.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCES
        if first != expected:
            raise OutOfOrderSequence(f"producer {header.producer_id} sent sequence {first} where {expected} follows")
        return None

    def record(self, header: FrameHeader, base_offset: int, now_ms: int) -> None:
        """Take note of a batch that was appended, or found in the log."""
        producer = self._producers.get(header.producer_id)
        if producer is None or header.producer_epoch > producer.epoch:
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch)
        producer.last_append_ms = now_ms
        producer.batches.append(
            WrittenBatch(header.base_sequence, _last_sequence(header), base_offset, header.max_timestamp)
        )

    def remembers(self, producer_id: int, base_offset: int) -> bool:
        """Whether the batch at an offset is one of those that are remembered of a producer."""
        producer = self._producers.get(producer_id)
        return producer is not None and any(batch.base_offset == base_offset for batch in producer.batches)

    def latest(self) -> Iterator[tuple[int, int, WrittenBatch | None]]:
        """Every producer: its id, its epoch, and the last batch that is remembered of it."""
        for producer_id, producer in self._producers.items():
            yield producer_id, producer.epoch, producer.batches[-1] if producer.batches else None

    def expire(self, before_ms: int) -> None:
        """Forget producers that have not written since a time."""
        for producer_id in [p for p, state in self._producers.items() if state.last_append_ms < before_ms]:
            del self._producers[producer_id]

    def encode(self) -> bytes:
        """The state as it stands in an index file."""
        parts = []
        for producer_id, state in self._producers.items():
            parts.append(_PRODUCER.pack(producer_id, state.epoch, state.last_append_ms, len(state.batches)))
            parts.extend(_BATCH.pack(*batch) for batch in state.batches)
        return b"".join(parts)

    @classmethod
    def decode(cls, content: bytes) -> "ProducerStates":
        """Read what `encode` wrote; the index file's checksum has vouched for it."""
        states = cls()
        position = 0
        while position < len(content):
            producer_id, epoch, last_append_ms, count = _PRODUCER.unpack_from(content, position)
            position += _PRODUCER.size
            state = states._producers[producer_id] = _Producer(epoch, last_append_ms)
            for _ in range(count):
                state.batches.append(WrittenBatch(*_BATCH.unpack_from(content, position)))
                position += _BATCH.size
        return states


def _last_sequence(header: FrameHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % _SEQUENCES
