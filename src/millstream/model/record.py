"""The neutral record: what any protocol's reader and writer can be translated to and from."""

from dataclasses import dataclass

__all__ = ["Header", "Record"]

Header = tuple[str, bytes | None]
"""Name and value of one header; names may repeat, and order counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record.

    Args:
        offset: its place in the partition.
        timestamp_ms: ms since 1970; the producer's time, or the append's if `append_time`.
        append_time: whether the server set the time.
        key, value: their bytes, None for null.
        headers: in the order in which they were written.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    append_time: bool = False
