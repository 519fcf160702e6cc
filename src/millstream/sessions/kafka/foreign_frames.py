"""What other protocols wrote, as Kafka batches that take the same offsets."""

from collections.abc import Callable, Iterator

from millstream.broker.partition import Partition
from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import Magic, read_frame_header
from millstream.model.frame_heads import own_frames
from millstream.model.frame_span import FrameSpan, take_span
from millstream.sessions.translated import translated
from millstream.wire.kafka.messages.fetch import EncodingRun
from millstream.wire.kafka.records import place_batch
from millstream.wire.translation import KAFKA_BATCH

__all__ = ["encoding_runs", "kafka_batches"]

Buffer = bytes | bytearray | memoryview


def encoding_runs(frames: memoryview) -> list[EncodingRun]:
    """Where whole frames, one after the other, begin to be of another encoding than those before them."""
    runs: list[EncodingRun] = []
    position = 0
    while position < len(frames):
        header = read_frame_header(frames, position)
        if not runs or runs[-1].encoding != header.magic:
            runs.append(EncodingRun(first_offset=header.base_offset, encoding=header.magic))
        position += header.size
    return runs


def kafka_batches(
    kept: TranslatedFrames, partition: Partition, frames: memoryview, is_hidden: Callable[[int], bool]
) -> bytes:
    """Whole frames, one after the other, as Kafka batches; small ones of other protocols share batches.

    A frame that nobody could make sense of becomes a batch without records, and so does one that is nobody's to read.

    Args:
        kept: the broker's.
        partition: whose they are.
        frames: the frames.
        is_hidden: tells, by its base offset, whether a frame is for nobody; it is one that was aborted.
    """
    parts: list[Buffer] = []
    position, all_shown = 0, partition.transactions is None
    while position < len(frames):
        stop = own_frames(frames, position, Magic.KAFKA_V2) if all_shown else position
        if stop > position:
            parts.append(frames[position:stop])
            position = stop
            continue
        span = take_span(frames, position)
        position += len(span.data)
        if not partition.has_aborted(span.base_offset, span.end_offset):
            parts += _batches(kept, partition, span)
            continue
        for frame in span.frames():
            if is_hidden(frame.base_offset):
                parts.append(place_batch((), frame.header))
            else:
                parts += _batches(kept, partition, frame)
    return b"".join(parts)


def _batches(kept: TranslatedFrames, partition: Partition, span: FrameSpan) -> Iterator[Buffer]:
    if span.magic == Magic.KAFKA_V2:
        yield span.data
        return
    for frames, batches in translated(kept, partition.log.directory, span, KAFKA_BATCH):
        yield batches if batches is not None else place_batch((), frames.header)
