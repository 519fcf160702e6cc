"""Tables of Arrow as Spark hands them to the sink, and what becomes of them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from millstream.model.record import Record
from millstream.spark.write.batches import Batch, BatchMaker, ProducerIdentity
from millstream.spark.write.partitioners import Partitioner, Spreading
from millstream.wire.compression import Codec
from millstream.wire.kafka.records import check_batch, read_records

TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "topic": pa.string(),
    "partition": pa.int32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
NOW_MS = 1_700_000_000_000

Content = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]
"""What a record holds, without where it stands: key, value, headers, time in ms."""


def table(**columns: Sequence[Any]) -> Any:
    """A record batch with the columns of the sink."""
    return pa.record_batch({name: pa.array(values, TYPES[name]) for name, values in columns.items()})


def maker(
    partitions: int = 1,
    *,
    codec: Codec = Codec.NONE,
    batch_bytes: int = 100_000,
    partitioner: Partitioner = Partitioner.MURMUR2_RANDOM,
) -> BatchMaker:
    """Makes batches for topics that all have the same count of partitions."""
    return BatchMaker(
        identity=ProducerIdentity(7, 3, is_transactional=True),
        codec=codec,
        batch_bytes=batch_bytes,
        partitioner=partitioner,
        spreading=Spreading(0, batch_bytes),
        partition_counts=lambda names: dict.fromkeys(names, partitions),
    )


def records_of(batches: Sequence[Batch]) -> dict[tuple[str, int], list[Record]]:
    """The records of batches that a broker would take, by topic and partition."""
    found: dict[tuple[str, int], list[Record]] = {}
    for batch in batches:
        frame = memoryview(batch.data)
        assert check_batch(frame).record_count == batch.record_count
        found.setdefault((batch.topic, batch.partition), []).extend(read_records(frame))
    return found


def content(record: Record) -> Content:
    """What a record holds."""
    return record.key, record.value, record.headers, record.timestamp_ms
