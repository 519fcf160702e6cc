"""The frame in which an entry is stored.

Its times are the entry's publish_time: retention and seeking by time go by when a message was published, not by when
an application says that something happened.
"""

import struct
from typing import Final

from crc32c import crc32c

from millstream.model.frame import HEADER_BYTES, LENGTH_OVERHEAD, Attributes, Magic, frame_crc
from millstream.model.frame_run import FrameRun
from millstream.wire.pulsar.entry import Entry

__all__ = ["add_to_run", "build_frame"]

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_START: Final = struct.Struct(">qiibI")
_REST: Final = struct.Struct(">hiqqqhii")
"""The header in two parts: what the checksum covers begins with the second."""
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 17
_MAGIC: Final = int(Magic.PULSAR_ENTRY)


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


def add_to_run(run: FrameRun, data: memoryview, count: int, time_ms: int) -> None:
    """Put an entry that is in no transaction into a frame at the end of a run; see `build_frame`.

    Args:
        run: of PULSAR_ENTRY.
        data: the whole entry as it was sent; it is copied.
        count: messages in it.
        time_ms: its publish_time.
    """
    size = HEADER_BYTES + len(data)
    rest = _REST.pack(0, count - 1, time_ms, time_ms, -1, -1, -1, count)
    out = run.data
    out += _START.pack(0, size - LENGTH_OVERHEAD, 0, _MAGIC, crc32c(data, crc32c(rest)))
    out += rest
    out += data
    run.sizes.append(size)
    run.counts.append(count)
    run.times.append(time_ms)
