"""Varints and tagged fields, at the edges of what is allowed."""

import pytest

from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.primitives import (
    SMALL_UNSIGNED_VARINTS,
    read_tags,
    read_unsigned_varint,
    signed_varint,
    unsigned_varint,
)

UNSIGNED = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**28 - 1, "ffffff7f"),
    (2**28, "8080808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]
SIGNED = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
    (2**63 - 1, "feffffffffffffffff01"),
    (-(2**63), "ffffffffffffffffff01"),
]


@pytest.mark.parametrize(("value", "encoded"), UNSIGNED)
def test_unsigned_varint(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert unsigned_varint(value) == data
    assert read_unsigned_varint(data, 0) == (value, len(data))
    assert read_unsigned_varint(memoryview(b"\xff" + data + b"\xff"), 1) == (value, 1 + len(data))


@pytest.mark.parametrize(("value", "encoded"), SIGNED)
def test_signed_varint(value: int, encoded: str) -> None:
    assert signed_varint(value).hex() == encoded


def test_small_unsigned_varints_are_the_one_byte_ones() -> None:
    assert [unsigned_varint(value) for value in range(128)] == SMALL_UNSIGNED_VARINTS


def test_a_varint_may_be_longer_than_it_needs() -> None:
    assert read_unsigned_varint(bytes.fromhex("8080808000"), 0) == (0, 5)


@pytest.mark.parametrize(
    "encoded",
    [
        "ffffffff10",  # 2^32 and more, in five bytes
        "ffffffff7f",
        "808080808000",  # zero, in six bytes
        "808080808001",
        "ffffffffffffffffff01",
    ],
)
def test_a_varint_of_more_than_32_bits_is_malformed(encoded: str) -> None:
    with pytest.raises(MalformedMessage):
        read_unsigned_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["", "80", "ffffffff"])
def test_a_cut_varint_is_an_index_error(encoded: str) -> None:
    with pytest.raises(IndexError):
        read_unsigned_varint(bytes.fromhex(encoded), 0)


KNOWN = frozenset({0, 5, 7, 2**32 - 1})


def tags_of(encoded: str) -> tuple[dict[int, bytes], int]:
    tags, position = read_tags(memoryview(bytes.fromhex(encoded)), 0, KNOWN)
    return {tag: bytes(value) for tag, value in tags.items()}, position


@pytest.mark.parametrize(
    ("encoded", "tags", "position"),
    [
        ("00", {}, 1),
        ("00ff", {}, 1),
        ("010002abcd", {0: b"\xab\xcd"}, 5),
        ("010700", {7: b""}, 3),
        ("02ffffffff0f01ee0001dd", {2**32 - 1: b"\xee", 0: b"\xdd"}, 11),
        ("020102abcd0001dd", {0: b"\xdd"}, 8),  # nobody has a field for tag 1
    ],
)
def test_tags(encoded: str, tags: dict[int, bytes], position: int) -> None:
    assert tags_of(encoded) == (tags, position)


@pytest.mark.parametrize(
    "encoded",
    [
        "02050105010501",  # the same tag twice, with the same value
        "0200000000",  # the same tag twice, empty
        "010003abcd",  # one byte longer than what is left
        "0100ffffffff0fab",
        "ffffffff7f",  # more tags than 32 bits count
    ],
)
def test_malformed_tags(encoded: str) -> None:
    with pytest.raises(MalformedMessage):
        tags_of(encoded)


@pytest.mark.parametrize("encoded", ["", "01", "0100", "0180", "02000000"[:6], "ffffffff0f"])
def test_cut_tags_are_an_index_error(encoded: str) -> None:
    with pytest.raises(IndexError):
        tags_of(encoded)
