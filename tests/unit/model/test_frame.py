"""The frame's header: its layout, and what is written into it in place."""

import struct
from itertools import combinations

import pytest

from millstream.model.frame import (
    CRC_FROM,
    HEADER_BYTES,
    Attributes,
    FrameHeader,
    Magic,
    frame_crc,
    read_frame_header,
    set_base_offset,
    set_log_append_time,
)
from tests.support.batches import batch


def test_every_field_is_where_the_text_says() -> None:
    frame = bytearray(HEADER_BYTES)
    places = {
        0: "q",
        8: "i",
        12: "i",
        16: "b",
        17: "I",
        21: "h",
        23: "i",
        27: "q",
        35: "q",
        43: "q",
        51: "h",
        53: "i",
    }
    values = []
    for n, (place, code) in enumerate({**places, 57: "i"}.items()):
        values.append(100 + n if code == "b" else -1000 - n if code != "I" else 2**32 - 1)
        struct.pack_into(">" + code, frame, place, values[-1])
    assert read_frame_header(frame) == FrameHeader(*values)
    assert read_frame_header(b"before" + frame, 6) == FrameHeader(*values)


def test_the_size_and_the_last_offset() -> None:
    frame = batch(b"x" * 50, 7)
    set_base_offset(memoryview(frame), 1000)
    header = read_frame_header(frame)
    assert header.size == len(frame)
    assert (header.base_offset, header.last_offset, header.record_count) == (1000, 1006, 7)


def test_placing_a_frame_touches_nothing_that_the_checksum_covers() -> None:
    frame = batch(b"x")
    struct.pack_into(">i", frame, 12, 77)  # a producer may send any leader epoch
    before = bytes(frame)
    set_base_offset(memoryview(frame), 2**63 - 1)
    assert read_frame_header(frame) == read_frame_header(before)._replace(base_offset=2**63 - 1, leader_epoch=0)
    assert frame[16:] == before[16:]
    assert frame_crc(memoryview(frame)) == read_frame_header(frame).crc


def test_the_time_of_append() -> None:
    frame = batch(b"x", 3, timestamp_ms=5)
    before = read_frame_header(frame)
    set_log_append_time(memoryview(frame), 1_700_000_000_000)
    header = read_frame_header(frame)
    assert header.attributes == before.attributes | Attributes.LOG_APPEND_TIME
    assert (header.first_timestamp, header.max_timestamp) == (5, 1_700_000_000_000)
    assert header.crc == frame_crc(memoryview(frame)) != before.crc


def test_every_flipped_bit_behind_the_checksum_is_noticed() -> None:
    frame = batch(b"some value")
    crc = read_frame_header(frame).crc
    for bit in range(8 * CRC_FROM, 8 * len(frame)):
        frame[bit // 8] ^= 1 << bit % 8
        assert frame_crc(memoryview(frame)) != crc
        frame[bit // 8] ^= 1 << bit % 8


def test_no_single_bit_turns_one_encoding_into_another() -> None:
    assert all((one ^ other).bit_count() >= 2 for one, other in combinations(Magic, 2))
    assert 0 not in set(Magic), "zeros are not a frame"


def test_a_header_must_be_whole() -> None:
    with pytest.raises(struct.error):
        read_frame_header(bytes(HEADER_BYTES - 1))
