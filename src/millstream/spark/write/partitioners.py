"""Which partition each row goes to: as Kafka's own clients choose it.

The names are those of librdkafka, whose applications are meant to find their keys where they always were:

    murmur2_random     murmur2 of the key, as the Java client; without a key spread (the default)
    murmur2            the same, and all rows without a key go to one partition
    consistent_random  crc32 of the key, the default of librdkafka; with an empty key or none spread
    consistent         the same, and all of those go to one partition
    fnv1a_random       FNV-1a of the key; without a key spread
    fnv1a              the same, and all rows without a key go to one partition
    random             keys do not count: all are spread
    roundrobin         keys do not count: one row to each partition in turn

Rows are spread as the Java client does it, so that batches are large: one partition gets rows until they fill a
batch, then the next. Where that begins depends on the task and the micro-batch alone: a task that runs again chooses
the same again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from millstream.spark.errors import UnwritableRow
from millstream.spark.write.columns import Rows
from millstream.spark.write.hashes import Keys, crc32, fnv1a, murmur2
from millstream.spark.write.varints import Ints

__all__ = ["Partitioner", "Spreading", "partitions_of"]


class Partitioner(StrEnum):
    """The partitioners by their names."""

    MURMUR2_RANDOM = "murmur2_random"
    MURMUR2 = "murmur2"
    CONSISTENT_RANDOM = "consistent_random"
    CONSISTENT = "consistent"
    FNV1A_RANDOM = "fnv1a_random"
    FNV1A = "fnv1a"
    RANDOM = "random"
    ROUNDROBIN = "roundrobin"


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a partitioner takes keys.

    Args:
        hash_: the hash of a key, as a number that the count of partitions divides.
        spreads_null, spreads_empty: whether rows without a key, and those with an empty one, are spread.
    """

    hash_: Callable[[Keys], Ints]
    spreads_null: bool
    spreads_empty: bool


def _murmur2(keys: Keys) -> Ints:
    return (murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64)


def _crc32(keys: Keys) -> Ints:
    return crc32(keys).astype(np.int64)


def _fnv1a(keys: Keys) -> Ints:
    return fnv1a(keys).astype(np.int64)


_RULES: Final[Mapping[Partitioner, _Rule]] = {
    Partitioner.MURMUR2_RANDOM: _Rule(_murmur2, spreads_null=True, spreads_empty=False),
    Partitioner.MURMUR2: _Rule(_murmur2, spreads_null=False, spreads_empty=False),
    Partitioner.CONSISTENT_RANDOM: _Rule(_crc32, spreads_null=True, spreads_empty=True),
    Partitioner.CONSISTENT: _Rule(_crc32, spreads_null=False, spreads_empty=False),
    Partitioner.FNV1A_RANDOM: _Rule(_fnv1a, spreads_null=True, spreads_empty=False),
    Partitioner.FNV1A: _Rule(_fnv1a, spreads_null=False, spreads_empty=False),
}


class Spreading:
    """Where the next row goes that no key directs, for each topic; it goes on from one block of rows to the next.

    Args:
        start: where to begin.
        batch_bytes: bytes of keys and values after which it is the next partition's turn.
    """

    def __init__(self, start: int, batch_bytes: int) -> None:
        self._start = start
        self._batch_bytes = batch_bytes
        self._bytes: dict[str, int] = {}
        self._rows: dict[str, int] = {}

    def by_bytes(self, topic: str, sizes: Ints, count: int) -> Ints:
        """Partitions of rows of some bytes, so that each partition gets a batch full in turn."""
        upto = self._bytes.get(topic, 0) + np.cumsum(sizes)
        self._bytes[topic] = int(upto[-1]) if len(upto) else self._bytes.get(topic, 0)
        turns: Ints = (self._start + (upto - sizes) // self._batch_bytes) % count
        return turns

    def by_rows(self, topic: str, rows: int, count: int) -> Ints:
        """Partitions of some rows, one after the other."""
        begin = self._rows.get(topic, 0)
        self._rows[topic] = begin + rows
        turns: Ints = (self._start + begin + np.arange(rows, dtype=np.int64)) % count
        return turns


def partitions_of(rows: Rows, topic: str, count: int, partitioner: Partitioner, spreading: Spreading) -> Ints:
    """The partition of each of some rows of one topic: the one of the column `partition`, else the partitioner's.

    Args:
        rows: the rows.
        topic: where all of them go.
        count: how many partitions it has.
        partitioner: chooses where the column says nothing.
        spreading: for rows that no key directs.

    Raises:
        UnwritableRow: a row names a partition that the topic does not have.
    """
    if rows.partition is None:
        return _chosen(rows, topic, count, partitioner, spreading)
    given = rows.partition
    if len(given) and (int(given.max()) >= count or int(given.min()) < -1):
        wrong = int(given.max()) if int(given.max()) >= count else int(given.min())
        raise UnwritableRow(
            f"a row names partition {wrong}, and topic {topic!r} has {count}: change the column partition, "
            "or leave it null for the partitioner to choose"
        )
    free = np.flatnonzero(given < 0)
    if not len(free):
        return given
    result = given.copy()
    result[free] = _chosen(rows.take(free), topic, count, partitioner, spreading)
    return result


def _chosen(rows: Rows, topic: str, count: int, partitioner: Partitioner, spreading: Spreading) -> Ints:
    if partitioner is Partitioner.ROUNDROBIN:
        return spreading.by_rows(topic, len(rows), count)
    keys = None if rows.key is None else keys_of(rows.key)
    rule = _RULES.get(partitioner)
    if rule is None or (keys is None and rule.spreads_null):
        return spreading.by_bytes(topic, _bytes_of(rows), count)
    if keys is None:
        nothing = Keys(np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
        return np.full(len(rows), int(rule.hash_(nothing)[0]) % count, dtype=np.int64)
    result: Ints = rule.hash_(keys) % count
    spread = np.zeros(len(rows), dtype=np.bool_)
    if rule.spreads_empty:
        spread = keys.sizes == 0
    elif rule.spreads_null and rows.key is not None and rows.key.null_count:
        spread = rows.key.is_null().to_numpy(zero_copy_only=False)
    free = np.flatnonzero(spread)
    if len(free):
        result[free] = spreading.by_bytes(topic, _bytes_of(rows)[free], count)
    return result


def keys_of(column: Any) -> Keys:
    """The keys of a binary array; a null is as an empty one."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    sizes = np.diff(offsets).astype(np.int64)
    if column.null_count:
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = 0
    data = column.buffers()[2]
    buffer = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return Keys(buffer, offsets[:-1].astype(np.int64), sizes)


def _bytes_of(rows: Rows) -> Ints:
    sizes = keys_of(rows.value).sizes
    return sizes if rows.key is None else sizes + keys_of(rows.key).sizes
