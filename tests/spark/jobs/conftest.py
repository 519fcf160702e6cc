"""What the tests of jobs share."""

from typing import Any

import pytest

from tests.spark.conftest import Read


class Rows:
    """What topics and tables hold.

    Args:
        read: reads topics of the broker.
    """

    def __init__(self, read: Read) -> None:
        self._read = read

    def of(self, topic: str, *, without_offsets: bool = False) -> list[tuple[Any, ...]]:
        """The records of a topic in the order of partitions and offsets: partition, offset, and all that they are."""
        return records_of(self._read(topic, includeHeaders=True), without_offsets=without_offsets)


def records_of(frame: Any, *, without_offsets: bool = False) -> list[tuple[Any, ...]]:
    """The records of an archive, as `Rows.of`."""
    found = frame.selectExpr("partition", "offset", "key", "value", "headers", "unix_micros(timestamp) AS micros")
    return [
        (
            row.partition,
            None if without_offsets else row.offset,
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            tuple((name, None if value is None else bytes(value)) for name, value in row.headers or ()),
            row.micros,
        )
        for row in found.orderBy("partition", "offset").collect()
    ]


@pytest.fixture
def held(read: Read) -> Rows:
    """What topics of the broker hold."""
    return Rows(read)
