"""Offsets of partitions, asked for many at a time."""

__all__ = ["end_offsets", "offset_ranges", "offsets_at_time"]

from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from millstream.cli.connection import OPERATION_TIMEOUT_S


def offset_ranges(admin: Any, topic: str, partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return the earliest offset and the end offset (one past the last record) of each partition."""
    earliest = _look_up(admin, ((topic, index) for index in partitions), OffsetSpec.earliest())
    latest = _look_up(admin, ((topic, index) for index in partitions), OffsetSpec.latest())
    return {index: (earliest[topic, index], latest[topic, index]) for index in partitions}


def end_offsets(admin: Any, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return the end offset (one past the last record) of each (topic, partition)."""
    return _look_up(admin, partitions, OffsetSpec.latest())


def offsets_at_time(admin: Any, topic: str, partitions: Sequence[int], timestamp_ms: int) -> dict[int, int | None]:
    """Return the first offset of each partition whose record is not older than a time.

    Args:
        admin: an admin client.
        topic: name of the topic.
        partitions: indexes of partitions.
        timestamp_ms: milliseconds since 1970-01-01 UTC.

    Returns:
        The offset by partition, None where every record is older.
    """
    found = _look_up(admin, ((topic, index) for index in partitions), OffsetSpec.for_timestamp(timestamp_ms))
    return {index: offset if offset >= 0 else None for (_, index), offset in found.items()}


def _look_up(admin: Any, partitions: Iterable[tuple[str, int]], spec: Any) -> dict[tuple[str, int], int]:
    request = {TopicPartition(topic, index): spec for topic, index in partitions}
    if not request:
        return {}
    answers = admin.list_offsets(request, request_timeout=OPERATION_TIMEOUT_S)
    return {(where.topic, where.partition): answer.result().offset for where, answer in answers.items()}
