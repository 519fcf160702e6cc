"""Blocks of rows into record batches: each row to its partition, rows of a partition into batches, batches framed."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from crc32c import crc32c

from millstream.model.frame import CRC_FROM, HEADER_BYTES, LENGTH_OVERHEAD, Attributes, Magic
from millstream.spark.write.columns import Rows
from millstream.spark.write.partitioners import Partitioner, Spreading, partitions_of
from millstream.spark.write.records import Chunk, chunks_of, encode_records
from millstream.spark.write.varints import Ints
from millstream.wire.compression import Codec
from millstream.wire.kafka.message_codecs import pack

__all__ = ["Batch", "BatchMaker", "ProducerIdentity"]

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 17
_SEQUENCES: Final = 2**31
"""Sequence numbers begin at 0 again behind the last that an int32 holds."""


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """As whom batches are written.

    Args:
        producer_id, epoch: as the broker gave them.
        is_transactional: whether the batches are of a transaction.
    """

    producer_id: int
    epoch: int
    is_transactional: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """One record batch on its way.

    Args:
        topic, partition: where to.
        record_count: how many records are in it.
        data: the whole frame.
    """

    topic: str
    partition: int
    record_count: int
    data: bytearray


class BatchMaker:
    """Makes batches of one producer.

    Args:
        identity: as whom they are written.
        codec: how they are compressed.
        batch_bytes: about how large they become before compression.
        partitioner: chooses partitions.
        spreading: for rows that no key directs.
        partition_counts: asks how many partitions topics have.
    """

    def __init__(
        self,
        *,
        identity: ProducerIdentity,
        codec: Codec,
        batch_bytes: int,
        partitioner: Partitioner,
        spreading: Spreading,
        partition_counts: Callable[[list[str]], Mapping[str, int]],
    ) -> None:
        self._identity = identity
        self._codec = codec
        self._batch_bytes = batch_bytes
        self._partitioner = partitioner
        self._spreading = spreading
        self._partition_counts = partition_counts
        self._sequences: dict[tuple[str, int], int] = {}
        self.digest = 0
        """A checksum of all that was written and where, which is the same if a task writes the same again."""

    def batches(self, rows: Rows, topic: str | None) -> list[Batch]:
        """Make batches of a block of rows, those of one partition in their order.

        Args:
            rows: the rows.
            topic: where all of them go; None if their column says so.

        Raises:
            UnwritableRow: a row goes nowhere.
        """
        places, groups = self._grouped(rows, topic)
        if len(places) > 1:
            order = np.argsort(groups, kind="stable")
            rows = rows.take(order)
            ends = np.searchsorted(groups[order], np.arange(len(places)), side="right").tolist()
        else:
            ends = [len(rows)]
        chunks = chunks_of(rows, ends, self._batch_bytes)
        records = encode_records(rows, chunks)
        batches = []
        group = 0
        for chunk in chunks:
            while chunk.start >= ends[group]:
                group += 1
            times = rows.timestamp_ms[chunk.start : chunk.stop]
            batches.append(self._framed(places[group], chunk, records.body(chunk), times))
        return batches

    def _grouped(self, rows: Rows, topic: str | None) -> tuple[list[tuple[str, int]], npt.NDArray[np.integer]]:
        """The topics and partitions that rows go to, and the index of its own for each row."""
        if topic is not None:
            count = self._partition_counts([topic])[topic]
            return _numbered([topic], partitions_of(rows, topic, count, self._partitioner, self._spreading), count)
        coded = pc.dictionary_encode(rows.topic)
        topics: list[str] = coded.dictionary.to_pylist()
        counts = self._partition_counts(topics)
        stride = max(counts.values(), default=1)
        of_row = coded.indices.to_numpy()
        numbers = np.empty(len(rows), dtype=np.int64)
        for index, name in enumerate(topics):
            at = np.flatnonzero(of_row == index)
            its = rows if len(topics) == 1 else rows.take(at)
            numbers[at] = index * stride + partitions_of(its, name, counts[name], self._partitioner, self._spreading)
        return _numbered(topics, numbers, stride)

    def _framed(self, place: tuple[str, int], chunk: Chunk, records: memoryview, times: Ints) -> Batch:
        """Compress the records of a batch, and put the header before them."""
        topic, partition = place
        count = chunk.stop - chunk.start
        identity = self._identity
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = (sequence + count) % _SEQUENCES
        self.digest = crc32c(records, crc32c(b"%b %d" % (topic.encode(), partition), self.digest))
        body = records if self._codec is Codec.NONE else pack(self._codec, records, Magic.KAFKA_V2)
        data = bytearray(HEADER_BYTES)
        data += body
        _HEADER.pack_into(
            data,
            0,
            0,
            len(data) - LENGTH_OVERHEAD,
            -1,
            Magic.KAFKA_V2,
            0,
            self._codec | (Attributes.TRANSACTIONAL if identity.is_transactional else 0),
            count - 1,
            int(times[0]),
            int(times.max()),
            identity.producer_id,
            identity.epoch,
            sequence,
            count,
        )
        _CRC.pack_into(data, _CRC_POSITION, crc32c(memoryview(data)[CRC_FROM:]))
        return Batch(topic, partition, count, data)


def _numbered(topics: list[str], numbers: Ints, stride: int) -> tuple[list[tuple[str, int]], npt.NDArray[np.integer]]:
    """Give the numbers that occur (topic index * stride + partition) indexes from 0 on."""
    is_there = np.bincount(numbers, minlength=1) > 0
    there: list[Any] = np.flatnonzero(is_there).tolist()
    indexes = (np.cumsum(is_there) - 1)[numbers]
    places = [(topics[number // stride], number % stride) for number in there]
    # Small numbers are sorted by radix.
    return places, indexes.astype(np.uint16) if len(there) < 2**16 else indexes
