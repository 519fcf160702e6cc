"""Packing bodies as the clients of all languages take them."""

import mmap
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from millstream.wire.compression import Codec, compress, decompress

lz4_frame: Any = import_module("lz4.frame")
DATA = (b"", b"x", bytes(200_000), bytes(range(256)) * 700)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("codec", Codec)
def test_what_is_packed_can_be_unpacked(codec: Codec, data: bytes) -> None:
    assert decompress(codec, memoryview(compress(codec, data))) == data


@pytest.mark.parametrize("data", DATA)
def test_blocks_of_lz4_do_not_depend_on_each_other(data: bytes) -> None:
    packed = compress(Codec.LZ4, data)
    told = lz4_frame.get_frame_info(packed)
    assert (told["block_linked"], told["content_checksum"], told["block_checksum"]) == (False, False, False)
    assert lz4_frame.decompress(packed) == data


@pytest.mark.parametrize("codec", list(Codec))
def test_large_bodies_are_unpacked_into_room_that_nobody_has_to_fill_first(codec: Codec) -> None:
    body = b"0123456789abcdef" * 1_200_000
    unpacked = decompress(codec, memoryview(compress(codec, body)))
    assert unpacked == body
    assert codec is Codec.NONE or isinstance(unpacked.obj, mmap.mmap)
    small = decompress(codec, memoryview(compress(codec, body[:1000])))
    assert small == body[:1000]
    assert not isinstance(small.obj, mmap.mmap)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system tells nothing of its memory")
def test_the_room_is_not_shared_between_processes() -> None:
    before_kb = _shared_kb()
    unpacked = decompress(Codec.ZSTD, memoryview(compress(Codec.ZSTD, bytes(8 * 1024 * 1024))))
    assert _shared_kb() - before_kb < 1024
    assert len(unpacked) == 8 * 1024 * 1024


def _shared_kb() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssShmem"].split()[0])
