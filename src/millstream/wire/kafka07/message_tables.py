"""Message sets of Kafka 0.7 as tables of records, and tables as message sets: what `millstream.wire.kafka07.frames`
does with an object for each record, with compiled loops, for all sets that are not damaged."""

from millstream.model.frame import HEADER_BYTES, read_frame_header
from millstream.model.record_table import ROW_FIELDS, RecordTable, numbers
from millstream.wire.kafka07.message_rows import COMPILED, plain_run, read_rows, write_rows
from millstream.wire.kafka07.message_walk import seal
from millstream.wire.kafka07.messages import MESSAGE_HEAD_BYTES, InflationBudget, inflated, message_at

__all__ = ["encode_table", "encoded_bytes", "read_table"]


def read_table(frame: memoryview, *, compiled: bool = COMPILED) -> RecordTable | None:
    """Take a stored message set apart.

    Args:
        frame: one whole frame of magic KAFKA07_SET.
        compiled: whether the loops are to be used; they are slow where they are not compiled.

    Returns:
        Its records; None if they are not what the header says, which `read_records` finds out.

    Raises:
        InvalidMessage: a message makes no sense.
    """
    if not compiled:
        return None
    header = read_frame_header(frame)
    body = frame[HEADER_BYTES : header.size]
    if plain_run(body, 0) != len(body):
        parts: list[memoryview] = []
        _flatten(body, parts, 0)
        body = memoryview(b"".join(parts))
    rows = numbers(ROW_FIELDS * header.record_count)
    totals = numbers(2)
    count = read_rows(body, header.max_timestamp, rows, totals)
    if count != header.record_count:
        return None
    return RecordTable(header.base_offset, body, count, rows, numbers(0), totals[0], totals[1], 0)


def _flatten(body: memoryview, parts: list[memoryview], depth: int) -> None:
    """Give the plain messages of a set, those in wrappers in their place. Raises InvalidMessage."""
    position = 0
    while True:
        stop = plain_run(body, position)
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
