"""The frame in which an entry is stored.

Its times are the entry's publish_time: retention and seeking by time go by when a message was published, not by when
an application says that something happened.
"""

import struct
from typing import Final

from millstream.model.frame import HEADER_BYTES, LENGTH_OVERHEAD, Attributes, Magic, frame_crc
from millstream.wire.pulsar.entry import Entry

__all__ = ["build_frame"]

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 17


def build_frame(
    data: memoryview,
    entry: Entry,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytearray:
    """Put an entry into a frame, which gets the offsets from 0 on until the log places it.

    Args:
        data: the whole entry as it was sent. It is copied: this is the one copy of a message on its way to the disk.
        entry: the same, taken apart by `check_entry`.
        producer_id, producer_epoch, base_sequence: of the log's own duplicate detection; -1 for none.
        transactional: whether the entry belongs to a transaction.
    """
    count = entry.message_count
    time_ms = entry.metadata.publish_time
    size = HEADER_BYTES + len(data)
    frame = bytearray(size)
    attributes = Attributes.TRANSACTIONAL if transactional else 0
    identity = (producer_id, producer_epoch, base_sequence, count)
    length = size - LENGTH_OVERHEAD
    _HEADER.pack_into(
        frame, 0, 0, length, 0, Magic.PULSAR_ENTRY, 0, attributes, count - 1, time_ms, time_ms, *identity
    )
    frame[HEADER_BYTES:] = data
    _CRC.pack_into(frame, _CRC_POSITION, frame_crc(memoryview(frame)))
    return frame
