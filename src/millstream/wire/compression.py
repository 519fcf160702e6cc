"""Bounded decompression: the room for the result is never larger than a limit, whatever the input claims."""

import mmap
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import cramjam

from millstream.model.errors import MillstreamError
from millstream.wire.limits import INFLATED_BATCH_BYTES_MAX

__all__ = ["Codec", "CompressionError", "compress", "decompress", "room_for"]

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_LZ4_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
"""Of a frame as Kafka writes it: blocks of 64 KiB that do not depend on each other, and no checksums. Java's reader
takes no blocks that do, and that of 0.8 no checksum of the content."""
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_LZ4_STORED: Final = 0x80000000
_LZ4_LENGTH: Final = struct.Struct("<I")
_FIRST_GUESS: Final = 4  # times the input; text usually compresses less
_NEXT_GUESS: Final = 8
_SMALLEST_ROOM_BYTES: Final = 64 * 1024
_LARGE_ROOM_BYTES: Final = 16 * 1024 * 1024
"""Below it room that was used before is filled faster than the system gives out new: bodies of 1 to 16 MiB are
unpacked in 0.5 to 0.8 of the time."""


class CompressionError(MillstreamError):
    """The input is not of its codec, or unpacks to more than the limit."""


class Codec(IntEnum):
    """Compression codecs by Kafka's numbers."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: Codec, data: memoryview, limit_bytes: int = INFLATED_BATCH_BYTES_MAX) -> memoryview:
    """Unpack one compressed body.

    Args:
        codec: how it is compressed. Snappy bodies may be one raw block or a stream of blocks in the framing of
            the Java client; their first bytes tell which.
        data: the compressed bytes.
        limit_bytes: the most it may unpack to.

    Raises:
        CompressionError: the input is damaged or unpacks to more than the limit.
    """
    if codec is Codec.NONE:
        return data
    if codec is Codec.SNAPPY:
        return _decompress_snappy(data, limit_bytes)
    return _decompress_by_guess(_INTO[codec], data, limit_bytes)


def room_for(size_bytes: int) -> memoryview:
    """Room to unpack into, of at least a byte.

    A large one comes from the system as it is: to fill it with zeros first, as a bytearray is, takes as long as the
    unpacking, some 60 ms for 128 MiB, and holds up all other threads, which unpacking does not. It is private: memory
    that processes can share takes longer to come by, and twice as long to give back.
    """
    if size_bytes <= _LARGE_ROOM_BYTES:
        return memoryview(bytearray(size_bytes))
    return memoryview(mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def compress(codec: Codec, data: bytes | bytearray | memoryview) -> bytes:
    """Pack a body."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data))
        case Codec.SNAPPY:
            return bytes(cramjam.snappy.compress_raw(data))
        case Codec.LZ4:
            return _compress_lz4(memoryview(data))
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data))


def _compress_lz4(data: memoryview) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts += (_LZ4_LENGTH.pack(len(packed)), packed)
        else:
            parts += (_LZ4_LENGTH.pack(len(block) | _LZ4_STORED), bytes(block))
    parts.append(bytes(_LZ4_LENGTH.size))
    return b"".join(parts)


_INTO: Final[dict[Codec, Callable[[memoryview, memoryview], int]]] = {
    Codec.GZIP: cramjam.gzip.decompress_into,
    Codec.LZ4: cramjam.lz4.decompress_into,
    Codec.ZSTD: cramjam.zstd.decompress_into,
}


def _decompress_by_guess(
    into: Callable[[memoryview, memoryview], int], data: memoryview, limit_bytes: int
) -> memoryview:
    # These formats need not say how large the result is, so room is made in steps up to the limit.
    room = min(max(len(data) * _FIRST_GUESS, _SMALLEST_ROOM_BYTES), limit_bytes)
    while True:
        out = room_for(room)
        try:
            return out[: into(data, out)]
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise CompressionError(f"a compressed body cannot be unpacked: {error}") from None
        if room >= limit_bytes:
            raise CompressionError(f"a compressed body unpacks to more than {limit_bytes} bytes")
        room = min(room * _NEXT_GUESS, limit_bytes)


def _decompress_snappy(data: memoryview, limit_bytes: int) -> memoryview:
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _snappy_block(data, limit_bytes)
    out = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if not 0 < size <= len(data) - position:
            raise CompressionError("a snappy block is longer than its body")
        out += _snappy_block(data[position : position + size], limit_bytes - len(out))
        position += size
    return memoryview(out)


def _snappy_block(block: memoryview, limit_bytes: int) -> memoryview:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit_bytes:
            raise CompressionError("a snappy body unpacks to more than its limit")
        out = room_for(size)
        cramjam.snappy.decompress_raw_into(block, out)
    except cramjam.DecompressionError as error:
        raise CompressionError(f"a snappy body cannot be unpacked: {error}") from None
    return out
