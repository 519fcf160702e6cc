"""What other protocols wrote, as entries: a frame is translated once for all that read it at about the same time."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import FrameHeader
from millstream.model.frame_span import FRAME_BYTES_MAX, frame_of, spans_of
from millstream.model.numbers import numbers
from millstream.model.record import Record
from millstream.model.record_table import ROW_FIELDS, RecordTable
from millstream.sessions.translated import translated
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.pulsar.entry_run import EntryRun
from millstream.wire.pulsar.limits import BATCH_MESSAGES_MAX
from millstream.wire.pulsar.message_tables import build_run, build_table_entries
from millstream.wire.pulsar.records import BuiltEntry, build_entries
from millstream.wire.translation import read_table

__all__ = ["Piece", "Translated", "Translations", "Where"]

_PIECE_BYTES: Final = 256
"""Bytes that an entry takes beside its content, or more."""

Where = tuple[UUID, int]
"""Topic id and partition."""


class Piece(NamedTuple):
    """An entry that stands for a frame, or for a part of one.

    Args:
        first_offset: offset of its first message.
        message_count: its messages, places without one included.
        data: the entry.
        open: the places that hold a message, bit n for place n; None if all of them do.
    """

    first_offset: int
    message_count: int
    data: memoryview
    open: int | None = None


class Translated(NamedTuple):
    """A frame as entries.

    Args:
        entries: one, or more if one were too large; none if nothing in the frame can be read.
        key: of the first record that has one, None without any.
    """

    entries: tuple[Piece, ...]
    key: bytes | None


_NOTHING: Final = Translated((), None)


class _Entries:
    """The form of entries."""

    name: Hashable = "pulsar entries"

    def of_table(self, table: RecordTable) -> Translated:
        span = table.span
        first_offset, count = span.base_offset, span.end_offset - span.base_offset
        if not table.count:
            return _NOTHING
        places = None if table.count == count else _bits(_deltas(table), count)
        built = build_table_entries(table, first_offset=first_offset, message_count=count)
        return Translated(_pieces(built, first_offset, places), _first_key(table))

    def of_records(self, records: Sequence[Record], header: FrameHeader) -> Translated:
        first_offset, count = header.base_offset, header.last_offset_delta + 1
        if not records:
            return _NOTHING
        key = next((record.key for record in records if record.key is not None), None)
        deltas = (record.offset - first_offset for record in records)
        places = None if len(records) == count else _bits(deltas, count)
        return Translated(_pieces(_built(records, first_offset, count), first_offset, places), key)

    def size_bytes(self, made: Translated) -> int:
        return sum(_PIECE_BYTES + len(entry.data) for entry in made.entries)


_ENTRIES: Final = _Entries()


class _Runs:
    """The form of entries of several small frames, one for each."""

    name: Hashable = "pulsar entries of small frames"

    def of_table(self, table: RecordTable) -> EntryRun | None:
        return build_run(table) if table.span.count > 1 else _NO_RUN

    def of_records(self, records: Sequence[Record], header: FrameHeader) -> EntryRun:
        return _NO_RUN

    def size_bytes(self, made: EntryRun) -> int:
        return len(made.data) + made.starts.nbytes + made.offsets.nbytes


_NO_RUN: Final = EntryRun(memoryview(b""), numbers(1), numbers(0), 0)
"""Of frames by themselves, which are given as `Translated`."""
_RUNS: Final = _Runs()


class Translations:
    """Gives frames as entries.

    Args:
        frames: keeps the latest.
    """

    def __init__(self, frames: TranslatedFrames) -> None:
        self._frames = frames

    def of(self, where: Where, header: FrameHeader, frame: memoryview) -> Translated:
        """Translate a frame.

        Args:
            where: the partition whose log it stands in.
            header: of the frame.
            frame: the whole frame.
        """
        ((_, entries),) = translated(self._frames, where, frame_of(frame), _ENTRIES)
        return entries or _NOTHING

    def key(self, where: Where, header: FrameHeader, frame: memoryview) -> bytes | None:
        """The key of the first record of a frame that has one; None without any. Arguments as `of`."""
        if len(frame) <= FRAME_BYTES_MAX:
            # Its entry is made later, with those of others: to make it here would cost several times as much.
            try:
                table = read_table(frame_of(frame))
            except (WireError, CompressionError):
                table = None
            if table is not None:
                return _first_key(table)
        return self.of(where, header, frame).key

    def runs(self, where: Where, frames: Iterable[memoryview]) -> dict[int, EntryRun]:
        """Translate small frames, many at a time.

        Args:
            where: the partition whose log they stand in.
            frames: by offset, of other encodings.

        Returns:
            Runs of those that became one entry each, with a message in every place, by the base offset of the first.
            What became of the others `of` tells.
        """
        found = {}
        for span in spans_of(memoryview(b"".join(frames))):
            if span.count > 1:
                for _, run in translated(self._frames, where, span, _RUNS):
                    if run is not None and len(run.offsets):
                        found[run.offsets[0]] = run
        return found


def _built(records: Sequence[Record], first_offset: int, count: int) -> Iterable[BuiltEntry]:
    end = first_offset + count
    for start in range(first_offset, end, BATCH_MESSAGES_MAX):
        stop = min(start + BATCH_MESSAGES_MAX, end)
        within = records if count <= BATCH_MESSAGES_MAX else [one for one in records if start <= one.offset < stop]
        yield from build_entries(within, first_offset=start, message_count=stop - start)


def _pieces(built: Iterable[BuiltEntry], first_offset: int, places: int | None) -> tuple[Piece, ...]:
    """Entries, each with the places in it that hold a message."""
    pieces = []
    for entry in built:
        taken = None
        if places is not None:
            taken = places >> entry.first_offset - first_offset & (1 << entry.message_count) - 1
        pieces.append(Piece(entry.first_offset, entry.message_count, memoryview(entry.data), taken))
    return tuple(pieces)


def _deltas(table: RecordTable) -> Iterable[int]:
    return table.rows[0 : table.count * ROW_FIELDS : ROW_FIELDS]


def _first_key(table: RecordTable) -> bytes | None:
    sizes = table.rows[4 : table.count * ROW_FIELDS : ROW_FIELDS]
    index = next((index for index, size in enumerate(sizes) if size >= 0), None)
    return table.key(index) if index is not None else None


def _bits(deltas: Iterable[int], count: int) -> int:
    """Places as the bits of a number, bit n for place n."""
    bits = bytearray(count // 8 + 1)
    for place in deltas:
        bits[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(bits, "little")
