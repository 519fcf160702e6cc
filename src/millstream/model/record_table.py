"""Records of a span of frames as a table of where their bytes stand, instead of an object for each.

What translates between two encodings of a batch needs of a record no more than where its key, its value and its
headers begin and how long they are. So a reader of an encoding fills in a table, a writer of another goes through it,
and neither knows of the other. A row of the table is ROW_FIELDS numbers,

    0  offset, from the span's base offset      4  bytes of the key, -1 for null
    1  timestamp, ms since 1970                 5  where the value begins
    2  1 if that is the time of the append      6  bytes of the value, -1 for null
    3  where the key begins                     7  how many headers it has

and a header HEADER_FIELDS numbers: where its name begins and its bytes, where its value begins and its bytes, -1 for
null. Names are valid UTF-8. Headers stand in the order of their records. `millstream.model.record.Record` says what
all of it means; a table holds what records do, no more and no less.
"""

from collections.abc import Iterator
from typing import Final

from millstream.model.frame_span import FrameSpan
from millstream.model.record import Record

__all__ = ["HEADER_FIELDS", "ROW_FIELDS", "RecordTable"]

ROW_FIELDS: Final = 8
HEADER_FIELDS: Final = 4


class RecordTable:
    """The records of a span.

    Args:
        span: the frames. The heads tell how many of the records each has.
        data: what positions point into. It may be the frames themselves, so that a table is to be used up at once.
        count: how many records there are.
        rows: their rows, ascending by offset.
        headers: all their headers, at least as many as the rows say.
        content_bytes: of all keys, values, and names and values of headers.
        value_bytes: of all values.
        header_count: of all records.
    """

    __slots__ = (
        "base_offset",
        "content_bytes",
        "count",
        "data",
        "header_count",
        "headers",
        "rows",
        "span",
        "value_bytes",
    )

    def __init__(
        self,
        span: FrameSpan,
        data: memoryview,
        count: int,
        rows: memoryview,
        headers: memoryview,
        content_bytes: int,
        value_bytes: int,
        header_count: int,
    ) -> None:
        self.span = span
        self.base_offset = span.base_offset
        self.data = data
        self.count = count
        self.rows = rows
        self.headers = headers
        self.content_bytes = content_bytes
        self.value_bytes = value_bytes
        self.header_count = header_count

    def record(self, index: int, headers_before: int) -> Record:
        """One record.

        Args:
            index: its row.
            headers_before: headers of all records before it.
        """
        delta, timestamp_ms, append_time, key_at, key_bytes, value_at, value_bytes, count = self.rows[
            index * ROW_FIELDS : (index + 1) * ROW_FIELDS
        ]
        headers = []
        for at in range(headers_before, headers_before + count):
            name_at, name_bytes, content_at, content_bytes = self.headers[
                at * HEADER_FIELDS : (at + 1) * HEADER_FIELDS
            ]
            name = str(self.data[name_at : name_at + name_bytes], "utf-8")
            headers.append((name, self._bytes(content_at, content_bytes)))
        return Record(
            offset=self.base_offset + delta,
            timestamp_ms=timestamp_ms,
            key=self._bytes(key_at, key_bytes),
            value=self._bytes(value_at, value_bytes),
            headers=tuple(headers),
            append_time=bool(append_time),
        )

    def key(self, index: int) -> bytes | None:
        """The key of one record, by its row."""
        return self._bytes(self.rows[index * ROW_FIELDS + 3], self.rows[index * ROW_FIELDS + 4])

    def records(self) -> Iterator[Record]:
        """All records."""
        before = 0
        for index in range(self.count):
            yield self.record(index, before)
            before += self.rows[index * ROW_FIELDS + 7]

    def _bytes(self, position: int, size: int) -> bytes | None:
        return bytes(self.data[position : position + size]) if size >= 0 else None
