"""What the subscription rules ask of a stored frame: its key, and when it may be delivered."""

import struct
from typing import Final

from millstream.model.frame import HEADER_BYTES, FrameHeader, Magic
from millstream.sessions.pulsar.translations import Translations, Where
from millstream.wire.pulsar.entry import read_entry
from millstream.wire.pulsar.errors import InvalidEntry
from millstream.wire.pulsar.sticky_key import sticky_key

__all__ = ["EntryInspector"]

_UINT32: Final = struct.Struct(">I")
_CHECKSUM_MAGIC: Final = 0x0E01
_CHECKSUM_BYTES: Final = 6
"""Bytes of the magic number and the checksum, in entries that have one."""
_DELIVER_AT_TAG: Final = b"\x98\x01"
"""What stands before deliver_at_time, field 19, in the metadata's bytes."""


class EntryInspector:
    """Reads the frames of one partition.

    Args:
        where: topic id and partition.
        translations: of frames that other protocols wrote.
    """

    __slots__ = ("_translations", "_where")

    def __init__(self, where: Where, translations: Translations) -> None:
        self._where = where
        self._translations = translations

    def is_hidden(self, header: FrameHeader, frame: memoryview) -> bool:
        """Whether a transactional frame is not for consumers: never. Which are aborted, the broker knows."""
        return False

    def sticky_key(self, header: FrameHeader, frame: memoryview) -> bytes:
        """The key by which Key_Shared chooses a consumer.

        An entry has one for all its messages. One without a key goes by its producer and sequence id, so that such
        entries are spread; a batch of another protocol by the first key in it.
        """
        if header.magic != Magic.PULSAR_ENTRY:
            key = self._translations.key(self._where, header, frame)
            return key if key is not None else b"offset-%d" % header.base_offset
        try:
            metadata = read_entry(frame[HEADER_BYTES:]).metadata
        except InvalidEntry:
            return b""
        key = sticky_key(metadata)
        if key is not None:
            return key
        return f"{metadata.producer_name}-{metadata.sequence_id}".encode()

    def deliver_at_ms(self, header: FrameHeader, frame: memoryview) -> int:
        """When an entry may be delivered, ms since 1970; 0 for at once."""
        if header.magic != Magic.PULSAR_ENTRY:
            return 0
        # Almost no entry has the field. Looking for its tag costs a tenth of decoding; a chance hit does no harm.
        (size,) = _UINT32.unpack_from(frame, HEADER_BYTES)
        start = HEADER_BYTES + _UINT32.size
        if size >> 16 == _CHECKSUM_MAGIC:
            (size,) = _UINT32.unpack_from(frame, HEADER_BYTES + _CHECKSUM_BYTES)
            start += _CHECKSUM_BYTES
        if _DELIVER_AT_TAG not in bytes(frame[start : start + size]):
            return 0
        try:
            return max(read_entry(frame[HEADER_BYTES:]).metadata.deliver_at_time, 0)
        except InvalidEntry:
            return 0
