"""How message sets are compressed: what Kafka's own clients wrote and insist on."""

import struct
from importlib import import_module
from typing import Any

import cramjam
import pytest

from millstream.wire.compression import Codec, CompressionError
from millstream.wire.kafka.message_codecs import pack, unpack

# Neither has types.
lz4_frame: Any = import_module("lz4.frame")
snappy: Any = import_module("snappy")

LIMIT_BYTES = 1_000_000
# The header of a frame as Kafka's tests have it: wrong in magic 0, right in magic 1.
LZ4_HEADERS = {0: "04224d1860401a", 1: "04224d18604082", 2: "04224d18604082"}
DATA = [b"", b"x", bytes(100), b"text of some length " * 20_000, bytes(range(256)) * 1000]


@pytest.mark.parametrize("data", DATA, ids=len)
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_round_trip(codec: Codec, magic: int, data: bytes) -> None:
    assert unpack(codec, memoryview(pack(codec, data, magic)), magic, LIMIT_BYTES) == data


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_lz4_has_the_header_that_clients_insist_on(magic: int) -> None:
    packed = pack(Codec.LZ4, DATA[3], magic)
    assert packed[:7].hex() == LZ4_HEADERS[magic]
    assert lz4_frame.decompress(bytes.fromhex(LZ4_HEADERS[1]) + packed[7:]) == DATA[3]


@pytest.mark.parametrize("store_size", [False, True])
@pytest.mark.parametrize("broken", [False, True])
def test_lz4_of_magic_0_with_either_checksum(store_size: bool, broken: bool) -> None:
    frame = bytearray(lz4_frame.compress(DATA[3], store_size=store_size, block_linked=False))
    if broken:
        frame[14 if store_size else 6] ^= 0x55
        with pytest.raises(CompressionError):
            unpack(Codec.LZ4, memoryview(frame), 1, LIMIT_BYTES)
    assert unpack(Codec.LZ4, memoryview(frame), 0, LIMIT_BYTES) == DATA[3]


def test_snappy_is_framed_as_java_does_and_taken_in_both_forms() -> None:
    packed = pack(Codec.SNAPPY, DATA[4], 0)
    assert packed[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    blocks, position = [], 16
    while position < len(packed):
        (size,) = struct.unpack_from(">i", packed, position)
        blocks.append(snappy.uncompress(packed[position + 4 : position + 4 + size]))
        position += 4 + size
    assert b"".join(blocks) == DATA[4]
    assert max(map(len, blocks)) == 32 * 1024
    assert unpack(Codec.SNAPPY, memoryview(snappy.compress(DATA[4])), 0, LIMIT_BYTES) == DATA[4]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_a_bomb_is_refused_at_the_limit(codec: Codec, magic: int) -> None:
    packed = pack(codec, bytes(LIMIT_BYTES + 1), magic)
    with pytest.raises(CompressionError):
        unpack(codec, memoryview(packed), magic, LIMIT_BYTES)


@pytest.mark.parametrize("cut", range(20))
def test_an_lz4_frame_that_is_cut_off(cut: int) -> None:
    frame = lz4_frame.compress(b"abc" * 100, store_size=True)
    with pytest.raises(CompressionError):
        unpack(Codec.LZ4, memoryview(frame)[:cut], 0, LIMIT_BYTES)


def test_an_lz4_frame_with_a_dictionary() -> None:
    frame = bytearray(bytes(cramjam.lz4.compress(b"abc")))
    frame[4] |= 1
    with pytest.raises(CompressionError, match="dictionary"):
        unpack(Codec.LZ4, memoryview(frame), 0, LIMIT_BYTES)
