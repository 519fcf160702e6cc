"""Reading what another protocol wrote: any frame of the log as neutral records, and as a Kafka batch.

Every protocol's package has a reader of its own encoding; this is the one place that knows all of them, by the
magic value of the frame. A reader is loaded when a frame of its encoding is first met.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Final

from millstream.model.frame import FrameHeader, Magic, read_frame_header
from millstream.model.record import Record
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.kafka.records import place_batch

__all__ = ["batch_of", "first_frames", "kafka_batch", "kafka_batches", "read_records"]

Reader = Callable[[memoryview], Sequence[Record]]
"""Takes one whole frame apart.

Its records have their offsets in the log, in order. Records that are nobody's to read (a mark of a transaction, a
part of a message that is not the last) are left out. Raises WireError, CompressionError.
"""

READERS: Final[Mapping[int, tuple[str, str]]] = {
    Magic.KAFKA_V2: ("millstream.wire.kafka.records", "read_frame"),
    Magic.IGGY_BATCH: ("millstream.wire.iggy.stored", "read_frame"),
    Magic.KAFKA07_SET: ("millstream.wire.kafka07.frames", "read_records"),
    Magic.PULSAR_ENTRY: ("millstream.wire.pulsar.records", "read_records"),
}
"""The module and the name of the reader of each encoding."""


@cache
def _reader(magic: int) -> Reader:
    module, name = READERS[magic]
    reader: Reader = getattr(import_module(module), name)
    return reader


def read_records(frame: memoryview) -> Sequence[Record]:
    """The records of a frame, whoever wrote it.

    Args:
        frame: one whole frame of the log.

    Raises:
        WireError, CompressionError: the body is not what its writer's protocol makes.
    """
    return _reader(frame[16])(frame)


def kafka_batch(frame: memoryview, header: FrameHeader, *, hidden: bool = False) -> bytes | bytearray | memoryview:
    """A frame as a Kafka batch that takes the same offsets; the frame itself if it is one.

    A body that the clients of its own protocol could not make sense of either becomes a batch without records, and so
    does one that is hidden from everybody.
    """
    if hidden:
        return place_batch((), header)
    if header.magic == Magic.KAFKA_V2:
        return frame
    try:
        return place_batch(read_records(frame), header)
    except (WireError, CompressionError):
        return place_batch((), header)


def batch_of(records: Sequence[Record], header: FrameHeader) -> bytearray:
    """Some of the records of a frame, as a Kafka batch that takes all of its offsets; what is left out is missing."""
    return place_batch(records, header)


def first_frames(frames: memoryview, end: int, records_max: int) -> tuple[memoryview, int, int]:
    """As many of some frames as may be made Kafka batches of: frames of some hundred bytes may have a million records
    each, and all of them take a second or two.

    Args:
        frames: whole frames, one after the other.
        end: the offset behind them.
        records_max: records of frames that are to be taken apart; the first such frame may have more.

    Returns:
        The frames, the offset behind them, and the records of those that are to be taken apart.
    """
    position = records = 0
    while position < len(frames):
        header = read_frame_header(frames, position)
        if header.magic != Magic.KAFKA_V2:
            count = header.last_offset_delta + 1
            if position and records + count > records_max:
                return frames[:position], header.base_offset, records
            records += count
        position += header.size
    return frames, end, records


def kafka_batches(frames: memoryview, is_hidden: Callable[[int], bool] = lambda _: False) -> bytes:
    """Whole frames, one after the other, as Kafka batches that take the same offsets.

    Args:
        frames: the frames.
        is_hidden: tells, by its base offset, whether a frame is for nobody.
    """
    batches = []
    position = 0
    while position < len(frames):
        header = read_frame_header(frames, position)
        frame = frames[position : position + header.size]
        batches.append(kafka_batch(frame, header, hidden=is_hidden(header.base_offset)))
        position += header.size
    return b"".join(batches)
