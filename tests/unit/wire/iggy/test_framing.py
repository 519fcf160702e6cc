"""Frames: where they end, whatever part of them has arrived, and what the long headers say."""

import pytest

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.errors import Undecodable
from millstream.wire.iggy.framing import (
    HEADER_BYTES,
    LongHeader,
    dialect_of_header,
    eviction,
    long_answer,
    long_request,
    measure,
    read_long_header,
    reads_long,
    short_answer,
    short_request,
)

FRAME_BYTES_MAX = 10_000
HEADERS = [
    LongHeader(bytes(range(16)), bytes(range(16, 32)), 5, 160, 9, 0),
    LongHeader(bytes(range(16)), bytes(16), 2**63, 2, 0, 201),
    LongHeader(bytes(range(16)), bytes(16), 1, 2, 7, 12, True),
    LongHeader(bytes(range(16)), bytes(16), 1, 1, 0, 0, True),
]
FRAMES = [short_request(1, b""), short_request(101, b"x" * 300), *(long_request(one, b"body") for one in HEADERS)]


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_are_measured_whole_byte_by_byte_and_with_more_behind(frame: bytes) -> None:
    for size in range(len(frame) + 1):
        assert measure(memoryview(frame[:size]), FRAME_BYTES_MAX) in {0, len(frame)}
    assert measure(memoryview(frame), FRAME_BYTES_MAX) == len(frame)
    assert measure(memoryview(frame + b"more"), FRAME_BYTES_MAX) == len(frame)


@pytest.mark.parametrize("length", [1, 3, FRAME_BYTES_MAX, 2**32 - 1])
def test_impossible_lengths(length: int) -> None:
    with pytest.raises(Undecodable):
        measure(memoryview(length.to_bytes(4, "little") + bytes(60)), FRAME_BYTES_MAX)


@pytest.mark.parametrize("size", [0, 255, FRAME_BYTES_MAX + 1])
def test_impossible_sizes(size: int) -> None:
    frame = bytearray(FRAMES[2])
    frame[48:52] = size.to_bytes(4, "little")
    with pytest.raises(Undecodable):
        measure(memoryview(frame), FRAME_BYTES_MAX)


def test_long_headers_of_other_kinds() -> None:
    frame = bytearray(FRAMES[2])
    frame[60] = 8
    with pytest.raises(Undecodable):
        measure(memoryview(frame), FRAME_BYTES_MAX)


@pytest.mark.parametrize("header", HEADERS)
def test_long_headers_are_read(header: LongHeader) -> None:
    frame = memoryview(long_request(header, b"body"))
    assert reads_long(frame)
    assert len(frame) == HEADER_BYTES + 4
    assert read_long_header(frame) == header
    assert dialect_of_header(header) is (Dialect.D0 if header.is_d0 else Dialect.D)


def test_the_places_in_long_headers() -> None:
    frame = long_request(HEADERS[0], b"")
    assert not any(frame[:48])
    assert frame[48:52] == (256).to_bytes(4, "little")
    assert (frame[60], frame[176]) == (5, 160)
    assert (frame[128:144], frame[144:160]) == (bytes(range(16)), bytes(range(16, 32)))
    assert (frame[168], frame[184]) == (5, 9)
    assert long_request(HEADERS[1], b"")[196] == 201
    early = long_request(HEADERS[2], b"")
    assert (early[184:192], early[192], early[204]) == (bytes(8), 7, 12)
    assert long_request(HEADERS[3], b"")[184:192] == (1 << 63).to_bytes(8, "little")


def test_the_places_in_long_answers() -> None:
    answer = long_answer(HEADERS[0], 46, 3, 77, 88)
    assert len(answer) == HEADER_BYTES
    assert answer[48:52] == (259).to_bytes(4, "little")
    assert (answer[60], answer[208], answer[216]) == (8, 160, 46)
    assert (answer[128:144], answer[160:176]) == (bytes(range(16, 32)), bytes(range(16)))
    assert (answer[176], answer[184], answer[192], answer[200]) == (77, 77, 88, 5)
    sent_away = eviction(HEADERS[0], 14, 11 << 10, 10 << 10)
    assert len(sent_away) == HEADER_BYTES
    assert (sent_away[60], sent_away[255]) == (13, 14)
    assert sent_away[144:152] == (11 << 10).to_bytes(4, "little") + (10 << 10).to_bytes(4, "little")


def test_short_answers() -> None:
    assert short_answer(0, 5) == bytes.fromhex("0000000005000000")
