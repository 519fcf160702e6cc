"""Reading what another protocol wrote: any frames of the log as neutral records, and as whatever a reader wants.

Every protocol's package has readers of its own encoding; this is the one place that knows all of them, by the magic
value of the frame. One is loaded when a frame of its encoding is first met.

There are two ways, and each reader and each writer knows both. Nearly all batches go by way of a `RecordTable`,
which compiled loops fill in and empty, a span of frames at a time. What is out of the ordinary, and everything where
nothing is compiled, goes by way of `Record`, frame by frame, one object for each. Both come to the same bytes, which
the tests hold them to; but for Kafka, whose batches may hold what several frames do.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Final, Protocol, TypeVar

from millstream.model.frame import FrameHeader, Magic
from millstream.model.frame_heads import own_frames
from millstream.model.frame_span import FrameSpan, frame_of, take_span
from millstream.model.record import Record
from millstream.model.record_table import RecordTable
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.kafka.record_tables import place_table
from millstream.wire.kafka.records import place_batch

__all__ = [
    "KAFKA_BATCH",
    "Form",
    "first_frames",
    "kafka_batch",
    "read_records",
    "read_table",
    "translate",
    "walk_records",
]

T = TypeVar("T")
Reader = Callable[[memoryview], Iterator[Record]]
"""Takes one whole frame apart, record by record.

Its records have their offsets in the log, in order. Records that are nobody's to read (a mark of a transaction, a
part of a message that is not the last) are left out. Raises WireError, CompressionError.
"""
TableReader = Callable[[FrameSpan], RecordTable | None]
"""Takes the frames of a span apart with compiled loops; None for what is left to the `Reader`. Raises WireError,
CompressionError."""

READERS: Final[Mapping[int, tuple[tuple[str, str], tuple[str, str]]]] = {
    Magic.KAFKA_V2: (
        ("millstream.wire.kafka.records", "walk_frame"),
        ("millstream.wire.kafka.record_tables", "read_table"),
    ),
    Magic.IGGY_BATCH: (
        ("millstream.wire.iggy.stored", "walk_frame"),
        ("millstream.wire.iggy.message_tables", "read_table"),
    ),
    Magic.KAFKA07_SET: (
        ("millstream.wire.kafka07.frames", "walk_records"),
        ("millstream.wire.kafka07.message_tables", "read_table"),
    ),
    Magic.PULSAR_ENTRY: (
        ("millstream.wire.pulsar.records", "walk_records"),
        ("millstream.wire.pulsar.message_tables", "read_table"),
    ),
}
"""The modules and the names of both readers of each encoding."""


@cache
def _readers(magic: int) -> tuple[Reader, TableReader]:
    (module, name), (table_module, table_name) = READERS[magic]
    reader: Reader = getattr(import_module(module), name)
    table_reader: TableReader = getattr(import_module(table_module), table_name)
    return reader, table_reader


def walk_records(frame: memoryview) -> Iterator[Record]:
    """The records of a frame, whoever wrote it.

    Args:
        frame: one whole frame of the log.

    Raises:
        WireError, CompressionError: the body is not what its writer's protocol makes, which may be seen late.
    """
    return _readers(frame[16])[0](frame)


def read_records(frame: memoryview) -> Sequence[Record]:
    """All records of a frame; see `walk_records`."""
    return tuple(walk_records(frame))


def read_table(span: FrameSpan) -> RecordTable | None:
    """The records of a span as a table; None if a frame is out of the ordinary, or nothing is compiled.

    Raises:
        WireError, CompressionError: as `read_records`.
    """
    return _readers(span.magic)[1](span)


class Form(Protocol[T]):
    """What a reader wants frames of other protocols to be."""

    @property
    def name(self) -> Hashable:
        """Tells it from all other forms."""

    def of_table(self, table: RecordTable) -> T | None:
        """Make it of a table; None to be given the records, frame by frame."""

    def of_records(self, records: Sequence[Record], header: FrameHeader) -> T:
        """Make it of the records of one frame."""

    def size_bytes(self, made: T) -> int:
        """Bytes that what was made takes in memory, about."""


def translate(span: FrameSpan, form: Form[T]) -> T | None:
    """Make of some frames what a reader wants.

    Args:
        span: the frames.
        form: what is wanted.

    Returns:
        None if each of the frames has to be translated by itself. That is never so for a single one.

    Raises:
        WireError, CompressionError: as `read_records`.
    """
    table = read_table(span)
    made = form.of_table(table) if table is not None else None
    if made is None and span.count == 1:
        made = form.of_records(read_records(span.data), span.header)
    return made


class _KafkaBatch:
    """Kafka batches that take the same offsets."""

    name: Hashable = "kafka batch"

    def of_table(self, table: RecordTable) -> bytearray:
        return place_table(table)

    def of_records(self, records: Sequence[Record], header: FrameHeader) -> bytearray:
        return place_batch(records, header)

    def size_bytes(self, made: bytearray) -> int:
        return len(made)


KAFKA_BATCH: Final = _KafkaBatch()


def kafka_batch(frame: memoryview, header: FrameHeader) -> bytes | bytearray | memoryview:
    """A frame as a Kafka batch that takes the same offsets; the frame itself if it is one.

    A body that the clients of its own protocol could not make sense of either becomes a batch without records.
    """
    if header.magic == Magic.KAFKA_V2:
        return frame
    try:
        made = translate(frame_of(frame), KAFKA_BATCH)
    except (WireError, CompressionError):
        made = None
    return made if made is not None else place_batch((), header)


def first_frames(frames: memoryview, end: int, records_max: int) -> tuple[memoryview, int, int]:
    """As many of some frames as may be made Kafka batches of: frames of some hundred bytes may have a million records
    each, and all of them take some tenths of a second, where nothing is compiled a second or two.

    Args:
        frames: whole frames, one after the other.
        end: the offset behind them.
        records_max: records of frames that are to be taken apart; the first such frame may have more.

    Returns:
        The frames, the offset behind them, and the records of those that are to be taken apart.
    """
    position = records = 0
    while position < len(frames):
        position = own_frames(frames, position, Magic.KAFKA_V2)
        if position >= len(frames):
            break
        span = take_span(frames, position)
        if position and records + span.records > records_max:
            return frames[:position], span.base_offset, records
        records += span.records
        position += len(span.data)
    return frames, end, records
