"""The codecs of payloads. An entry says how many bytes its payload unpacks to, so room is made once, and bounded.

Source: the payloads of the C++ client: LZ4 is one block without a frame, Snappy one raw block.
"""

from collections.abc import Callable
from typing import Final

import cramjam

from millstream.wire.compression import room_for
from millstream.wire.limits import INFLATED_BATCH_BYTES_MAX
from millstream.wire.pulsar.errors import MalformedEntry, UnsupportedCompression
from millstream.wire.pulsar.pulsar_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD

__all__ = ["compress", "is_compression", "uncompress"]


def _uncompress_lz4(data: memoryview, out: memoryview) -> int:
    written: int = cramjam.lz4.decompress_block_into(data, out, output_len=len(out))
    return written


_INTO: Final[dict[int, Callable[[memoryview, memoryview], int]]] = {
    LZ4: _uncompress_lz4,
    ZLIB: cramjam.zlib.decompress_into,
    ZSTD: cramjam.zstd.decompress_into,
    SNAPPY: cramjam.snappy.decompress_raw_into,
}


def is_compression(number: int) -> bool:
    """Whether a number is that of a codec, or of none."""
    return number == NONE or number in _INTO


def uncompress(number: int, data: memoryview, size: int) -> memoryview:
    """Unpack a payload.

    Args:
        number: its codec.
        data: the payload as it stands in the entry.
        size: bytes that it unpacks to, as the entry says.

    Raises:
        UnsupportedCompression: there is no such codec.
        MalformedEntry: the payload is not of the codec, unpacks to another size, or to more than
            INFLATED_BATCH_BYTES_MAX bytes.
    """
    if number == NONE:
        return data
    into = _INTO.get(number)
    if into is None:
        raise UnsupportedCompression(f"there is no compression codec {number}")
    if size > INFLATED_BATCH_BYTES_MAX:
        raise MalformedEntry(f"a payload says it unpacks to {size} bytes, more than {INFLATED_BATCH_BYTES_MAX}")
    if size == 0:
        return memoryview(b"")
    out = room_for(size)
    try:
        written = into(data, out)
    except (cramjam.DecompressionError, ValueError) as error:
        raise MalformedEntry(f"a payload cannot be unpacked to {size} bytes: {error}") from None
    if written != size:
        raise MalformedEntry(f"a payload says it unpacks to {size} bytes, and it unpacks to {written}")
    return out


def compress(number: int, data: bytes | bytearray | memoryview) -> bytes:
    """Pack a payload; the entry that carries it must say how many bytes it had.

    Args:
        number: the codec, one of CompressionType.
        data: the payload.
    """
    return _PACK[number](data)


_PACK: Final[dict[int, Callable[[bytes | bytearray | memoryview], bytes]]] = {
    NONE: bytes,
    LZ4: lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
    ZLIB: lambda data: bytes(cramjam.zlib.compress(data)),
    ZSTD: lambda data: bytes(cramjam.zstd.compress(data)),
    SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
}
