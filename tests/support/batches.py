"""Batches for tests of the log, and what is read back, frame by frame."""

from collections.abc import Iterator

from millstream.model.frame import read_frame_header
from millstream.model.record import Record
from millstream.storage.log import Appended, PartitionLog
from millstream.wire.kafka.records import build_batch

__all__ = ["append", "batch", "frames_of", "read_all", "read_from"]

READ_BYTES = 1024 * 1024


def batch(
    value: bytes = b"",
    count: int = 1,
    timestamp_ms: int = 1000,
    *,
    producer_id: int = -1,
    epoch: int = 0,
    sequence: int = -1,
) -> bytearray:
    """A batch of `count` records with the same value; the n-th is n ms later than the first.

    Args:
        value: of each record.
        count: of records.
        timestamp_ms: of the first record.
        producer_id, epoch, sequence: of an idempotent producer.
    """
    records = [Record(offset=n, timestamp_ms=timestamp_ms + n, key=None, value=value) for n in range(count)]
    if producer_id < 0:
        return build_batch(records)
    return build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def append(log: PartitionLog, frame: bytearray, now_ms: int = 0) -> Appended:
    """Append a batch as the broker does; its offset is set in it in place."""
    return log.append(memoryview(frame), read_frame_header(frame), now_ms)


def frames_of(data: bytes | bytearray | memoryview) -> Iterator[bytes]:
    """Cut what a read has given into its frames."""
    position = 0
    while position < len(data):
        size = read_frame_header(data, position).size
        yield bytes(data[position : position + size])
        position += size
    assert position == len(data), "a read gives whole frames"


def read_from(log: PartitionLog, offset: int, max_bytes: int = READ_BYTES) -> list[bytes]:
    """All frames from the one that holds an offset on, with as many reads as it takes."""
    frames: list[bytes] = []
    while True:
        data, next_offset = log.read(offset, max_bytes)
        if not data:
            assert next_offset == log.end_offset
            return frames
        assert next_offset > offset, "a read goes forward"
        frames += frames_of(data)
        assert next_offset == read_frame_header(frames[-1]).last_offset + 1
        offset = next_offset


def read_all(log: PartitionLog, max_bytes: int = READ_BYTES) -> list[bytes]:
    """All frames of a log."""
    return read_from(log, log.start_offset, max_bytes)
