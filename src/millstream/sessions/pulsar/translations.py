"""What other protocols wrote, as entries: a frame is translated once for all that read it at about the same time."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from millstream.model.frame import FrameHeader
from millstream.model.record import Record
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.pulsar.limits import BATCH_MESSAGES_MAX
from millstream.wire.pulsar.records import build_entries
from millstream.wire.translation import read_records

__all__ = ["Piece", "Translated", "Translations", "Where"]

_log = logging.getLogger(__name__)
_KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of entries that are kept: what subscriptions at about the same place of a topic read within some turns."""

_OVERHEAD_BYTES: Final = 1024
"""Bytes that a translation takes beside its entries, or more."""

Where = tuple[UUID, int]
"""Topic id and partition."""
_Name = tuple[Where, int, int]


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

    @property
    def size_bytes(self) -> int:
        """Bytes that it takes in memory, about."""
        return _OVERHEAD_BYTES + sum(len(entry.data) for entry in self.entries)


_UNREADABLE: Final = Translated((), None)


class Translations:
    """The latest translations."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Name, Translated] = OrderedDict()
        self._kept_bytes = 0

    def of(self, where: Where, header: FrameHeader, frame: memoryview) -> Translated:
        """Translate a frame.

        Args:
            where: the partition whose log it stands in.
            header: of the frame.
            frame: the whole frame.
        """
        # The checksum tells a frame from what compaction has left of it.
        name = where, header.base_offset, header.crc
        found = self._kept.get(name)
        if found is not None:
            self._kept.move_to_end(name)
            return found
        try:
            records = list(read_records(frame))
        except (WireError, CompressionError) as error:
            _log.error("batch unreadable topic=%s partition=%d offset=%d reason=%s", *where, name[1], error)
            translated = _UNREADABLE
        else:
            translated = translate(records, header.base_offset, header.last_offset_delta + 1)
        self._keep(name, translated)
        return translated

    def _keep(self, name: _Name, translated: Translated) -> None:
        self._kept[name] = translated
        self._kept_bytes += translated.size_bytes
        while self._kept_bytes > _KEPT_BYTES_MAX:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= oldest.size_bytes


def translate(records: Sequence[Record], first_offset: int, count: int) -> Translated:
    """Make entries of the records of a frame.

    Args:
        records: in the order of their offsets; some of the frame's offsets may have none.
        first_offset, count: the offsets that the entries are to stand for.
    """
    if not records:
        return _UNREADABLE
    key = next((record.key for record in records if record.key is not None), None)
    places = None if len(records) == count else _bits(records, first_offset, count)
    pieces: list[Piece] = []
    end = first_offset + count
    for start in range(first_offset, end, BATCH_MESSAGES_MAX):
        stop = min(start + BATCH_MESSAGES_MAX, end)
        within = records if count <= BATCH_MESSAGES_MAX else [one for one in records if start <= one.offset < stop]
        for built in build_entries(within, first_offset=start, message_count=stop - start):
            taken = None
            if places is not None:
                taken = places >> built.first_offset - first_offset & (1 << built.message_count) - 1
            pieces.append(Piece(built.first_offset, built.message_count, memoryview(built.data), taken))
    return Translated(tuple(pieces), key)


def _bits(records: Sequence[Record], first_offset: int, count: int) -> int:
    """The places of records among offsets, bit n for the n-th."""
    bits = bytearray(count // 8 + 1)
    for record in records:
        place = record.offset - first_offset
        bits[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(bits, "little")
