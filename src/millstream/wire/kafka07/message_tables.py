"""Message sets of Kafka 0.7 as tables of records, and tables as message sets: what `millstream.wire.kafka07.frames`
does with an object for each record, with compiled loops, for all sets that are not damaged."""

from millstream.model.frame import HEADER_BYTES
from millstream.model.frame_span import FrameSpan
from millstream.model.numbers import numbers
from millstream.model.record_table import ROW_FIELDS, RecordTable
from millstream.wire.kafka07.message_rows import COMPILED, plain_run, read_rows, write_rows
from millstream.wire.kafka07.message_walk import seal
from millstream.wire.kafka07.messages import MESSAGE_HEAD_BYTES, InflationBudget, inflated, message_at

__all__ = ["encode_table", "encoded_bytes", "read_table"]


def read_table(span: FrameSpan, *, compiled: bool = COMPILED) -> RecordTable | None:
    """Take stored message sets apart.

    Args:
        span: of frames of magic KAFKA07_SET.
        compiled: whether the loops are to be used; they are slow where they are not compiled.

    Returns:
        Their records; None if they are not what the headers say, which `read_records` finds out, or some of several
        sets are compressed.

    Raises:
        InvalidMessage: a message makes no sense.
    """
    if not compiled:
        return None
    data = span.data
    if span.count == 1 and plain_run(data, HEADER_BYTES, len(data)) != len(data):
        parts: list[memoryview] = []
        _flatten(data[HEADER_BYTES:], parts, 0)
        data = memoryview(b"".join(parts))
        span = span.with_body(len(data))
    if span.records > len(data) // MESSAGE_HEAD_BYTES[0]:
        return None
    rows = numbers(ROW_FIELDS * span.records)
    totals = numbers(2)
    count = read_rows(data, span.heads, span.count, rows, totals)
    if count < 0:
        return None
    return RecordTable(span, data, count, rows, numbers(0), totals[0], totals[1], 0)


def _flatten(body: memoryview, parts: list[memoryview], depth: int) -> None:
    """Give the plain messages of a set, those in wrappers in their place. Raises InvalidMessage."""
    position = 0
    while True:
        stop = plain_run(body, position, len(body))
        parts.append(body[position:stop])
        message = message_at(body, stop)
        if message is None:
            return
        _flatten(inflated(body, message, InflationBudget(), depth), parts, depth + 1)
        position = message.stop


def encoded_bytes(table: RecordTable, magic: int) -> int:
    """Bytes of the message set that stands for the records of a table."""
    return table.value_bytes + MESSAGE_HEAD_BYTES[magic] * table.count


def encode_table(table: RecordTable, magic: int) -> bytearray:
    """The message set that stands for the records of a table; see `encode_records`.

    Args:
        table: from a frame of another encoding.
        magic: 0 or 1, of every message.
    """
    messages = bytearray(encoded_bytes(table, magic))
    write_rows(table.data, table.rows, table.count, magic, memoryview(messages))
    seal(messages)
    return messages
