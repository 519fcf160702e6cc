"""Reading a log as message sets, for Fetch before version 4: clients that know of no transactions and read all."""

from typing import Final

from millstream.broker.partition import Partition
from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import Magic
from millstream.sessions.kafka.foreign_frames import kafka_batches
from millstream.wire.kafka.message_sets import to_messages
from millstream.wire.kafka.records import InflationBudget
from millstream.wire.limits import BATCH_RECORDS_MAX
from millstream.wire.translation import first_frames

__all__ = ["UNPACKED_ANSWER_BYTES_MAX", "read_messages"]

UNPACKED_ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes that batches may unpack to for one answer, before no further one is begun: converting that much takes some
tenths of a second, in which everyone else waits."""
_READ_BYTES_MIN: Final = 64 * 1024
"""Bytes to read at once at least: control batches, which are left out, are passed over quickly."""
_RECORD_BYTES: Final = 16
"""Bytes that a record of another protocol's frame is counted for: what it unpacks to cannot be told before."""


def read_messages(
    kept: TranslatedFrames, partition: Partition, offset: int, max_bytes: int, magic: int, budget: InflationBudget
) -> tuple[bytearray, int]:
    """Read records from an offset on, whoever wrote them.

    Args:
        kept: the broker's.
        partition: what to read.
        offset: of the first record that is wanted.
        max_bytes: how long the set is to be at most, but for its first message.
        magic: 0 or 1.
        budget: is drawn on for what is unpacked; nothing is read once it is used up.

    Returns:
        A message set, and the offset behind what is in there. It is empty only if there are no records.

    Raises:
        OffsetOutOfRange, WireError: the offset does not exist; a batch cannot be taken apart.
    """
    while budget.left_bytes > 0:
        frames, next_offset = partition.read(offset, max(max_bytes, _READ_BYTES_MIN), committed=False)
        if not frames:
            return bytearray(), next_offset
        if partition.log.encodings & ~Magic.KAFKA_V2:
            frames, next_offset, count = first_frames(frames, next_offset, BATCH_RECORDS_MAX)
            budget.left_bytes -= count * _RECORD_BYTES
            frames = memoryview(kafka_batches(kept, partition, frames, partition.is_withheld))
        messages, stop_offset = to_messages(frames, magic, offset, max_bytes, budget)
        if messages:
            return messages, stop_offset
        offset = next_offset
    return bytearray(), offset
