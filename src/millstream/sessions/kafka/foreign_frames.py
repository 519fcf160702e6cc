"""What other protocols wrote, as Kafka batches that take the same offsets."""

from collections.abc import Callable

from millstream.broker.partition import Partition
from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import Magic, read_frame_header
from millstream.sessions.translated import translated
from millstream.wire.kafka.records import place_batch
from millstream.wire.translation import KAFKA_BATCH

__all__ = ["kafka_batches"]

Buffer = bytes | bytearray | memoryview


def kafka_batches(
    kept: TranslatedFrames, partition: Partition, frames: memoryview, is_hidden: Callable[[int], bool]
) -> bytes:
    """Whole frames, one after the other, as Kafka batches.

    A frame that nobody could make sense of becomes a batch without records, and so does one that is nobody's to read.

    Args:
        kept: the broker's.
        partition: whose they are.
        frames: the frames.
        is_hidden: tells, by its base offset, whether a frame is for nobody.
    """
    where = partition.log.directory
    parts: list[Buffer] = []
    position = native_from = 0
    while position < len(frames):
        header = read_frame_header(frames, position)
        stop = position + header.size
        batch: Buffer | None = None
        if is_hidden(header.base_offset):
            batch = place_batch((), header)
        elif header.magic != Magic.KAFKA_V2:
            batch = translated(kept, where, frames[position:stop], header, KAFKA_BATCH)
            if batch is None:
                batch = place_batch((), header)
        if batch is not None:
            parts += (frames[native_from:position], batch)
            native_from = stop
        position = stop
    parts.append(frames[native_from:])
    return b"".join(parts)
