"""Compression as the clients of message sets know it: snappy in blocks, LZ4 in frames with a checksum of their own.

LZ4 frames in messages of magic 0 carry a checksum of their header that is wrong by the LZ4 specification: Kafka took
it over the frame's magic number as well, and 0.8 and 0.9 clients insist on it (KAFKA-3160). Clients that knew the
specification better wrote the right one, so on the way in neither is insisted on.
"""

import struct
from typing import Final

import cramjam

from millstream.wire.compression import XERIAL_MAGIC, Codec, CompressionError, compress, decompress

__all__ = ["pack", "unpack"]

_XERIAL_HEADER: Final = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
"""Behind the magic: the version of the writer, and the oldest that can read it."""
_SNAPPY_BLOCK_BYTES: Final = 32 * 1024  # snappy-java's own
_LENGTH: Final = struct.Struct(">i")
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_DESCRIPTOR: Final = len(_LZ4_MAGIC)
_LZ4_HEADER_OF_MAGIC_0: Final = _LZ4_MAGIC + b"\x60\x40\x1a"
_LZ4_CONTENT_SIZE: Final = 0x08
_LZ4_DICTIONARY: Final = 0x01
_UINT32: Final = 0xFFFFFFFF
_PRIME1, _PRIME2, _PRIME3, _PRIME4, _PRIME5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


def pack(codec: Codec, data: bytes | bytearray | memoryview, magic: int) -> bytes:
    """Compress the inside of a message, or the body of a batch that is made of messages.

    Args:
        codec: gzip, snappy or LZ4, or none of them.
        data: what to compress.
        magic: of the message or the batch.
    """
    if codec is Codec.SNAPPY:
        return _packed_snappy(memoryview(data))
    packed = compress(codec, data)
    if codec is Codec.LZ4 and magic == 0:
        return _LZ4_HEADER_OF_MAGIC_0 + packed[len(_LZ4_HEADER_OF_MAGIC_0) :]
    return packed


def unpack(codec: Codec, data: memoryview, magic: int, limit_bytes: int) -> memoryview:
    """Decompress the inside of a message.

    Args:
        codec: how it is compressed.
        data: the value of the message.
        magic: of the message.
        limit_bytes: the most it may unpack to.

    Raises:
        CompressionError: the input is damaged or unpacks to more than the limit.
    """
    if codec is Codec.LZ4 and magic == 0:
        mended = bytearray(data)
        end = _lz4_checksum_position(mended)
        mended[end] = _header_checksum(mended[_LZ4_DESCRIPTOR:end])
        data = memoryview(mended)
    return decompress(codec, data, limit_bytes)


def _packed_snappy(data: memoryview) -> bytes:
    blocks = [_XERIAL_HEADER]
    for start in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _SNAPPY_BLOCK_BYTES]))
        blocks += (_LENGTH.pack(len(block)), block)
    return b"".join(blocks)


def _lz4_checksum_position(frame: bytearray) -> int:
    """Where the checksum of an LZ4 frame's header stands. Raises CompressionError."""
    if frame[:_LZ4_DESCRIPTOR] != _LZ4_MAGIC or len(frame) < len(_LZ4_HEADER_OF_MAGIC_0):
        raise CompressionError("a compressed body is not an LZ4 frame")
    flags = frame[_LZ4_DESCRIPTOR]
    if flags & _LZ4_DICTIONARY:
        raise CompressionError("an LZ4 frame wants a dictionary")
    position = _LZ4_DESCRIPTOR + (10 if flags & _LZ4_CONTENT_SIZE else 2)
    if position >= len(frame):
        raise CompressionError("the header of an LZ4 frame is cut off")
    return position


def _header_checksum(header: bytearray) -> int:
    """The second byte of the XXH32 of less than 16 bytes, with the seed 0.

    Source: LZ4 frame format, "Header Checksum"; xxHash specification, for inputs too short for its accumulators.
    """
    value = (_PRIME5 + len(header)) & _UINT32
    whole = len(header) // 4 * 4
    for (word,) in struct.iter_unpack("<I", header[:whole]):
        value = _rotated(value + word * _PRIME3, 17) * _PRIME4 & _UINT32
    for byte in header[whole:]:
        value = _rotated(value + byte * _PRIME5, 11) * _PRIME1 & _UINT32
    value = (value ^ value >> 15) * _PRIME2 & _UINT32
    value = (value ^ value >> 13) * _PRIME3 & _UINT32
    return (value ^ value >> 16) >> 8 & 0xFF


def _rotated(value: int, bits: int) -> int:
    value &= _UINT32
    return value << bits & _UINT32 | value >> (32 - bits)
