"""Batches of dialect D taken apart again: what the answer to a poll carries, for readers that are no Iggy client."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from millstream.wire.iggy.headers import UserHeader, read_headers
from millstream.wire.iggy.incoming import BATCH_HEADER_BYTES

__all__ = ["Unpacked", "unpack"]

_BATCH: Final = struct.Struct("<8xQQQQ")
_MESSAGE: Final = struct.Struct("<Q16sIIII8x")


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A message. Times are microseconds since 1970; `id` is 16 bytes in wire order, `block` the headers' bytes."""

    checksum: int
    id: bytes
    offset: int
    timestamp_us: int
    origin_us: int
    payload: memoryview
    block: memoryview

    def headers(self) -> list[UserHeader]:
        """Its headers. Raises Refused if they are not to be read."""
        return read_headers(self.block, kinded_keys=True)


def unpack(batches: memoryview) -> Iterator[Unpacked]:
    """Take batches apart, which this server has made or checked.

    Args:
        batches: one after the other, each with its header.
    """
    position = 0
    while position < len(batches):
        base_offset, base_us, origin_us, size_bytes = _BATCH.unpack_from(batches, position)
        at, end = position + BATCH_HEADER_BYTES, position + size_bytes
        while at < end:
            checksum, id_, offset_delta, origin_delta_us, headers, payload = _MESSAGE.unpack_from(batches, at)
            start = at + _MESSAGE.size
            middle, at = start + payload, start + payload + headers
            yield Unpacked(
                checksum,
                id_,
                base_offset + offset_delta,
                base_us,
                origin_us + origin_delta_us,
                batches[start:middle],
                batches[middle:at],
            )
        position = end
