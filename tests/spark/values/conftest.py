"""What the tests of decoding share: rows as the source gives them, without a broker where none is needed."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

Rows = Callable[..., Any]

COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


@pytest.fixture
def rows(spark: Any) -> Rows:
    """Makes a table of records with the columns of the source, their offsets from 0: rows(values, keys=..., ...)."""

    def make(
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[list[tuple[str, bytes]] | None] | None = None,
    ) -> Any:
        return spark.createDataFrame(
            [
                (
                    None if keys is None else keys[offset],
                    value,
                    "orders",
                    0,
                    offset,
                    None,
                    0,
                    None if headers is None else headers[offset],
                )
                for offset, value in enumerate(values)
            ],
            COLUMNS,
        )

    return make


def values_of(table: Any, column: str = "value") -> dict[int, Any]:
    """The decoded column by offset; structs as dicts."""
    return {
        row["offset"]: row[column].asDict(recursive=True) if hasattr(row[column], "asDict") else row[column]
        for row in table.select("offset", column).collect()
    }


def reasons_of(table: Any) -> dict[int, str]:
    """Why rows did not decode, by offset."""
    return {row.offset: row.reason for row in table.select("offset", "reason").collect()}
